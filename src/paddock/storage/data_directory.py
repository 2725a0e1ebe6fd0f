"""The data folder of a server, claimed by one server at a time.

`paddock.storage.layout` describes its content. A log on another disk is found by a link, so that no
server ever starts without the log that belongs to its snapshots.

A folder with a file `format` is a data folder, whatever else is in it. A folder without it is new
if it holds only harmless files, and what an interrupted first start or restore leaves behind. Any
other folder is refused: a server would begin empty, beside data that the operator believes it
serves.

The format is written and read before anything else, so that a version that does not know it changes
nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Final

from paddock.log.file.disk import Disk, write_file
from paddock.log.file.segment import SEGMENT_HEADER_BYTES, SPARE_BYTES
from paddock.storage.layout import (
    FORMAT,
    Claim,
    DataDirectoryError,
    FolderInUseError,
    kept_free,
    make_folder,
    write_format,
)
from paddock.storage.state_swap import finish_swap, is_interrupted

__all__ = ["CACHE", "DataDirectory", "DataDirectoryError", "look_before_claim"]

CACHE: Final = "cluster"
"""The folder of what a server keeps that shares its log with others."""

# The size of a segment without records, of an early version of Paddock and of this one.
_EMPTY_BYTES: Final = (SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + SPARE_BYTES)

# Of a new disk, and of Apache ZooKeeper, whose zkServer.sh also writes a .pid file.
_HARMLESS: Final = frozenset({"lost+found", "myid", "initialize"})
# Apache writes `zoo.cfg.dynamic.…` beside the file whose servers it lists.
_HARMLESS_PREFIXES: Final = (".", "zoo.cfg")
# Our own files: the format may be missing or lost.
_OURS: Final = frozenset(
    {
        *("format.tmp", "lock", "control", "log", "log-moved", "snapshots", CACHE, "events"),
        *("exchange.tmp", "exchange-undone.tmp"),
    }
)
_OURS_PREFIXES: Final = ("restore-incoming-", "replaced-", "audit.log")
_APACHE_FILE: Final = re.compile(r"(?:snapshot|log)\.[0-9a-f]{1,16}(?:\.gz|\.snappy)?")


def look_before_claim(path: Path, log_directory: Path | None = None) -> None:
    """Raise DataDirectoryError if the folder is in use or foreign; change nothing.

    Errors of the disk are ignored: claiming the folder reports them better.
    """
    with contextlib.suppress(OSError):
        refuse_foreign(path, log_directory)
        with kept_free(path) as user:
            if user is not None:
                raise FolderInUseError(path, user)


class DataDirectory(contextlib.AbstractContextManager["DataDirectory"]):
    """A data folder that this process has claimed, until `close`.

    The log of a new folder goes into `log_directory`, if given. Raises DataDirectoryError if the
    folder cannot be created or written, is in use by another server, holds foreign files, has its
    log elsewhere than in `log_directory`, or has an unknown layout.
    """

    def __init__(self, path: Path, log_directory: Path | None = None) -> None:
        self.path = path
        self.log_path = path / "log"
        self.snapshots_path = path / "snapshots"
        # Where an empty log is while the link to its new place is made.
        self._moved = path / "log-moved"
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
            # First: an interrupted swap decides which state the folder has.
            finish_swap(path, Disk())
            self._check_format()
            self._place_log(log_directory)
            for folder in (self.log_path, self.snapshots_path):
                folder.mkdir(mode=0o700, exist_ok=True)
                # Not tried by a write: a server must start on a full disk, too, to serve reads.
                if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            Disk().sync_folder(path)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise DataDirectoryError(
                    f"data folder {path}: cannot be written: {error.strerror}"
                ) from error
            raise

    def close(self) -> None:
        """Release the folder. Call it last, when nothing is written any more."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def has_state(self) -> bool:
        """Return whether a server has written anything here."""
        return _holds_records(self.log_path) or any(self.snapshots_path.iterdir())

    def __exit__(self, *error: object) -> None:
        self.close()

    def _check_format(self) -> None:
        """Check the layout of the folder; write it if the folder is new."""
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
        """Put a new log into `directory`; refuse if there is a log elsewhere."""
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

    def _finish_moving(self) -> None:
        if not self._moved.exists():
            return
        if os.path.lexists(self.log_path):
            shutil.rmtree(self._moved)
        else:
            self._moved.rename(self.log_path)


def _files(folder: Path) -> dict[str, bytes]:
    """Read the files of a folder, as far as an empty segment goes and one byte more."""
    found = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        found[path.name] = b""
        if path.is_file():
            with path.open("rb") as file:
                found[path.name] = file.read(_EMPTY_BYTES[-1] + 1)
    return found


def _holds_records(log: Path) -> bool:
    """Return whether a log has any record."""
    return any(len(content) not in _EMPTY_BYTES for content in _files(log).values())


def refuse_foreign(folder: Path, log_directory: Path | None) -> None:
    """Raise DataDirectoryError if a server must not start in this folder, OSError if unreadable."""
    if os.path.lexists(folder / "format") or is_interrupted(folder):
        return
    logs_elsewhere = log_directory is not None and _is_apache(log_directory)
    if _is_apache(folder) or logs_elsewhere:
        option = ""
        if log_directory and logs_elsewhere and folder.resolve() != log_directory.resolve():
            option = f"--log-dir {shlex.quote(str(log_directory))} "
        raise DataDirectoryError(
            f"data folder {folder}: holds data of Apache ZooKeeper; for several servers, import it"
            " into etcd with paddock cluster import; to take it over into a new folder, run:"
            f" paddock upgrade {option}{shlex.quote(str(folder))} NEW_FOLDER"
        )
    foreign = sorted(filter(_is_foreign, _names(folder)))
    if foreign:
        raise DataDirectoryError(
            f"data folder {folder}: is neither empty nor a data folder of Paddock, since there is"
            f" {foreign[0]!r} in it"
        )


def _is_apache(folder: Path) -> bool:
    return any(map(_APACHE_FILE.fullmatch, _names(folder / "version-2")))


def is_harmless(name: str) -> bool:
    """Return whether a file of this name means nothing in a data folder."""
    return name.startswith(_HARMLESS_PREFIXES) or name.endswith(".pid") or name in _HARMLESS


def _is_foreign(name: str) -> bool:
    return not (is_harmless(name) or name.startswith(_OURS_PREFIXES) or name in _OURS)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
