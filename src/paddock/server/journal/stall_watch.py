"""Notices that the server stood still: its process was paused, its loop held, its machine asleep.

A timer goes off four times a second. If it comes late, the loop did nothing meanwhile. If the time
of day went on by more or less than the timer's clock, somebody has set it, or the machine has
slept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from paddock.server.journal.journal import Journal
from paddock.storage.events import CLOCK_JUMPED, STALL_LOOK_SECONDS, STALLED

STALL_SECONDS: Final = 0.3
"""A stall by more than this is an event: clients may give up a server that is silent for longer."""

JUMP_SECONDS: Final = 1.0
"""So is a jump of the clock by more than this."""


class StallWatch:
    """Writes an event after each stall, until `stop`."""

    def __init__(
        self, journal: Journal, monotonic: Callable[[], float], wall_clock_ms: Callable[[], int]
    ) -> None:
        self._journal = journal
        # The loop's own time may be that of the beginning of a pass.
        self._monotonic = monotonic
        self._wall_clock_ms = wall_clock_ms
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._note()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _note(self) -> None:
        """Note what the clocks say, and look again later."""
        self._seen = self._monotonic()
        self._seen_wall_ms = self._wall_clock_ms()
        self._timer = self._loop.call_later(STALL_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        passed = self._monotonic() - self._seen
        wall_passed = (self._wall_clock_ms() - self._seen_wall_ms) / 1000
        late, jump = passed - STALL_LOOK_SECONDS, wall_passed - passed
        if late > STALL_SECONDS:
            self._journal.add(STALLED, seconds=late)
        if abs(jump) > JUMP_SECONDS:
            self._journal.add(CLOCK_JUMPED, seconds=jump)
        self._note()
