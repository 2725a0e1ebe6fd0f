"""What a purge keeps for history: older snapshots, and the log between them.

The state at a moment is rebuilt from the newest snapshot at or before it, and the log from there.
So the rules are:

* What a restart needs stays: a number of snapshots, and the log from the oldest of them.
* Before that, a snapshot with the log up to the next one goes if the next one is older than the
  history is to reach back, or if what is kept for history alone is too large: the oldest first.
* A log that reaches back to its first record begins with the empty state, as if with a snapshot.
  A shared log does not: its first state may have been imported.
* The time of a snapshot is when its file was last written (mtime). Its state is a little older, so
  that more is kept and never less. A copy of a folder may make its files younger than they are.

A purge comes after a snapshot, so more may lie there until the next one.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddock.log.file.segments import segment_files


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot in a folder. The time is in seconds since the epoch."""

    index: int
    time: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment of the log in a folder."""

    first_index: int
    size_bytes: int


def oldest_kept(
    snapshots: Sequence[StoredSnapshot],
    segments: Sequence[StoredSegment],
    needed: int,
    since: float,
    bytes_max: int,
    *,
    is_log_needed: bool = True,
) -> int:
    """Return the index that history begins with; 0 for the beginning of the log.

    `needed` is the oldest snapshot that a restart needs. It needs the log from there as well,
    unless `is_log_needed` is false: then the log is shared, and these are a server's own notes.
    `since` is the time that history is to reach back to. Snapshots and segments are in the order of
    their indices.
    """
    begins = [one for one in snapshots if one.index <= needed]
    if is_log_needed and segments and segments[0].first_index == 1:
        # The empty state is older than everything.
        begins.insert(0, StoredSnapshot(0, 0.0, 0))
    for begin, following in itertools.pairwise(begins):
        if following.time >= since:
            size = _history_bytes(snapshots, segments, begin.index, needed, is_log_needed)
            if size <= bytes_max:
                return begin.index
    return needed


def _history_bytes(
    snapshots: Sequence[StoredSnapshot],
    segments: Sequence[StoredSegment],
    begin: int,
    needed: int,
    is_log_needed: bool,
) -> int:
    """Return how much is there for history alone if it begins at an index."""
    size = sum(one.size_bytes for one in snapshots if begin <= one.index < needed)
    for position, segment in enumerate(segments):
        # A segment goes if the next one begins at or before the first record that is needed.
        end = segments[position + 1].first_index if position + 1 < len(segments) else None
        is_history = end is None or end > begin + 1
        if is_log_needed:
            is_history = is_history and end is not None and end <= needed + 1
        size += is_history * segment.size_bytes
    return size


class Retention:
    """How far history reaches back in one data folder, and how large it may be."""

    def __init__(
        self,
        seconds: float,
        bytes_max: int,
        log: Path,
        *,
        is_log_needed: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._seconds = seconds
        self._bytes_max = bytes_max
        self._log = log
        self._is_log_needed = is_log_needed
        # The clock that the files' times come from.
        self._now = now

    def oldest_kept(self, snapshots: Sequence[StoredSnapshot], needed: int) -> int:
        """Return the index that history begins with. Raises OSError."""
        segments = []
        # A server that shares its log makes the folder with its first record.
        for first_index, path in segment_files(self._log) if self._log.exists() else ():
            with contextlib.suppress(FileNotFoundError):
                segments.append(StoredSegment(first_index, path.stat().st_size))
        return oldest_kept(
            snapshots,
            segments,
            needed,
            self._now() - self._seconds,
            self._bytes_max,
            is_log_needed=self._is_log_needed,
        )
