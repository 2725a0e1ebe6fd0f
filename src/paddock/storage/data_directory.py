"""The folder that a server keeps its data in, claimed by one server at a time.

What is in it, `paddock.storage.layout` says. Whoever opens a folder whose log is elsewhere finds it
by the link, so that no server ever starts without the log that belongs to its snapshots. A folder
that holds something else does not become ours; once it is, other files in it are left alone.

The format is written before anything else and read before anything else, so that a version
that does not know it touches nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from paddock.log.file.disk import Disk, write_file
from paddock.log.file.segment import SEGMENT_HEADER_BYTES, SPARE_BYTES
from paddock.storage.foreign import refuse_foreign
from paddock.storage.layout import (
    FORMAT,
    Claim,
    DataDirectoryError,
    FolderInUseError,
    kept_free,
    make_folder,
    write_format,
)
from paddock.storage.state_swap import finish_exchange

__all__ = ["DataDirectory", "DataDirectoryError", "look_before_claim"]

# What a segment without records has, of an early version of Paddock and of this one.
_EMPTY_BYTES: Final = (SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + SPARE_BYTES)


def look_before_claim(path: Path, log_directory: Path | None = None) -> None:
    """Raise DataDirectoryError if the folder is in use or somebody else's, and touch nothing.

    What cannot be read is no matter here: claiming the folder says more of it.
    """
    with contextlib.suppress(OSError):
        refuse_foreign(path, log_directory)
        with kept_free(path) as user:
            if user is not None:
                raise FolderInUseError(path, user)


class DataDirectory:
    """A data folder that this process has claimed, until `close`.

    A new folder's log goes into `log_directory`, if one is given. Raises DataDirectoryError if the
    folder cannot be created or written, if another server uses it, if it holds somebody else's
    files, if its log is elsewhere than where it is said to be, or if its layout is not one that
    this version knows.
    """

    def __init__(self, path: Path, log_directory: Path | None = None) -> None:
        self.path = path
        self.log_path = path / "log"
        self.snapshots_path = path / "snapshots"
        self._lock: Claim | None = None
        try:
            make_folder(path)
        except FileExistsError:
            raise DataDirectoryError(f"data folder {path}: is not a folder") from None
        except OSError as error:
            raise DataDirectoryError(
                f"data folder {path}: cannot be created: {error.strerror}"
            ) from error
        try:
            refuse_foreign(path, log_directory)
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
        self._finish_moving()
        if link.is_symlink() and not link.exists():
            raise DataDirectoryError(
                f"data folder {self.path}: its log is in {link.readlink()}, which is not there"
            )
        if directory is None:
            return
        place = directory.absolute() / "log"
        if link.is_symlink() or _holds_records(link):
            if link.resolve() != place.resolve():
                raise DataDirectoryError(
                    f"data folder {self.path}: its log is in {link.resolve()}, not in {place};"
                    f" to move it, move that folder there and run: ln -sfn {place} {link}"
                )
            return
        ours = _files(link)
        if any(ours.get(name) != content for name, content in _files(place).items()):
            raise DataDirectoryError(
                f"data folder {self.path}: {place} holds the log of another data folder"
            )
        try:
            make_folder(place)
        except OSError as error:
            raise DataDirectoryError(
                f"log folder {place}: cannot be created: {error.strerror}"
            ) from error
        for name, content in ours.items():
            write_file(place / name, content, Disk())
        if link.exists():
            link.rename(self._moved)
        link.symlink_to(place)
        Disk().sync_folder(self.path)
        self._finish_moving()

    @property
    def _moved(self) -> Path:
        """Where a log without records is while the link to its new place is made."""
        return self.path / "log-moved"

    def _finish_moving(self) -> None:
        if not self._moved.exists():
            return
        if os.path.lexists(self.log_path):
            shutil.rmtree(self._moved)
        else:
            self._moved.rename(self.log_path)


def _files(folder: Path) -> dict[str, bytes]:
    """Read the beginnings of the files in a folder, if it is there: more than one of ours has."""
    found = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        found[path.name] = b""
        if path.is_file():
            with path.open("rb") as file:
                found[path.name] = file.read(_EMPTY_BYTES[-1] + 1)
    return found


def _holds_records(log: Path) -> bool:
    """Tell whether there is anything in a log but what it begins with."""
    return any(len(content) not in _EMPTY_BYTES for content in _files(log).values())
