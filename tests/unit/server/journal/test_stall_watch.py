"""A loop that stood still, and a clock that jumped, are noticed."""

from __future__ import annotations

import asyncio

from paddock.server.journal.journal import Journal
from paddock.server.journal.stall_watch import StallWatch
from paddock.storage.events import CLOCK_JUMPED, STALLED
from paddock.testing.clock import VirtualClockLoop
from paddock.testing.virtual import in_virtual_time


class Noted(Journal):
    """What was noticed, and by how many seconds."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, float]] = []

    def add(self, kind: str, **details: object) -> None:
        assert isinstance(details["seconds"], float)
        self.taken.append((kind, details["seconds"]))


def virtual_loop() -> VirtualClockLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualClockLoop)
    return loop


@in_virtual_time
async def test_a_loop_that_stood_still_is_noticed_once() -> None:
    loop, noted = virtual_loop(), Noted()
    watch = StallWatch(noted, loop.time, lambda: int(loop.time() * 1000))
    await asyncio.sleep(10.1)
    loop.stall(7.0)
    await asyncio.sleep(60)
    watch.stop()
    ((kind, seconds),) = noted.taken
    # It may have begun right before a look, or right after one.
    assert (kind, 6.75 <= seconds <= 7.0) == (STALLED, True)


@in_virtual_time
async def test_a_loop_that_is_a_little_late_is_not_noticed() -> None:
    loop, noted = virtual_loop(), Noted()
    watch = StallWatch(noted, loop.time, lambda: int(loop.time() * 1000))
    for _ in range(100):
        await asyncio.sleep(0.7)
        loop.stall(0.29)
    watch.stop()
    assert noted.taken == []


@in_virtual_time
async def test_a_clock_that_was_set_is_noticed() -> None:
    loop, noted = virtual_loop(), Noted()
    ahead_ms = 0
    watch = StallWatch(noted, loop.time, lambda: int(loop.time() * 1000) + ahead_ms)
    await asyncio.sleep(5)
    ahead_ms = 3_600_000
    await asyncio.sleep(5)
    ahead_ms = 0
    await asyncio.sleep(5)
    watch.stop()
    await asyncio.sleep(5)
    ahead_ms = 60_000
    await asyncio.sleep(5)
    assert [(kind, round(seconds)) for kind, seconds in noted.taken] == [
        (CLOCK_JUMPED, 3600),
        (CLOCK_JUMPED, -3600),
    ]
