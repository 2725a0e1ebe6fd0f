"""Scan a log without changing it, even while a server uses it.

A server stops at the first damage. A scan continues after it and yields all damage; the caller
decides what it means. A record that a running server was writing looks damaged, so damage in the
last segment is read again. If the server removes a file meanwhile, FileNotFoundError is raised, and
the caller starts again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from paddock.log.file.segment import HeaderError, SegmentHeader, SegmentReader, Tail, guess_header
from paddock.log.file.segments import describe_damage, segment_files
from paddock.log.interface import LogError, Record, Torn
from paddock.storage.layout import kept_free


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that was read to its end; yielded after its records."""

    path: Path
    size_bytes: int
    records: int
    first_index: int
    # One below the first if it holds no record.
    last_index: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Records that were durable and are damaged or missing now."""

    path: Path
    offset: int
    # The missing ones. `last` is None if their number is unknown, below `first` if there are none.
    first: int
    last: int | None
    reason: str
    # Whether the segment is whole and ends before them, and the next one begins behind them. In a
    # log that is damage as well; a history may have left them out.
    is_left_out: bool = False

    def is_within(self, index: int) -> bool:
        """Return whether a snapshot at this index holds all missing records."""
        return self.last is not None and self.last <= index


# What a scan yields.
Item: TypeAlias = Record | Gap | Torn | Segment


def user_of(folder: Path) -> int | None:
    """Return the process id of the server that uses a data folder, 0 if unknown; None if none."""
    with kept_free(folder) as user:
        return user


def scan(folder: Path, after: int = 0) -> Iterator[Item]:
    """Yield the records of a log and its damage, in order.

    Segments with records up to `after` only are skipped. A record after a gap is whole, but builds
    on missing ones. Raises LogError if the log is a link to a missing place.
    """
    if folder.is_symlink() and not folder.exists():
        raise LogError(f"{folder}: the log is in {folder.readlink()}, which is not there")
    files = segment_files(folder) if folder.exists() else []
    ends: list[int | None] = [first_index for first_index, _ in files[1:]]
    for (first_index, path), end in zip(files, [*ends, None], strict=False):
        if end is None or end > after + 1:
            yield from _scan_segment(path, first_index, end)


def _scan_segment(path: Path, first_index: int, end: int | None) -> Iterator[Item]:
    """Scan one segment, whose records from `end` on are superseded by the next segment."""
    # None: the last segment, which may have any number of records.
    last = None if end is None else end - 1
    data = path.read_bytes()
    try:
        header = SegmentHeader.decode(data)
        if header.first_index != first_index:
            raise HeaderError(f"the file holds the records from {header.first_index}")
    except HeaderError as error:
        guessed = guess_header(data, first_index)
        if guessed is None:
            yield Gap(path, 0, first_index, last, str(error))
            yield Segment(path, len(data), 0, first_index, first_index - 1)
            return
        header = guessed
        yield Gap(path, 0, first_index, first_index - 1, str(error))
    size_bytes = len(data)
    if end is None:
        # It is read again, and may be large.
        del data
        reader = _settled(path, header)
    else:
        reader = SegmentReader(data, header)
    count = 0
    last_index = first_index - 1
    while True:
        for record in reader:
            if end is not None and record.index >= end:
                break
            count += 1
            last_index = record.index
            yield record
        if end is not None and reader.next_index >= end:
            break
        tail = reader.tail()
        if end is None and not tail.is_damage:
            if tail is Tail.TORN:
                yield Torn(path, reader.end_offset, reader.remains_bytes)
            break
        offset, first = reader.end_offset, reader.next_index
        reason = f"record {first} is damaged or missing"
        if end is None and tail is not Tail.DAMAGED:
            reason = describe_damage(tail, first, reader.remains_bytes)
        goes_on = reader.skip_damage()
        if goes_on and end is not None:
            goes_on = reader.next_index < end
        missing = reader.next_index - 1 if goes_on else last
        if end is None and tail is Tail.LAST_DAMAGED:
            missing = first
        is_left_out = end is not None and tail is Tail.CLEAN
        yield Gap(path, offset, first, missing, reason, is_left_out)
        if not goes_on:
            break
    yield Segment(path, size_bytes, count, first_index, last_index)


def _settled(path: Path, header: SegmentHeader) -> SegmentReader:
    """Read the segment that a server may be writing to, until apparent damage stays."""
    damaged_offset = -1
    while True:
        data = path.read_bytes()
        reader = SegmentReader(data, header)
        for _ in reader:
            pass
        if not reader.tail().is_damage or reader.end_offset == damaged_offset:
            return SegmentReader(data, header)
        damaged_offset = reader.end_offset
