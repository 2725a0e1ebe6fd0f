"""The folder that holds a log's segments: their names, and how one is made, opened, read, removed.

A segment is a file named after its first index, `00000000000000000001.log`. The rules:

* A segment gets its name only when its beginning is synced and every record before its first index
  is durable. So a name promises the records before it.
* A segment grows in steps up to its limit, so that no write waits for more than a step. The space
  is on the disk before a record goes there, with a zero behind it: a file without was cut short.
* A segment supersedes what earlier ones hold at its first index or above. So a record whose sync
  failed is replaced without trusting the file that it was written to.
* Opening changes no record, since what it finds may be damage. `settle` comes before anything is
  served or written: it overwrites a torn tail, which only the last segment can have, with zeros.
* What opening finds at the very end may be in the kernel's memory only, left there by a server that
  was killed, or whose sync failed. `settle` syncs it again, and writes the last record again,
  because a failed sync forgets it.
* A log always has a segment, also one that begins behind a snapshot and holds nothing yet. A log
  without any, or one that ends before a snapshot, has lost something.
* Anything else that is not right raises LogCorruptError and changes nothing.
"""

from __future__ import annotations

import bisect
import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from paddock.log.file.disk import Disk, remove_file, write_file
from paddock.log.file.segment import (
    RECORD_BYTES,
    SPARE_BYTES,
    HeaderError,
    SegmentHeader,
    SegmentReader,
    Tail,
    decode_record,
    encode_record,
    new_marker,
    record_parts,
)
from paddock.log.interface import WAY_ON, LogCorruptError, LogError, Record, Torn

if TYPE_CHECKING:
    from paddock.log.file.disk_writer import DiskWriter

_NAME: Final = re.compile(r"(\d{20})\.log")


def segment_files(folder: Path) -> list[tuple[int, Path]]:
    """List the segments in a folder, each with the first index that its name says, in order."""
    matches = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match is not None)


def segment_name(first_index: int) -> str:
    """Return the name of the segment whose records begin with this index."""
    return f"{first_index:020d}.log"


def empty_segment(first_index: int) -> bytes:
    """Return what a segment holds that has no records, nor room for any."""
    return SegmentHeader(first_index, new_marker()).encode() + bytes(SPARE_BYTES)


def begin_log(folder: Path, after: int, disk: Disk) -> None:
    """Begin the log that goes on behind a snapshot, in a folder that exists, durably."""
    write_file(folder / segment_name(after + 1), empty_segment(after + 1), disk)


def describe_damage(tail: Tail, index: int, remains_bytes: int) -> str:
    """Say what is wrong behind the last good record of a segment, at the place of this index."""
    if tail is Tail.CUT_SHORT:
        return (
            f"the file was cut short: record {index} is incomplete, or the space behind the last"
            " record is missing, and so may be any number of records"
        )
    if tail is Tail.LAST_DAMAGED:
        return (
            f"record {index}, the last one, is damaged ({remains_bytes} bytes); it was written"
            " whole, so this is not what a crash leaves behind"
        )
    return f"record {index} is damaged or missing, though later ones were written"


@dataclass(frozen=True, slots=True)
class _End:
    """The end of the last segment, as it was found."""

    path: Path
    header: SegmentHeader
    last_bytes: bytes
    last_offset: int
    offset: int
    torn_bytes: int


@dataclass(frozen=True, slots=True)
class Growth:
    """How a segment grows: by so much at a time, up to a limit. One large record may exceed it."""

    limit_bytes: int
    step_bytes: int


class ActiveSegment:
    """The segment that the next record goes to. Its errors are OSError."""

    def __init__(
        self, disk: Disk, file: int, header: SegmentHeader, offset: int, size: int, growth: Growth
    ) -> None:
        self._disk = disk
        self._file = file
        self._marker = header.marker
        # Where the next record goes. Invariant: every record before it is durable.
        self._offset = offset
        # Up to where there is space, and whether there was none for the last record.
        self._size = size
        self._is_short = False
        self._growth = growth

    def has_room(self, payload: bytes) -> bool:
        """Return whether a record with this payload fits."""
        return self._end_with(payload) + SPARE_BYTES <= max(self._size, self._growth.limit_bytes)

    def make_space(self, payload: bytes) -> None:
        """Preallocate what a record with this payload, which fits, needs.

        After an error the records are as they were, and another one may be tried. It needs new
        space, however small it is: either all writes are refused or none.
        """
        end = self._end_with(payload) + SPARE_BYTES
        if end > self._size or self._is_short:
            self._is_short = True
            size = max(end, min(self._size + self._growth.step_bytes, self._growth.limit_bytes))
            self._disk.preallocate(self._file, self._size, size)
            self._disk.sync(self._file)
            self._size = size
            self._is_short = False

    def has_space(self, payload: bytes) -> bool:
        """Return whether a record with this payload needs no new space."""
        return not self._is_short and self._end_with(payload) + SPARE_BYTES <= self._size

    def append(self, index: int, payload: bytes) -> None:
        """Write a record that there is space for, and sync. After an error nothing may follow.

        It is a record of today's format: nothing is added to early segments.
        """
        parts = record_parts(self._marker, index, payload)
        self._disk.write_parts(self._file, parts, self._offset)
        self._disk.sync(self._file)
        self.end_append(payload)

    def begin_append(self, disk_writer: DiskWriter, index: int, payload: bytes) -> None:
        """Begin to write a record that there is space for, and to sync.

        When that is done comes `end_append`. After an error nothing may follow.
        """
        parts = record_parts(self._marker, index, payload)
        disk_writer.write(self._file, self._offset, parts)

    def end_append(self, payload: bytes) -> None:
        """Go on behind a record that is durable now."""
        self._offset = self._end_with(payload)

    def read_back(self, index: int) -> Record | None:
        """Return the record that `append` failed to make durable, if it can be read whole."""
        data = self._disk.read(self._file, self._size - self._offset, self._offset)
        record = decode_record(self._marker, data)
        return record if record is not None and record.index == index else None

    def close(self) -> None:
        """Close the file. What counts is synced, so an error of closing tells nothing new."""
        with contextlib.suppress(OSError):
            self._disk.close(self._file)

    def _end_with(self, payload: bytes) -> int:
        return self._offset + RECORD_BYTES + len(payload)


class SegmentFolder:
    """All segments of a log. Purging and reading may run beside the thread that adds segments.

    If the disk refuses, OSError is raised.
    """

    def __init__(self, path: Path, growth: Growth, disk: Disk) -> None:
        self._path = path
        self._growth = growth
        self._disk = disk
        self._lock = threading.Lock()
        # The first index of each segment, ascending; under the lock.
        self._first_indices: list[int] = []
        # What opening found at the end of the last segment, until it is settled.
        self._end: _End | None = None

    def open(self) -> int:
        """Find the segments and return the last index that is whole.

        Raises LogCorruptError if the last segment is damaged; `records` judges the others.
        """
        self._first_indices = [first_index for first_index, _ in segment_files(self._path)]
        if not self._first_indices:
            return 0
        first_index = self._first_indices[-1]
        reader = self._read(first_index)
        for _ in reader:
            pass
        tail = reader.tail()
        if tail.is_damage:
            raise self._damaged(first_index, reader, tail)
        self._end = _End(
            self._segment_path(first_index),
            reader.header,
            reader.last_bytes,
            reader.last_offset,
            reader.end_offset,
            reader.remains_bytes,
        )
        return reader.next_index - 1

    @property
    def torn(self) -> Torn | None:
        """The torn tail that opening has found."""
        end = self._end
        if end is None or end.torn_bytes == 0:
            return None
        return Torn(end.path, end.offset, end.torn_bytes)

    def settle(self) -> ActiveSegment | None:
        """Make what opening has found durable, cut a torn tail, return the segment to go on in.

        Returns None if the next record needs a new segment.
        """
        for leftover in self._path.glob("*.tmp"):
            self._disk.remove(leftover)
        end = self._end
        if end is None:
            return None
        file = self._disk.open(end.path)
        try:
            # The zeros behind it as well, all that there are: after a sync that failed the kernel
            # may show what never arrives. Space that is there needs no room on a full disk.
            size = self._disk.size(file)
            space = 0 if end.header.is_early else max(size - end.offset, SPARE_BYTES)
            zeros = bytes(max(end.torn_bytes, space))
            self._disk.write(file, end.last_bytes + zeros, end.last_offset)
            self._disk.sync(file)
            self._disk.sync_folder(self._path)
            size = end.offset + len(zeros)
        except BaseException:
            self._disk.close(file)
            raise
        self._end = None
        active = ActiveSegment(self._disk, file, end.header, end.offset, size, self._growth)
        if end.header.is_early:
            active.close()
            return None
        return active

    def create(self, first_index: int, record: Record | None = None) -> ActiveSegment:
        """Make a segment, empty or with its first record, which is durable when this returns.

        An OSError of any kind leaves the records that were durable untouched, but the segment may
        exist: the caller has to create it again before it writes at this index or above.
        """
        header = SegmentHeader(first_index, new_marker())
        contents = header.encode()
        if record is not None:
            contents += encode_record(header.marker, first_index, record.payload)
        offset = len(contents)
        contents += bytes(SPARE_BYTES)
        path = self._segment_path(first_index)
        temporary = path.with_suffix(".tmp")
        file = self._disk.create(temporary)
        try:
            self._disk.write(file, contents, 0)
            self._disk.sync(file)
            self._disk.rename(temporary, path)
            self._disk.sync_folder(self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                self._disk.close(file)
            with contextlib.suppress(OSError):
                self._disk.remove(temporary)
            raise
        with self._lock:
            if first_index not in self._first_indices[-1:]:
                self._first_indices.append(first_index)
        return ActiveSegment(self._disk, file, header, offset, len(contents), self._growth)

    def records(self, after: int, last_index: int) -> Iterator[Record]:
        """Read the records above `after` up to `last_index`, all of which were durable once.

        Raises LogCorruptError at the place of the first one that is damaged or missing.
        """
        if after >= last_index:
            return
        with self._lock:
            first_indices = list(self._first_indices)
        position = bisect.bisect_right(first_indices, after + 1) - 1
        if position < 0:
            raise self._beginning_missing(after, first_indices)
        first_indices = first_indices[position:]
        for first_index, end_index in zip(
            first_indices, [*first_indices[1:], last_index + 1], strict=True
        ):
            reader = self._read(first_index)
            for record in reader:
                if record.index >= end_index:
                    break
                if record.index > after:
                    yield record
            if reader.next_index < end_index:
                raise self._damaged(first_index, reader, Tail.DAMAGED)

    def purge(self, below: int) -> None:
        """Remove the segments that only hold records with an index of at most `below`."""
        while (first_index := self._oldest(below)) is not None:
            # Without the lock, which the writer of the next record may need.
            remove_file(self._segment_path(first_index), self._disk)
            with self._lock:
                del self._first_indices[0]

    def _oldest(self, below: int) -> int | None:
        """Return the first segment if all of its records have an index of at most `below`."""
        with self._lock:
            first_indices = self._first_indices
            is_old = len(first_indices) > 1 and first_indices[1] <= below + 1
            return first_indices[0] if is_old else None

    def _segment_path(self, first_index: int) -> Path:
        return self._path / segment_name(first_index)

    def _read(self, first_index: int) -> SegmentReader:
        path = self._segment_path(first_index)
        try:
            file = self._disk.open(path)
            try:
                data = self._disk.read(file, self._disk.size(file), 0)
            finally:
                self._disk.close(file)
        except OSError as error:
            raise LogError(f"{path}: cannot be read: {error.strerror}") from error
        try:
            reader = SegmentReader(data)
            if reader.header.first_index != first_index:
                raise HeaderError(f"the file holds the records from {reader.header.first_index}")
        except HeaderError as error:
            raise LogCorruptError(f"{path}: offset 0: {error}. {WAY_ON}") from error
        return reader

    def _damaged(self, first_index: int, reader: SegmentReader, tail: Tail) -> LogCorruptError:
        path = self._segment_path(first_index)
        what = describe_damage(tail, reader.next_index, reader.remains_bytes)
        return LogCorruptError(f"{path}: offset {reader.end_offset}: {what}. {WAY_ON}")

    def _beginning_missing(self, after: int, first_indices: list[int]) -> LogCorruptError:
        start = f"the snapshot at {after}" if after else "no whole snapshot"
        if not first_indices:
            return LogCorruptError(
                f"{self._path}: all files of the log are missing, and there is {start} to start"
                f" from. {WAY_ON}"
            )
        return LogCorruptError(
            f"{self._path}: the log begins with record {first_indices[0]}, but there is {start} to"
            f" start from, so record {after + 1} is missing. {WAY_ON}"
        )
