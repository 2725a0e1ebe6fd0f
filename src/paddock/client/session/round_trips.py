"""A histogram of round trips, by the event loop's clock.

One round trip is measured for each write, however many requests it has: from the write to the first
reply to it. So requests that are pipelined cost nothing, and do not wait for each other in it.
"""

from __future__ import annotations

from typing import Final

# The upper bound of the first bucket is 0.25 ms; each further one is twice the one before it.
_PER_SECOND: Final = 4000
_LAST: Final = 20

# The upper bounds in seconds, without that of the last bucket, which has none.
BOUNDS: Final = tuple(2**power / _PER_SECOND for power in range(_LAST))


class RoundTripHistogram:
    """Counts round trips by their length."""

    __slots__ = ("counts", "longest", "total")

    def __init__(self) -> None:
        self.counts: list[int] = [0] * (_LAST + 1)
        # In seconds.
        self.total = 0.0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.total += seconds
        if seconds > self.longest:
            self.longest = seconds
        power = int(seconds * _PER_SECOND).bit_length()
        self.counts[min(power, _LAST)] += 1
