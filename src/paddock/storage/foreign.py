"""Telling a folder of ours, or a new one, from one that holds somebody else's files.

A folder with a file `format` is ours, whatever else is in it. One without is new if there is
nothing in it but what means nothing, or what the first start on it, or a restore into it, leaves
behind when it is interrupted. In any other a server would begin with nothing, beside data that
somebody believes it serves.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Final

from paddock.storage.layout import DataDirectoryError
from paddock.storage.state_swap import is_interrupted

# What a new disk has, and what is put beside the data for Apache ZooKeeper, whose zkServer.sh
# writes its process id to the data folder.
_HARMLESS: Final = frozenset({"lost+found", "myid", "initialize"})
# A `zoo.cfg.dynamic.…` is written by Apache beside the file whose servers it lists.
_HARMLESS_PREFIXES: Final = (".", "zoo.cfg")
# What we put there, before there is a format and behind it: the format may have been lost.
_OURS: Final = frozenset(
    {
        *("format.tmp", "lock", "control", "log", "log-moved", "snapshots"),
        *("exchange.tmp", "exchange-undone.tmp"),
    }
)
_OURS_PREFIXES: Final = ("restore-incoming-", "replaced-", "audit.log")
_APACHE_FILE: Final = re.compile(r"(?:snapshot|log)\.[0-9a-f]{1,16}(?:\.gz|\.snappy)?")


def refuse_foreign(folder: Path, log_directory: Path | None) -> None:
    """Raise DataDirectoryError if a server must not begin in this folder; OSError if unreadable."""
    if os.path.lexists(folder / "format") or is_interrupted(folder):
        return
    logs_elsewhere = log_directory is not None and _is_apache(log_directory)
    if _is_apache(folder) or logs_elsewhere:
        option = ""
        if logs_elsewhere and not _is_same(folder, log_directory):
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


def _is_same(folder: Path, other: Path | None) -> bool:
    return other is not None and folder.resolve() == other.resolve()


def is_harmless(name: str) -> bool:
    """Tell whether a file of this name may lie in a data folder without meaning anything."""
    return name.startswith(_HARMLESS_PREFIXES) or name.endswith(".pid") or name in _HARMLESS


def _is_foreign(name: str) -> bool:
    return not (is_harmless(name) or name.startswith(_OURS_PREFIXES) or name in _OURS)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
