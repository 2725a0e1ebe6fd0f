"""The layout of a data folder, and the lock that claims it.

data/
  format       one line, "paddock 1": the version of the layout
  lock         locked by the running server, and holds its process id
  control      the control socket of that server
  log/         the segments of the log; a link, if it is on a disk of its own
  snapshots/   the snapshots
  events/      what the server knew besides; see `paddock.storage.events`
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from paddock.errors import PaddockError
from paddock.log.file.disk import Disk, write_file

FORMAT: Final = b"paddock 1\n"

_LOCK_ATTEMPTS: Final = 500
_LOCK_PAUSE: Final = 0.01


class DataDirectoryError(PaddockError):
    """The data folder cannot be used; one line that says why."""


class FolderInUseError(DataDirectoryError):
    """Another server uses the folder: the process `owner`, 0 if that is not known."""

    def __init__(self, folder: Path, owner: int) -> None:
        named = f" (process {owner})" if owner else ""
        super().__init__(f"data folder {folder}: in use by another server{named}")


class Claim(contextlib.AbstractContextManager["Claim"]):
    """An exclusive lock on a data folder, until `close`.

    It is the kernel's (flock), and ends with the process, however that ends. The file itself stays.
    Raises FolderInUseError if another server uses the folder.
    """

    def __init__(self, folder: Path) -> None:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._lock: int | None = lock
        try:
            _lock(lock)
        except BlockingIOError:
            owner = _owner(lock)
            self.close()
            raise FolderInUseError(folder, owner) from None
        # For messages of other processes. Always the same length, so a full disk does not matter.
        with contextlib.suppress(OSError):
            os.pwrite(lock, b"%-19d\n" % os.getpid(), 0)

    def close(self) -> None:
        """Release the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __exit__(self, *error: object) -> None:
        self.close()


@contextlib.contextmanager
def kept_free(folder: Path) -> Iterator[int | None]:
    """Keep servers from claiming a data folder within the scope, without writing to it.

    Yields None, or the process id of a server that has claimed it, 0 if that is not known.
    """
    try:
        lock = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    user = None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            user = _owner(lock)
        yield user
    finally:
        os.close(lock)


def _owner(lock: int) -> int:
    """Return the process id in a lock file; 0 if there is none."""
    owner = os.pread(lock, 20, 0).strip()
    return int(owner) if owner.isdigit() else 0


def _lock(file: int) -> None:
    """Lock a file exclusively, unless a server has: `kept_free` shares a lock for a moment."""
    for _ in range(_LOCK_ATTEMPTS - 1):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_UN)
            time.sleep(_LOCK_PAUSE)
        else:
            return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def make_folder(path: Path) -> None:
    """Create a folder for its owner only, with its parents, durably."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Otherwise a crash may remove the whole folder, whatever is synced in it.
    for folder in missing:
        Disk().sync_folder(folder.parent)


def write_format(folder: Path, disk: Disk) -> None:
    """Write the version of the layout, durably."""
    write_file(folder / "format", FORMAT, disk)
