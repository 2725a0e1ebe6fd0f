"""How far history reaches back, and what is missing in it.

A state can be rebuilt if there is a snapshot before it, or the beginning of the log, and every
record from there on. After a missing record it goes on with the next snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paddock.protocol.jute import DecodeError
from paddock.state.entry import Batch


@dataclass(frozen=True, slots=True)
class Moment:
    """A state: the last record in it, its zxid, and its time; the time is 0 if there is none."""

    index: int
    zxid: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Unreached:
    """States that cannot be rebuilt: those after the record `after`, before a snapshot."""

    after: int
    resumes: Moment


@dataclass(frozen=True, slots=True)
class Reach:
    """The first and the last state that can be rebuilt, and those between them that cannot."""

    begin: Moment
    end: Moment
    gaps: tuple[Unreached, ...] = ()


def first_time_ms(payload: bytes) -> int:
    """Return the time of the first entry of a batch; 0 if it cannot be read, or there is none."""
    try:
        entries = Batch.decode(payload, {}).entries
    except DecodeError:
        return 0
    return entries[0].time_ms if entries else 0


class Reached:
    """Collects the whole records that a check comes across."""

    def __init__(self) -> None:
        # Invariant: in order, and not adjacent.
        self._ranges: list[tuple[int, int]] = []

    def take(self, index: int) -> None:
        """Take the next whole record."""
        if self._ranges and self._ranges[-1][1] == index - 1:
            self._ranges[-1] = self._ranges[-1][0], index
        else:
            self._ranges.append((index, index))

    def reach(self, begins: Sequence[Moment], end: Moment) -> Reach | None:
        """Return which states can be rebuilt; None without a snapshot to begin with.

        `begins` are the snapshots. `end` was rebuilt from the last of them.
        """
        return reach(begins, self._ranges, end)


def reach(begins: Sequence[Moment], ranges: Iterable[tuple[int, int]], end: Moment) -> Reach | None:
    """Return which states can be rebuilt from snapshots and whole records, both in order."""
    begins = [one for one in begins if one.index <= end.index]
    if not begins:
        return None
    ranges = list(ranges)
    gaps: list[Unreached] = []
    position = begins[0].index
    while position < end.index:
        # The one range that has the next record, if any has.
        position = next((last for first, last in ranges if first <= position + 1 <= last), position)
        following = next((one for one in begins if one.index > position), None)
        if position >= end.index or following is None:
            break
        gaps.append(Unreached(position, following))
        position = following.index
    return Reach(begins[0], end, tuple(gaps))
