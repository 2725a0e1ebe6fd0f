"""Snapshots: the whole state at one index of the log, one file each, as chunks of bytes.

    file:   magic (8)  index (8)  then frames
    frame:  checksum (4)  kind (1)  length (4)  content

Numbers are big-endian. Frames of the kind "chunk" hold the chunks; that of the kind "end" holds
their number, and ends the file. A checksum is the CRC-32 of the rest of its frame, continued from
the checksum of the frame before, the first one from that of the file's beginning: so a lost,
repeated or misplaced frame is detected like a damaged one.

* A snapshot gets its name only when it is whole and synced. It is verified to its last byte before
  it is used, while it is loaded; a damaged one is reported and skipped.
* Files that a crash left half written or half removed are removed when the store is opened.
* It is synced as it grows. Otherwise the sync of the log, for which clients wait, queues behind one
  big sync: with a million nodes writes waited for up to 172 ms, and now for 20.
* Names are synced before the log is purged up to a snapshot.

The calls block, perhaps for seconds, so a server makes them in a thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Generic, TypeVar

from paddock._checksums import crc32
from paddock.log.file.disk import Disk, remove_file
from paddock.log.interface import LogError
from paddock.storage.retention import Retention, StoredSnapshot

Content = TypeVar("Content")

_MAGIC: Final = b"PADSNAP\x01"
_BEGINNING: Final = struct.Struct(">8sQ")
_FRAME: Final = struct.Struct(">IBI")
_KIND_AND_LENGTH: Final = struct.Struct(">BI")
_COVERED_OFFSET: Final = 4  # where the part of a frame starts that its checksum covers
_COUNT: Final = struct.Struct(">Q")
_KIND_CHUNK: Final = 1
_KIND_END: Final = 2
# The end of the name of a snapshot that is not to be used.
_ASIDE: Final = ".aside"
_NAME: Final = re.compile(r"(\d{20})\.snapshot")

CHUNK_BYTES_MAX: Final = (1 << 32) - 1
# Small chunks are buffered, so that not every node costs a system call.
_BUFFER_BYTES: Final = 1 << 18
_UNSYNCED_BYTES_MAX: Final = 1 << 20


class SnapshotWriter:
    """A snapshot being written. Ends with `commit` or `abort`.

    Raises LogError if the disk fails; older snapshots are not affected.
    """

    def __init__(self, disk: Disk, path: Path, index: int) -> None:
        self.index = index
        self._disk = disk
        self._path = path
        self._temporary = path.with_suffix(".tmp")
        self._count = 0
        # The bytes written so far.
        self.size = 0
        self._synced = 0
        # What waits to be written, in parts that are not copied, and its bytes.
        self._parts: list[bytes] = []
        self._waiting = 0
        try:
            self._file: int | None = disk.create(self._temporary)
        except OSError as error:
            raise self._refused(error) from error
        beginning = _BEGINNING.pack(_MAGIC, index)
        self._checksum = crc32(beginning)
        self._add(beginning)

    def append(self, chunk: bytes) -> None:
        """Append a chunk."""
        assert len(chunk) <= CHUNK_BYTES_MAX
        self._append_frame(_KIND_CHUNK, chunk)
        self._count += 1
        if self._waiting >= _BUFFER_BYTES:
            try:
                self._flush()
            except OSError as error:
                raise self._refused(error) from error

    def commit(self) -> None:
        """Make the snapshot durable under its name. After an error it may exist or not."""
        assert self._file is not None, "the snapshot is committed or aborted already"
        self._append_frame(_KIND_END, _COUNT.pack(self._count))
        try:
            self._flush()
            self._disk.sync(self._file)
            self._disk.rename(self._temporary, self._path)
            self._disk.sync_folder(self._path.parent)
        except OSError as error:
            self.abort()
            raise self._refused(error) from error
        self._close()

    def abort(self) -> None:
        """Remove what was written. Does nothing after `commit`."""
        if self._file is not None:
            self._close()
            with contextlib.suppress(OSError):
                self._disk.remove(self._temporary)

    def _append_frame(self, kind: int, content: bytes) -> None:
        covered = _KIND_AND_LENGTH.pack(kind, len(content))
        self._checksum = crc32(content, crc32(covered, self._checksum))
        self._add(self._checksum.to_bytes(4, "big") + covered)
        self._add(content)

    def _add(self, part: bytes) -> None:
        self._parts.append(part)
        self._waiting += len(part)

    def _flush(self) -> None:
        assert self._file is not None, "the snapshot is committed or aborted already"
        self._disk.write_parts(self._file, self._parts, self.size)
        self.size += self._waiting
        self._parts, self._waiting = [], 0
        if self.size - self._synced >= _UNSYNCED_BYTES_MAX:
            self._disk.sync(self._file)
            self._synced = self.size

    def _close(self) -> None:
        assert self._file is not None
        with contextlib.suppress(OSError):
            self._disk.close(self._file)
        self._file = None

    def _refused(self, error: OSError) -> LogError:
        return LogError(f"{self._path}: the snapshot cannot be written: {error.strerror}")


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[Content]):
    """A stored snapshot that was read to its last byte, and what was made of it."""

    index: int
    path: Path
    content: Content


@dataclass(frozen=True, slots=True)
class Damaged:
    """A snapshot that was skipped, and the reason."""

    index: int
    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Newest(Generic[Content]):
    """The newest whole snapshot, if there is one, and the newer ones that are damaged."""

    snapshot: Snapshot[Content] | None
    damaged: tuple[Damaged, ...]


class SnapshotStore:
    """The snapshots in an existing folder that no other process writes to.

    Raises LogError if the folder cannot be read, cleaned up and synced.
    """

    def __init__(self, folder: Path, *, disk: Disk | None = None) -> None:
        self._folder = folder
        self._disk = Disk() if disk is None else disk
        # Found damaged by `newest`: a purge does not count them as kept.
        self._damaged: set[int] = set()
        try:
            for path in list(folder.iterdir()):
                if path.suffix == ".tmp":
                    self._disk.remove(path)
            self._disk.sync_folder(folder)
        except OSError as error:
            raise LogError(f"{folder}: the snapshots cannot be opened: {error}") from error

    @property
    def folder(self) -> Path:
        """Where the snapshots are."""
        return self._folder

    def has(self, index: int) -> bool:
        """Return whether there is a snapshot at this index."""
        return self._path(index).exists()

    def begin(self, index: int) -> SnapshotWriter:
        """Begin a snapshot of the state after the log's record `index`."""
        self._damaged.discard(index)
        return SnapshotWriter(self._disk, self._path(index), index)

    def newest(self, read: Callable[[Path, Iterator[bytes]], Content]) -> Newest[Content]:
        """Read the newest snapshot that is whole, every byte of it, once.

        `read` makes something of a path and the chunks there, each of which is verified before it
        is yielded. What becomes of a damaged snapshot is dropped, an error as well; the error that
        `read` raises on a whole one passes.
        """
        damaged: list[Damaged] = []
        for index, path in reversed(snapshot_files(self._folder)):
            try:
                return Newest(Snapshot(index, path, _read_whole(path, index, read)), tuple(damaged))
            except (SnapshotDamagedError, OSError) as error:
                self._damaged.add(index)
                damaged.append(Damaged(index, path, str(error)))
        return Newest(None, tuple(damaged))

    def set_aside(self) -> None:
        """Rename all snapshots, so that none is used any more; those renamed before are removed.

        Raises LogError.
        """
        try:
            for former in self._folder.glob(f"*{_ASIDE}"):
                self._disk.remove(former)
            for _, path in snapshot_files(self._folder):
                self._disk.rename(path, path.with_name(path.name + _ASIDE))
            self._disk.sync_folder(self._folder)
        except OSError as error:
            raise LogError(f"{self._folder}: snapshots cannot be set aside: {error}") from error

    def purge(self, keep: int, history: Retention | None = None) -> int:
        """Remove all but the newest `keep` snapshots; return up to where the log may be purged.

        That is the index of the oldest one kept: each can be started from. With fewer than `keep`
        snapshots, the log is needed from its beginning, and 0 is returned. Older ones that history
        needs are kept as well.
        """
        assert keep > 0
        files = snapshot_files(self._folder)
        whole = [(index, path) for index, path in files if index not in self._damaged]
        if len(whole) < keep:
            return 0
        oldest_kept = whole[-keep][0]
        try:
            if history is not None:
                oldest_kept = history.oldest_kept([_stored(*one) for one in whole], oldest_kept)
            self._disk.sync_folder(self._folder)
            for index, path in files:
                if index < oldest_kept:
                    remove_file(path, self._disk)
        except OSError as error:
            raise LogError(f"{self._folder}: old snapshots cannot be removed: {error}") from error
        return oldest_kept

    def _path(self, index: int) -> Path:
        return self._folder / snapshot_name(index)


def _stored(index: int, path: Path) -> StoredSnapshot:
    status = path.stat()
    return StoredSnapshot(index, status.st_mtime, status.st_size)


class SnapshotDamagedError(Exception):
    """A snapshot is not whole; with offset and reason."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"offset {offset}: {reason}")
        self.offset = offset
        self.reason = reason


def snapshot_name(index: int) -> str:
    """Return the file name of the snapshot at this index."""
    return f"{index:020d}.snapshot"


def snapshot_index(name: str) -> int | None:
    """Return the index of the snapshot with this file name; None if it is none."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def snapshot_files(folder: Path) -> list[tuple[int, Path]]:
    """Return the snapshots in a folder with their indices, in order."""
    found = ((snapshot_index(path.name), path) for path in folder.iterdir())
    return sorted((index, path) for index, path in found if index is not None)


def read_chunks(file: IO[bytes], size: int, index: int) -> Iterator[bytes]:
    """Yield the chunks of the snapshot at this index from a file of `size` bytes.

    Raises SnapshotDamagedError where it differs from what was written.
    """
    beginning = file.read(_BEGINNING.size)
    if beginning != _BEGINNING.pack(_MAGIC, index):
        raise SnapshotDamagedError(0, "this is not how the snapshot at this index begins")
    checksum = crc32(beginning)
    offset = len(beginning)
    count = 0
    while True:
        header = file.read(_FRAME.size)
        if len(header) < _FRAME.size:
            raise SnapshotDamagedError(offset, "the rest is missing")
        expected, kind, length = _FRAME.unpack(header)
        # Checked before reading: a damaged length may exceed the memory.
        if offset + _FRAME.size + length > size:
            raise SnapshotDamagedError(offset, "damaged, or the rest is missing")
        content = file.read(length)
        checksum = crc32(content, crc32(header[_COVERED_OFFSET:], checksum))
        if checksum != expected:
            raise SnapshotDamagedError(offset, "damaged")
        offset += _FRAME.size + length
        if kind != _KIND_CHUNK:
            break
        yield content
        count += 1
    if kind != _KIND_END or content != _COUNT.pack(count) or offset != size:
        raise SnapshotDamagedError(offset, "the end does not fit the rest")


def _read_whole(
    path: Path, index: int, read: Callable[[Path, Iterator[bytes]], Content]
) -> Content:
    """Return what `read` makes of a snapshot. Raises SnapshotDamagedError before its errors."""
    chunks = read_snapshot(path, index)
    try:
        return read(path, chunks)
    finally:
        # It may have failed before it has seen the damage.
        for _ in chunks:
            pass


def read_snapshot(path: Path, index: int) -> Iterator[bytes]:
    """Yield the chunks of a snapshot file, as `read_chunks` does."""
    with path.open("rb") as file:
        yield from read_chunks(file, os.fstat(file.fileno()).st_size, index)
