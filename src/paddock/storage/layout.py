"""What a data folder looks like from outside: its names, and the file that says which layout it is.

data/
  format       one line, "paddock 1": which layout this is
  lock         held by the server that runs, with its process id inside
  control      the socket on which it takes commands
  log/         the segments of the log; a link, if it is on a disk of its own
  snapshots/   the snapshots
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from paddock.errors import PaddockError
from paddock.log.file.disk import Disk, write_file

FORMAT: Final = b"paddock 1\n"

_LOCK_ATTEMPTS: Final = 500
_LOCK_PAUSE: Final = 0.01


class DataDirectoryError(PaddockError):
    """The data folder cannot be used; one line that says why."""


class FolderInUseError(DataDirectoryError):
    """Another server has the folder: the process `owner`, 0 if that is not known."""

    def __init__(self, folder: Path, owner: int) -> None:
        named = f" (process {owner})" if owner else ""
        super().__init__(f"data folder {folder}: in use by another server{named}")


class Claim:
    """A data folder that only this process may change, until `close`.

    The lock belongs to the kernel (flock) and ends with the process, however that ends. The file
    itself stays. Raises FolderInUseError if another server uses the folder.
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
        # Always the same length, so that a full disk has no say in it after the first time; and it
        # is only a courtesy to whoever comes next.
        with contextlib.suppress(OSError):
            os.pwrite(lock, b"%-19d\n" % os.getpid(), 0)

    def close(self) -> None:
        """Let another process have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


@contextlib.contextmanager
def kept_free(folder: Path) -> Iterator[int | None]:
    """Keep servers off a data folder as long as the scope lasts, without writing to it.

    Gives None, unless one is there already: then its process id, 0 if that is not known.
    """
    try:
        lock = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        lock = None
    if lock is None:
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
    """Give the process that a lock says it is held by; 0 if it does not say."""
    owner = os.pread(lock, 20, 0).strip()
    return int(owner) if owner.isdigit() else 0


def _lock(file: int) -> None:
    """Lock a file, unless a server has it.

    Whoever only looks whether it is locked locks it too, for a moment, and shares it with others
    who look: many of them together must not look like a server.
    """
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
    """Make a folder for its owner only, with those above it, durably."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Without this a crash may take the whole folder away, whatever is synced in it.
    for folder in missing:
        Disk().sync_folder(folder.parent)


def write_format(folder: Path, disk: Disk) -> None:
    """Make a folder one of ours, durably."""
    write_file(folder / "format", FORMAT, disk)
