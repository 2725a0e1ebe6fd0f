"""The history of a server that shares its log: the records that it has applied, in its own files.

    data/cluster/history/service                       the id of the service, in hex
    data/cluster/history/00000000000000000001.log      segments

A segment has the format of `paddock.log.file.segment`, and is named after its first index. What it
has as the payload of a record is

    server length (1)  number (8)  revision (8)  server  payload as it was committed

with big-endian numbers. With a snapshot in `data/cluster`, which is the state after the record of
its index, `SharedReplay` builds the state after any later record, as long as none is missing.

* Nothing stands on these files but history. They are synced when a segment ends, and no sooner.
* A segment that begins later than the one before it has ended is a gap: the disk was full or slow,
  or the server was away for so long that the shared log did not have those records any more.
* Each run begins a segment of its own. What a crash left at the end of the last one is cut before.
* A record that is there is not written again: a server that starts applies some of them twice. It
  is compared with what is there, since the log may have been restored from a backup meanwhile.
* Of another service, or of a log that was restored from a backup, nothing follows what is there.
  That is set aside, in `history.aside`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from paddock.log.file.disk import Disk, remove_file, write_file
from paddock.log.file.segment import (
    SEGMENT_HEADER_BYTES,
    SPARE_BYTES,
    HeaderError,
    SegmentHeader,
    SegmentReader,
    new_marker,
    unmarked_parts,
)
from paddock.log.file.segments import segment_files, segment_name
from paddock.log.interface import LogError, Position, Record
from paddock.storage.data_directory import CACHE
from paddock.storage.retention import Retention
from paddock.storage.scan import Gap, Item, scan

FOLDER: Final = "history"
"""Its name in the folder of a server that shares its log."""

SERVICE: Final = "service"
"""The name of the file in it that names the service."""

_ASIDE: Final = "history.aside"
_SEGMENT_BYTES: Final = 8 << 20
_SEGMENT_BYTES_MIN: Final = 64 << 10
_ORIGIN: Final = struct.Struct(">BQQ")


class EncodedRecord:
    """A record of a shared log as a segment holds it, without a copy of its payload."""

    __slots__ = ("parts", "position", "size")

    def __init__(self, record: Record) -> None:
        server = record.server
        assert server is not None, "a shared log knows who has proposed"
        self.position = _position(record)
        origin = _ORIGIN.pack(len(server), record.number, record.revision) + server
        # All that follows the marker of the segment.
        self.parts = unmarked_parts(record.index, (origin, record.payload))
        self.size = sum(map(len, self.parts))


def decode_shared(record: Record) -> Record:
    """Return the record of a shared log that a segment holds. Raises ValueError."""
    stored = record.payload
    if len(stored) < _ORIGIN.size:
        raise ValueError(f"record {record.index} is no record of a shared log")
    length, number, revision = _ORIGIN.unpack_from(stored)
    end = _ORIGIN.size + length
    if len(stored) < end:
        raise ValueError(f"record {record.index} is no record of a shared log")
    return Record(record.index, stored[end:], stored[_ORIGIN.size : end], number, revision)


def read_history(folder: Path, after: int = 0) -> Iterator[Item]:
    """Yield the records of a history in order, as the shared log had them, and what is missing.

    A gap that the server has left has `is_left_out`; any other is damage. The segments with records
    up to `after` only are skipped. If a server removes a file meanwhile, FileNotFoundError is
    raised, and the caller starts again.
    """
    for item in scan(folder, after):
        if isinstance(item, Record):
            try:
                yield decode_shared(item)
            except ValueError as error:
                yield Gap(folder, 0, item.index, item.index, str(error))
        else:
            yield item


def check_service(data: Path, service: bytes) -> None:
    """Raise LogError unless the history in a data folder is of this service."""
    path = data / CACHE / FOLDER / SERVICE
    try:
        found = path.read_bytes().strip()
    except FileNotFoundError:
        raise LogError(f"{data}: holds no history") from None
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}") from error
    if found != service.hex().encode():
        raise LogError(f"{data}: holds the history of another service")


def remove_history(cache: Path) -> None:
    """Remove what there is of it, as far as the disk lets us."""
    for name in (FOLDER, _ASIDE):
        shutil.rmtree(cache / name, ignore_errors=True)


class HistoryFiles:
    """The history in one data folder, as the server writes it, in any thread.

    `append` raises OSError; then some of what it was given is not there, and the next call goes on.
    """

    def __init__(
        self,
        folder: Path,
        bytes_max: int,
        *,
        disk: Disk | None = None,
        segment_bytes: int = _SEGMENT_BYTES,
    ) -> None:
        # The id of the service, before the first record comes.
        self.service = b""
        self._folder = folder
        self._bytes_max = bytes_max
        self._disk = Disk() if disk is None else disk
        self._segment_bytes = min(segment_bytes, max(bytes_max // 4, _SEGMENT_BYTES_MIN))
        self._lock = threading.Lock()
        self._is_open = False
        # The last record; None before the first one.
        self._last: Position | None = None
        # What is there, behind the first record that came again; and the last that was read of it.
        self._stored: Iterator[Item] | None = None
        self._stored_record: Record | None = None
        # By first index, the sizes of the segments. The last one may be the active one.
        self._sizes: dict[int, int] = {}
        self._active: _Active | None = None

    def retention(self, seconds: float) -> Retention:
        """Return what a purge of the snapshots beside it leaves for history."""
        return Retention(seconds, self._bytes_max, self._folder, is_log_needed=False)

    def append(self, records: Sequence[EncodedRecord]) -> None:
        """Write records that follow each other in the log."""
        with self._lock:
            self._open()
            for record in records:
                self._check_same_log(record.position)
                if self._last is None or record.position.index > self._last.index:
                    self._append(record)
            if self._active is not None:
                self._flush(self._active)

    def purge(self, below: int) -> None:
        """Remove the segments that only hold records with an index of at most `below`."""
        try:
            with self._lock:
                while len(self._sizes) > 1 and sorted(self._sizes)[1] <= below + 1:
                    self._remove_oldest()
        except OSError as error:
            raise LogError(f"{self._folder}: old files cannot be removed: {error}") from error

    def set_aside(self) -> None:
        """Begin anew: what is there is of another log. Raises OSError."""
        with self._lock:
            self._set_aside()

    def close(self) -> None:
        """End the segment. Raises OSError if it may not be on the disk."""
        with self._lock:
            self._end_segment()

    def _open(self) -> None:
        """Find out what is there, and cut what a crash or an error has left at its end."""
        if self._is_open:
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for leftover in self._folder.glob("*.tmp"):
            self._disk.remove(leftover)
        name, service = self._folder / SERVICE, self.service.hex().encode()
        files = segment_files(self._folder)
        if files and (not name.exists() or name.read_bytes().strip() != service):
            self._set_aside()
            self._folder.mkdir(mode=0o700)
            files = []
        if not files:
            write_file(name, service + b"\n", self._disk)
        self._last = self._stored = self._stored_record = None
        while files and self._last is None:
            self._last = _cut(files[-1][1])
            if self._last is None:
                files.pop()
        self._sizes = {first_index: path.stat().st_size for first_index, path in files}
        self._is_open = True

    def _check_same_log(self, at: Position) -> None:
        """Set aside what is there if the record at a position shows that it is of another log."""
        last = self._last
        if last is None:
            return
        if at.index < last.index:
            is_same = at.revision <= last.revision and self._is_there(at)
        else:
            self._stored = self._stored_record = None
            is_same = at.revision >= last.revision if at.index > last.index else at == last
        if not is_same:
            self._set_aside()
            self._open()

    def _is_there(self, at: Position) -> bool:
        """Return whether a record that comes again is the one that is there, or is missing."""
        if self._stored is None:
            self._stored = read_history(self._folder, at.index - 1)
        stored = self._stored_record
        while stored is None or stored.index < at.index:
            item = next(self._stored, None)
            if item is None:
                return True
            if isinstance(item, Record):
                stored = self._stored_record = item
        return stored.index > at.index or _position(stored) == at

    def _append(self, record: EncodedRecord) -> None:
        active, last, index = self._active, self._last, record.position.index
        if active is not None and (
            last is None
            or index != last.index + 1
            or active.size + active.waiting_bytes >= self._segment_bytes
        ):
            self._end_segment()
            active = None
        if active is None:
            active = self._begin_segment(index)
        active.add(record)
        self._last = record.position

    def _begin_segment(self, first_index: int) -> _Active:
        header = SegmentHeader(first_index, new_marker())
        path = self._folder / segment_name(first_index)
        temporary = path.with_suffix(".tmp")
        active = _Active(self._disk.create(temporary), header.marker, first_index)
        try:
            self._disk.write(active.file, header.encode() + bytes(SPARE_BYTES), 0)
            self._disk.rename(temporary, path)
        except BaseException:
            active.close(self._disk)
            temporary.unlink(missing_ok=True)
            raise
        self._active = active
        self._sizes[first_index] = active.size + SPARE_BYTES
        while len(self._sizes) > 1 and sum(self._sizes.values()) > self._bytes_max:
            self._remove_oldest()
        return active

    def _end_segment(self) -> None:
        active = self._active
        if active is not None:
            self._flush(active)
            self._active = None
            try:
                self._disk.sync(active.file)
                self._disk.drop(active.file)
            finally:
                active.close(self._disk)

    def _flush(self, active: _Active) -> None:
        if not active.waiting:
            return
        try:
            # Not copied into one piece: with large records that took most of the time.
            parts = [*active.waiting, bytes(SPARE_BYTES)]
            self._disk.write_parts(active.file, parts, active.size)
        except OSError:
            active.close(self._disk)
            self._active, self._is_open = None, False
            # Cuts what has come of it. If that fails, too, the next call tries again.
            with contextlib.suppress(OSError):
                self._open()
            raise
        active.size += active.waiting_bytes
        active.waiting, active.waiting_bytes = [], 0
        self._sizes[active.first_index] = active.size + SPARE_BYTES

    def _remove_oldest(self) -> None:
        first_index = min(self._sizes)
        remove_file(self._folder / segment_name(first_index), self._disk)
        del self._sizes[first_index]

    def _set_aside(self) -> None:
        if self._active is not None:
            self._active.close(self._disk)
        self._active, self._is_open, self._last, self._sizes = None, False, None, {}
        if self._folder.exists():
            aside = self._folder.with_name(_ASIDE)
            if aside.exists():
                shutil.rmtree(aside)
            self._folder.rename(aside)


class _Active:
    """The segment that records go to."""

    def __init__(self, file: int, marker: bytes, first_index: int) -> None:
        self.file = file
        self.marker = marker
        self.first_index = first_index
        # What is in the file, without the zero at its end; and what is not yet.
        self.size = SEGMENT_HEADER_BYTES
        self.waiting: list[bytes] = []
        self.waiting_bytes = 0

    def add(self, record: EncodedRecord) -> None:
        """Have a record written with the next flush."""
        self.waiting.append(self.marker)
        self.waiting += record.parts
        self.waiting_bytes += len(self.marker) + record.size

    def close(self, disk: Disk) -> None:
        """Close the file, which is not written to any more."""
        with contextlib.suppress(OSError):
            disk.close(self.file)


def _position(record: Record) -> Position:
    assert record.server is not None, "a shared log knows who has proposed"
    return Position(record.index, record.revision, record.server, record.number)


def _cut(path: Path) -> Position | None:
    """Cut off what follows the last whole record of a segment; return where that stands.

    A segment without a whole record is removed.
    """
    data = path.read_bytes()
    last: Record | None = None
    end = 0
    with contextlib.suppress(HeaderError, ValueError):
        reader = SegmentReader(data)
        for record in reader:
            last, end = decode_shared(record), reader.end_offset
    if last is None:
        path.unlink()
        return None
    if data[end:] != bytes(SPARE_BYTES):
        # Shorter first: what is there must not come back as the zero at the end.
        os.truncate(path, end)
        os.truncate(path, end + SPARE_BYTES)
    return _position(last)
