"""Quantiles of what a histogram has counted lately.

They are those of the last ten minutes, as upstream's Prometheus provider has them, as exact as the
buckets are. A window keeps the buckets of some moments, and only while somebody asks.
"""

from __future__ import annotations

from collections import deque
from typing import Final

# Seconds that quantiles look back, at least while somebody asks, and between two of the moments
# that are kept for it.
_WINDOW: Final = 600.0
_STEP: Final = 60.0


class Window:
    """What was added to the buckets of a histogram in the last ten minutes."""

    def __init__(self) -> None:
        # The time and the buckets of some moments; the first is as old as the window.
        self._past: deque[tuple[float, list[int]]] = deque()

    def move(self, buckets: list[int], now: float) -> list[int]:
        """Take the present buckets, and return what has come since the window began."""
        past = self._past
        if not past or any(new < old for new, old in zip(buckets, past[-1][1], strict=True)):
            # At the beginning, and when the counters were reset, all there is counts.
            past.clear()
            past.append((now - _WINDOW, [0] * len(buckets)))
        while len(past) > 1 and past[1][0] <= now - _WINDOW:
            past.popleft()
        _, begun = past[0]
        if now - past[-1][0] >= _STEP:
            past.append((now, list(buckets)))
        return [new - old for new, old in zip(buckets, begun, strict=True)]


def quantile_of(quantile: float, bounds: list[float], buckets: list[int]) -> float:
    """Return a quantile, as exact as the buckets are; not a number without any."""
    rank = quantile * sum(buckets)
    if not rank:
        return float("nan")
    below, low = 0, 0.0
    for high, count in zip(bounds, buckets, strict=False):
        if count and below + count >= rank:
            return low + (high - low) * (rank - below) / count
        below, low = below + count, high
    return bounds[-1]
