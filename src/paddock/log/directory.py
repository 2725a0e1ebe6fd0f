"""The folder that a server keeps its data in, claimed by one server at a time.

What is in it, `paddock.log.layout` says. Whoever opens a folder whose log is elsewhere finds it by
the link, so that no server ever starts without the log that belongs to its snapshots. Other files
are left alone, so a folder that holds something else too is no problem.

The format is written before anything else and read before anything else, so that a version
that does not know it touches nothing.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from paddock.log.disk import Disk
from paddock.log.exchange import finish_exchange
from paddock.log.layout import FORMAT, Claim, DataDirectoryError, make_folder, write_format

__all__ = ["DataDirectory", "DataDirectoryError"]


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
        self._lock: Claim | None = None
        try:
            make_folder(path)
        except OSError as error:
            raise DataDirectoryError(
                f"data folder {path}: cannot be created: {error.strerror}"
            ) from error
        try:
            self._lock = Claim(path)
            # A restore that was interrupted decides what the rest of this is about.
            finish_exchange(path, Disk())
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
            self._lock.close()
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
            write_format(self.path, Disk())
            return
        if found != FORMAT:
            shown = found[:40].decode("utf-8", "replace").strip()
            raise DataDirectoryError(
                f"data folder {self.path}: has the format {shown!r}, and this version of Paddock"
                f" knows only {FORMAT.decode().strip()!r}"
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
            make_folder(place)
        except OSError as error:
            raise DataDirectoryError(
                f"log folder {place}: cannot be created: {error.strerror}"
            ) from error
        if link.exists():
            link.rmdir()
        link.symlink_to(place)
        Disk().sync_folder(self.path)


def _any_file_in(folder: Path) -> bool:
    """Tell whether there is such a folder with anything in it."""
    return folder.is_dir() and any(folder.iterdir())
