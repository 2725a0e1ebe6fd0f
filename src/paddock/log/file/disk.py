"""The file operations that can fail, in one object.

The log and the snapshots reach the disk through a `Disk` that they are given, so a test can hand
them one that is full, or whose syncs fail, or that loses power between two operations.

Nothing here decides anything; an OSError goes to the caller, who knows what it means.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_ZEROS: Final = bytes(1 << 20)
# How many pieces the kernel takes in one call.
_PARTS_MAX: Final = 1024
# How much of a file is given back at once.
_REMOVED_BYTES: Final = 4 << 20


class Disk:
    """The real disk."""

    def create(self, path: Path) -> int:
        """Open a new, empty file for reading and writing; what had the name is emptied."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def open(self, path: Path) -> int:
        """Open an existing file for reading and writing."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def close(self, file: int) -> None:
        """Close an open file."""
        os.close(file)

    def size(self, file: int) -> int:
        """Return how many bytes the file has."""
        return os.fstat(file).st_size

    def read(self, file: int, size: int, offset: int) -> bytes:
        """Read `size` bytes at `offset`, fewer only where the file ends."""
        pieces = []
        while size > 0:
            piece = os.pread(file, size, offset)
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
            offset += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def write(self, file: int, data: bytes, offset: int) -> None:
        """Write all of `data` at `offset`: one system call, unless the kernel takes it in parts."""
        written = os.pwrite(file, data, offset)
        while written < len(data):
            written += os.pwrite(file, memoryview(data)[written:], offset + written)

    def write_parts(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        """Write pieces behind each other, the first at `offset`; they are not copied before."""
        for start in range(0, len(parts), _PARTS_MAX):
            some = parts[start : start + _PARTS_MAX]
            size = sum(map(len, some))
            written = os.pwritev(file, some, offset)
            if written < size:
                self.write(file, b"".join(some)[written:], offset + written)
            offset += size

    def preallocate(self, file: int, start: int, end: int) -> None:
        """Write zeros from `start` to `end`, so that later writes there need no new space.

        A block that was only reserved (posix_fallocate) is marked as unwritten, and the first write
        to it changes the file system's metadata as well, in the sync that a client waits for.
        Reserving and then writing took 13 ms for 8 MiB where writing alone took 5 ms (ext4).
        """
        for offset in range(start, end, len(_ZEROS)):
            self.write(file, _ZEROS[: end - offset], offset)

    def sync(self, file: int) -> None:
        """Wait until the file's data, and its size, are on the disk."""
        os.fdatasync(file)

    def drop(self, file: int) -> None:
        """Let the system forget a file that was synced, and will not be read soon.

        Its memory is used again for what is written next. New memory takes the system longer to
        come by: up to 1.3 ms for each MiB on a virtual machine, compared with 0.5.
        """
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file, replacing another one. Durable after `sync_folder`."""
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        """Remove a file, a large one from its end in steps.

        As long as its space is given back, everybody's syncs wait: for up to 227 ms where a
        snapshot of 200 MiB was removed at once, for 7 ms where it went in steps (ext4).
        """
        # A process that may remove a file need not be allowed to change it.
        with contextlib.suppress(OSError):
            status = path.lstat()
            # Not what has another name too, or is a link.
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                for size in range(status.st_size - _REMOVED_BYTES, 0, -_REMOVED_BYTES):
                    os.truncate(path, size)
        path.unlink()

    def sync_folder(self, folder: Path) -> None:
        """Wait until the names in the folder are on the disk."""
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def write_file(path: Path, content: bytes, disk: Disk) -> None:
    """Write a small file that is there whole or not at all, durably."""
    temporary = path.with_suffix(".tmp")
    file = disk.create(temporary)
    try:
        try:
            disk.write(file, content, 0)
            disk.sync(file)
        finally:
            disk.close(file)
        disk.rename(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    disk.sync_folder(path.parent)


def remove_file(path: Path, disk: Disk) -> None:
    """Remove a file whose half is never seen under its name. May be tried again after an error."""
    leftover = path.with_suffix(".tmp")
    with contextlib.suppress(FileNotFoundError):
        disk.rename(path, leftover)
    disk.sync_folder(path.parent)
    with contextlib.suppress(FileNotFoundError):
        disk.remove(leftover)
