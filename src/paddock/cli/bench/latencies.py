"""A histogram of latencies: its size is constant, however many are counted.

Each bucket ends 0.7 % above its beginning, so a percentile is at most that much too high, and never
too low. The longest latency is exact, and no percentile is higher.
"""

from __future__ import annotations

import math
from math import log2
from typing import Final

# The first bucket begins with no time at all; after a nanosecond, each power of two has so many.
_STEPS: Final = 100
# Up to some hundred years.
_POWERS: Final = 64


class Latencies:
    """Counts latencies, which are in seconds."""

    __slots__ = ("_counts", "longest")

    def __init__(self) -> None:
        self._counts = [0] * (_POWERS * _STEPS)
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        if seconds > self.longest:
            self.longest = seconds
        self._counts[int(log2(seconds * 1e9 + 1) * _STEPS)] += 1

    def percentile(self, percent: float) -> float | None:
        """Return a latency that so many do not exceed; None if none is counted."""
        # Rounded first: 99.9 % of a thousand are 999, whatever a float says.
        rank = max(1, math.ceil(round(sum(self._counts) * percent / 100, 6)))
        counted = 0
        for bucket, count in enumerate(self._counts):
            counted += count
            if counted >= rank:
                return min(_end_of(bucket), self.longest)
        return None


def _end_of(bucket: int) -> float:
    """Return the end of a bucket, in seconds."""
    return float((2 ** ((bucket + 1) / _STEPS) - 1) / 1e9)
