"""The longest step of a server's event loop, measured in the server's own process.

    python -P tests/fault/stage/loop_steps.py FILE serve --port 2181 …

is `paddock serve --port 2181 …` with one more timer in its event loop: due every millisecond, it
notes how long after the last time it runs. What is beyond the millisecond is a step: for that long
the loop looked at no socket and no other timer. It notes as well what the thread of the loop had of
a processor meanwhile, which leaves out the time in which others had it, or the disk.

The figures are in FILE, which both processes map, so they are there after a `kill -9`:

    clock = StepClock(file)     # before the server is started
    clock.mark()                # counts anew
    …                           # the attack
    clock.mark().longest

The server knows nothing of it: only `asyncio.Runner`, which `paddock serve` takes its loop from, is
another one here. Nothing but the standard library is imported above, so that the server has the
memory of any other.
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

INTERVAL_S: Final = 0.001
#: How long a loop may stand still before it counts as dead.
DEADLINE_S: Final = 120.0

# How often was asked, how often was answered, and the last answer.
_ASKED: Final = struct.Struct("<q")
_ANSWERED: Final = struct.Struct("<q")
_ANSWER: Final = struct.Struct("<dddq")
_ANSWERED_AT: Final = _ASKED.size
_ANSWER_AT: Final = _ANSWERED_AT + _ANSWERED.size
_SIZE: Final = _ANSWER_AT + _ANSWER.size


@dataclass(frozen=True, slots=True)
class Steps:
    """What a loop did between two marks, in seconds."""

    #: The longest step, and the longest by what it had of a processor.
    longest: float
    longest_cpu: float
    #: What all of them had of a processor, and how often the timer ran.
    cpu: float
    count: int

    def __str__(self) -> str:
        return (
            f"step {self.longest * 1000:.1f} ms ({self.longest_cpu * 1000:.1f} ms of"
            f" {self.cpu * 1000:.0f} ms, {self.count} times)"
        )


class StepClock:
    """The figures, as a test sees them."""

    def __init__(self, file: Path) -> None:
        file.write_bytes(bytes(_SIZE))
        self.file = file
        self._memory = _mapped(file)

    def mark(self) -> Steps:
        """Return the steps since the last mark, and begin anew."""
        (asked,) = _ASKED.unpack_from(self._memory)
        _ASKED.pack_into(self._memory, 0, asked + 1)
        limit = time.monotonic() + DEADLINE_S
        while _ANSWERED.unpack_from(self._memory, _ANSWERED_AT) != (asked + 1,):
            assert time.monotonic() < limit, "the event loop stands still"
            time.sleep(INTERVAL_S)
        return Steps(*_ANSWER.unpack_from(self._memory, _ANSWER_AT))


class _Ticker:
    """The timer in the server's loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, file: Path) -> None:
        self._loop = loop
        self._memory = _mapped(file)
        self._begin()
        self._last, self._last_cpu = time.perf_counter(), time.thread_time()
        loop.call_later(INTERVAL_S, self._tick)

    def _begin(self) -> None:
        self._longest = self._longest_cpu = self._cpu = 0.0
        self._count = 0

    def _tick(self) -> None:
        now, cpu = time.perf_counter(), time.thread_time()
        self._longest = max(self._longest, now - self._last - INTERVAL_S)
        self._longest_cpu = max(self._longest_cpu, cpu - self._last_cpu)
        self._cpu += cpu - self._last_cpu
        self._count += 1
        self._last, self._last_cpu = now, cpu
        (asked,) = _ASKED.unpack_from(self._memory)
        if (asked,) != _ANSWERED.unpack_from(self._memory, _ANSWERED_AT):
            answer = self._longest, self._longest_cpu, self._cpu, self._count
            _ANSWER.pack_into(self._memory, _ANSWER_AT, *answer)
            _ANSWERED.pack_into(self._memory, _ANSWERED_AT, asked)
            self._begin()
        self._loop.call_later(INTERVAL_S, self._tick)


def _mapped(file: Path) -> mmap.mmap:
    with file.open("r+b") as opened:
        return mmap.mmap(opened.fileno(), _SIZE)


def main(file: Path, arguments: list[str]) -> None:
    """Be the server."""
    real_runner = asyncio.Runner

    def runner(
        *,
        debug: bool | None = None,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> asyncio.Runner:
        def with_ticker() -> asyncio.AbstractEventLoop:
            loop = (loop_factory or asyncio.new_event_loop)()
            _Ticker(loop, file)
            return loop

        return real_runner(debug=debug, loop_factory=with_ticker)

    module: Any = asyncio
    module.Runner = runner

    from paddock.cli.main import main as paddock

    paddock(arguments)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
