"""The service clock: stamps entries, and measures TTLs.

The system clock may jump: an operator sets it, a time server is broken, a machine sleeps. A wrong
stamp stays in the log, and a TTL node would be deleted a day early or late. So the service has a
clock of its own, in milliseconds since 1970. The rules:

* It never goes back, not even behind the last stamp in the log.
* It follows the system clock as long as that agrees with the monotonic clock.
* If the system clock jumps ahead, the service clock follows the monotonic one. After a minute the
  jump is accepted: the machine may have slept.
* While the system clock is behind (it was set back, or the log was stamped ahead), the service
  clock runs a tenth slower until the system clock has caught up.

At a start the time since the last stamp is unknown, so a system clock that is ahead is accepted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

logger: Final = logging.getLogger(__name__)

# A smaller difference is no jump: clocks are corrected, and read one after the other.
_TOLERANCE_MS: Final = 1000.0
# The drift that is no jump: a clock that is being corrected runs faster.
_DRIFT_MAX: Final = 0.01
_ACCEPTED_AFTER_MS: Final = 60_000.0
_SLOW_RATE: Final = 0.9


class ServiceClock:
    """A clock that follows the system clock; `now` is the monotonic one, in seconds."""

    def __init__(
        self, wall_clock_ms: Callable[[], int], now: Callable[[], float], last_stamp_ms: int = 0
    ) -> None:
        self._wall_clock_ms = wall_clock_ms
        self._now = now
        self._read_at_ms = now() * 1000
        wall_ms = wall_clock_ms()
        # The last reading. A fraction is kept: readings may be microseconds apart.
        self._time_ms = float(max(wall_ms, last_stamp_ms))
        # While a jump ahead is not accepted: since when, and how far it went.
        self._ahead_since_ms: float | None = None
        self._ahead_by_ms = 0.0
        # Whether it was logged that the system clock is behind.
        self._is_behind = False
        self._tell_behind(wall_ms)

    def time_ms(self) -> int:
        """Return the time; it never goes back."""
        now_ms = self._now() * 1000
        passed_ms = max(now_ms - self._read_at_ms, 0.0)
        self._read_at_ms = now_ms
        wall_ms = self._wall_clock_ms()
        expected_ms = self._time_ms + passed_ms
        ahead_ms = wall_ms - expected_ms
        if ahead_ms > _TOLERANCE_MS + passed_ms * _DRIFT_MAX and not self._is_accepted(
            ahead_ms, now_ms
        ):
            self._time_ms = expected_ms
        else:
            self._ahead_since_ms = None
            self._time_ms = max(wall_ms, self._time_ms + passed_ms * _SLOW_RATE)
            self._tell_behind(wall_ms)
        return int(self._time_ms)

    def _is_accepted(self, ahead_ms: float, now_ms: float) -> bool:
        """Return whether a jump of the system clock is accepted."""
        if self._ahead_since_ms is None or abs(ahead_ms - self._ahead_by_ms) > _TOLERANCE_MS:
            # It has just jumped, or jumps about.
            if self._ahead_since_ms is None:
                logger.warning(
                    "the system's clock is %.1f s ahead of the time that has passed; it is followed"
                    " if it stays so for %d s",
                    ahead_ms / 1000,
                    _ACCEPTED_AFTER_MS // 1000,
                )
            self._ahead_since_ms, self._ahead_by_ms = now_ms, ahead_ms
            return False
        if now_ms - self._ahead_since_ms < _ACCEPTED_AFTER_MS:
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
