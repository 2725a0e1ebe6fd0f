"""Makes a difference small: the shortest tail of its segment, then as few steps as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Fails = Callable[[Sequence[int]], bool]


def shortest_tail(last: int, fails: Fails) -> list[int]:
    """Return the numbers of the last steps that still fail together, found by doubling."""
    size = 1
    while size <= last:
        tail = list(range(last + 1 - size, last + 1))
        if fails(tail):
            return tail
        size *= 2
    return list(range(last + 1))


def shrink(steps: Sequence[int], fails: Fails, budget: int = 300) -> list[int]:
    """Leave out ever smaller pieces while it still fails; try at most `budget` times."""
    left = list(steps)
    piece = max(1, len(left) // 2)
    while budget > 0:
        start, removed = 0, False
        while start < len(left) and budget > 0:
            without = left[:start] + left[start + piece :]
            budget -= 1
            if without and fails(without):
                left, removed = without, True
            else:
                start += piece
        if piece == 1 and not removed:
            break
        piece = max(1, piece // 2)
    return left
