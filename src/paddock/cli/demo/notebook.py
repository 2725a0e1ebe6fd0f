"""The notebook: all reports, in one order.

All processes write to one pipe, a line for each thing in one write: the system keeps such lines
whole, and in order. So if one worker lets go of a lock and another one then takes it, the lines
stand in that order, however late they are read.
"""

import asyncio
import json
import os
import select
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

# Who writes as the demo itself, and as the one who looks at the service for it.
DEMO: Final = "demo"
SERVICE: Final = "service"
FAILS: Final = "fails"
KILLS: Final = "kills with SIGKILL"


@dataclass(frozen=True, slots=True)
class Happening:
    """One line: who reports what, with what goes with it, such as a token."""

    # Its place in the order. It grows.
    number: int
    # By the clock that all processes of a machine share, in seconds.
    at: float
    who: str
    what: str
    facts: Mapping[str, Any]

    def __str__(self) -> str:
        facts = ", ".join(f"{name} {_said(value)}" for name, value in self.facts.items())
        return f"{self.what}: {facts}" if facts else self.what


def write(file: int, who: str, what: str, facts: Mapping[str, object]) -> None:
    """Write a line, with the time, to the pipe with this number."""
    line = json.dumps({"at": time.monotonic(), "who": who, "what": what, "facts": facts})
    data = line.encode() + b"\n"
    assert len(data) <= select.PIPE_BUF, "the system keeps it whole"
    os.write(file, data)


class Notebook:
    """The pipe, and what was read from it since the last page was turned."""

    def __init__(self) -> None:
        self._reading_end, self.file = os.pipe()
        self.page: list[Happening] = []
        # Called with each happening, before those who wait for one.
        self.on_happening: Callable[[Happening], None] = lambda happening: None
        self._last_number = 0
        # Those who wait for their own lines, in the order in which they wrote them.
        self._writers: deque[asyncio.Future[Happening]] = deque()
        # Set when there is something new; then there is another one.
        self._news = asyncio.Event()

    async def read(self) -> None:
        """Read the pipe, for as long as the task lives."""
        reader = asyncio.StreamReader()
        pipe = os.fdopen(self._reading_end, "rb", buffering=0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        try:
            while line := await reader.readline():
                self._note(line)
        finally:
            transport.close()
            os.close(self.file)

    async def write(self, what: str, **facts: object) -> Happening:
        """Write a line of the demo itself; give it when it was read, so all before it were, too."""
        written = asyncio.get_running_loop().create_future()
        self._writers.append(written)
        write(self.file, DEMO, what, facts)
        return await asyncio.shield(written)

    async def wait(self, is_it: Callable[[Happening], bool]) -> Happening:
        """Wait for the first line on this page of which something holds."""
        seen = 0
        while True:
            news = self._news
            found = next(filter(is_it, self.page[seen:]), None)
            if found is not None:
                return found
            seen = len(self.page)
            await news.wait()

    def _note(self, line: bytes) -> None:
        said = json.loads(line)
        self._last_number += 1
        happening = Happening(
            self._last_number, said["at"], said["who"], said["what"], said["facts"]
        )
        self.page.append(happening)
        self.on_happening(happening)
        if happening.who == DEMO:
            self._writers.popleft().set_result(happening)
        news, self._news = self._news, asyncio.Event()
        news.set()


def _said(value: object) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
