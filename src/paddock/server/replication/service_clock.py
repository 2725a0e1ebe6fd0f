"""The time that entries are stamped with, and that TTLs are measured by.

The system's clock may jump: an operator sets it, a time server is broken, a machine sleeps. A stamp
that is wrong stays wrong, and with it a TTL: a node would go a day early, or stay a day longer. So
the service has a time of its own, in milliseconds since 1970. The rules:

* It never goes back, also not behind the last stamp that the log holds.
* It follows the system's clock as long as that goes as fast as time passes.
* If the system's clock goes ahead by more than the time that has passed explains, it is not
  believed at first: our time goes on as time passes. Once it has stayed ahead for a minute it is
  followed; a machine that has slept is such a case.
* While the system's clock is behind (it was set back, or the log was stamped ahead), our time goes
  a tenth slower than it passes, until the system's clock has caught up. A TTL is wrong by a tenth
  at most meanwhile.

At a start nothing tells how much time has passed since the last stamp, so a system's clock that is
ahead of it is believed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

logger: Final = logging.getLogger(__name__)

# What is not worth calling a jump: clocks are corrected, and read one after the other.
_TOLERANCE_MS: Final = 1000.0
# The same for what gathers between two readings that are far apart: corrected clocks go faster.
_DRIFT_MAX: Final = 0.01
_BELIEVED_AFTER_MS: Final = 60_000.0
_SLOW_RATE: Final = 0.9


class ServiceClock:
    """Reads the system's clock, and decides what to make of it.

    `now` gives seconds that pass evenly, also within one step of the event loop.
    """

    def __init__(
        self, wall_clock_ms: Callable[[], int], now: Callable[[], float], last_stamp_ms: int = 0
    ) -> None:
        self._wall_clock_ms = wall_clock_ms
        self._now = now
        self._read_at_ms = now() * 1000
        wall_ms = wall_clock_ms()
        # Our time when we last looked. A fraction is kept: readings may be microseconds apart.
        self._time_ms = float(max(wall_ms, last_stamp_ms))
        # While a jump ahead is not believed: since when, and how far it went.
        self._ahead_since_ms: float | None = None
        self._ahead_by_ms = 0.0
        # Whether it was said that the system's clock is behind.
        self._is_behind = False
        self._tell_behind(wall_ms)

    def time_ms(self) -> int:
        """Return the time, which is never before one that was returned earlier."""
        now_ms = self._now() * 1000
        passed_ms = max(now_ms - self._read_at_ms, 0.0)
        self._read_at_ms = now_ms
        wall_ms = self._wall_clock_ms()
        expected_ms = self._time_ms + passed_ms
        ahead_ms = wall_ms - expected_ms
        if ahead_ms > _TOLERANCE_MS + passed_ms * _DRIFT_MAX and not self._is_believed(
            ahead_ms, now_ms
        ):
            self._time_ms = expected_ms
        else:
            self._ahead_since_ms = None
            self._time_ms = max(wall_ms, self._time_ms + passed_ms * _SLOW_RATE)
            self._tell_behind(wall_ms)
        return int(self._time_ms)

    def _is_believed(self, ahead_ms: float, now_ms: float) -> bool:
        """Return whether a clock that is so much ahead has been so for long enough."""
        moved_ms = abs(ahead_ms - self._ahead_by_ms)
        if self._ahead_since_ms is None or moved_ms > _TOLERANCE_MS:
            # It has just jumped, or jumps about.
            if self._ahead_since_ms is None:
                logger.warning(
                    "the system's clock is %.1f s ahead of the time that has passed; it is followed"
                    " if it stays so for %d s",
                    ahead_ms / 1000,
                    _BELIEVED_AFTER_MS // 1000,
                )
            self._ahead_since_ms, self._ahead_by_ms = now_ms, ahead_ms
            return False
        if now_ms - self._ahead_since_ms < _BELIEVED_AFTER_MS:
            return False
        logger.warning(
            "the system's clock has stayed %.1f s ahead, and is followed now", ahead_ms / 1000
        )
        return True

    def _tell_behind(self, wall_ms: int) -> None:
        behind_ms = self._time_ms - wall_ms
        if behind_ms > _TOLERANCE_MS and not self._is_behind:
            self._is_behind = True
            logger.warning(
                "the system's clock is %.1f s behind the last stamp; time passes a tenth slower"
                " until it has caught up",
                behind_ms / 1000,
            )
        elif behind_ms <= 0:
            self._is_behind = False
