"""The folder that a server keeps its data in, claimed by one server at a time.

    data/
      format       one line, "paddock 1": which layout this is
      lock         held by the server that runs, with its process id inside
      log/         the segments of the log; a link, if it is on a disk of its own
      snapshots/   the snapshots

Whoever opens a folder whose log is elsewhere finds it by the link, so that no server ever starts
without the log that belongs to its snapshots. Other files are left alone, so a folder that holds
something else too is no problem.

The lock belongs to the kernel (flock) and ends with the process, however that ends. The file itself
stays. The format is written before anything else and read before anything else, so that a version
that does not know it touches nothing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from paddock.errors import PaddockError
from paddock.log.disk import Disk

_FORMAT: Final = b"paddock 1\n"


class DataDirectoryError(PaddockError):
    """The data folder cannot be used; one line that says why."""


class DataDirectory:
    """A data folder that this process has claimed, until `close`.

    A new folder's log goes into `log_directory`, if one is given. Raises DataDirectoryError if the
    folder cannot be created or written, if another server uses it, if its log is elsewhere than
    where it is said to be, or if its layout is not one that this version knows.
    """

    def __init__(self, path: Path, log_directory: Path | None = None) -> None:
        self.path = path
        self.log_path = path / "log"
        self.snapshots_path = path / "snapshots"
        self._lock: int | None = None
        try:
            _make_folder(path)
        except OSError as error:
            raise DataDirectoryError(
                f"data folder {path}: cannot be created: {error.strerror}"
            ) from error
        try:
            self._claim()
            self._check_format()
            self._place_log(log_directory)
            for folder in (self.log_path, self.snapshots_path):
                folder.mkdir(mode=0o700, exist_ok=True)
                # Asked, not tried: a server starts on a full disk too, to serve reads.
                if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            Disk().sync_folder(path)
        except OSError as error:
            self.close()
            raise DataDirectoryError(
                f"data folder {path}: cannot be written: {error.strerror}"
            ) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let another server have the folder. Comes last, when nothing is written any more."""
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

    def _claim(self) -> None:
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._lock, 20, 0).decode("ascii", "replace").strip()
            named = f" (process {owner})" if owner.isdigit() else ""
            raise DataDirectoryError(
                f"data folder {self.path}: in use by another server{named}"
            ) from None
        # Always the same length, so that a full disk has no say in it after the first time; and it
        # is only a courtesy to whoever comes next.
        with contextlib.suppress(OSError):
            os.pwrite(self._lock, b"%-19d\n" % os.getpid(), 0)

    def _check_format(self) -> None:
        """Read which layout the folder has, and make a new folder one of ours."""
        path = self.path / "format"
        try:
            found = path.read_bytes()
        except FileNotFoundError:
            if self.log_path.exists() or self.snapshots_path.exists():
                raise DataDirectoryError(
                    f"data folder {self.path}: holds data, but its file 'format' is missing;"
                    " restore it from a backup of the folder"
                ) from None
            self._write_format(path)
            return
        if found != _FORMAT:
            shown = found[:40].decode("utf-8", "replace").strip()
            raise DataDirectoryError(
                f"data folder {self.path}: has the format {shown!r}, and this version of Paddock"
                f" knows only {_FORMAT.decode().strip()!r}"
            )

    def _place_log(self, directory: Path | None) -> None:
        """Have the log where it is said to be, or refuse: with an older one, writes were lost."""
        link = self.log_path
        if link.is_symlink() and not link.exists():
            raise DataDirectoryError(
                f"data folder {self.path}: its log is in {link.readlink()}, which is not there"
            )
        if directory is None:
            return
        place = directory.absolute() / "log"
        if link.is_symlink() or _any_file_in(link):
            if link.resolve() != place.resolve():
                raise DataDirectoryError(
                    f"data folder {self.path}: its log is in {link.resolve()}, not in {place};"
                    f" to move it, move that folder there and run: ln -sfn {place} {link}"
                )
            return
        if _any_file_in(place):
            raise DataDirectoryError(
                f"data folder {self.path}: {place} holds the log of another data folder"
            )
        try:
            _make_folder(place)
        except OSError as error:
            raise DataDirectoryError(
                f"log folder {place}: cannot be created: {error.strerror}"
            ) from error
        if link.exists():
            link.rmdir()
        link.symlink_to(place)
        Disk().sync_folder(self.path)

    def _write_format(self, path: Path) -> None:
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            file.write(_FORMAT)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        Disk().sync_folder(self.path)


def _any_file_in(folder: Path) -> bool:
    """Tell whether there is such a folder with anything in it."""
    return folder.is_dir() and any(folder.iterdir())


def _make_folder(path: Path) -> None:
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Without this a crash may take the whole folder away, whatever is synced in it.
    for folder in missing:
        Disk().sync_folder(folder.parent)
