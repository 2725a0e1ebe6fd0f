"""Refuse a data folder that holds foreign files.

A folder with a file `format` is a data folder, whatever else is in it. A folder without it is new
if it holds only harmless files, and what an interrupted first start or restore leaves behind. In
any other folder a server would begin empty, beside data that the operator believes it serves.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Final

from paddock.storage.layout import DataDirectoryError
from paddock.storage.state_swap import is_interrupted

# Of a new disk, and of Apache ZooKeeper, whose zkServer.sh also writes a .pid file.
_HARMLESS: Final = frozenset({"lost+found", "myid", "initialize"})
# Apache writes `zoo.cfg.dynamic.…` beside the file whose servers it lists.
_HARMLESS_PREFIXES: Final = (".", "zoo.cfg")
# Our own files: the format may be missing or lost.
_OURS: Final = frozenset(
    {
        *("format.tmp", "lock", "control", "log", "log-moved", "snapshots"),
        *("exchange.tmp", "exchange-undone.tmp"),
    }
)
_OURS_PREFIXES: Final = ("restore-incoming-", "replaced-", "audit.log")
_APACHE_FILE: Final = re.compile(r"(?:snapshot|log)\.[0-9a-f]{1,16}(?:\.gz|\.snappy)?")


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
            f"data folder {folder}: holds data of Apache ZooKeeper; to take it over into a new"
            f" folder, run: paddock upgrade {option}{shlex.quote(str(folder))} NEW_FOLDER"
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
