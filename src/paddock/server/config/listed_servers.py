"""The servers that a `zoo.cfg` lists, and why a list of several stops the start.

    server.1=one:2888:3888

A line for each member of an ensemble; Apache takes a list of one for a server that stands alone. A
server that passed over a list of several would serve alone on each host that has the file: several
services under one name, none of which knows what the others have acknowledged. The list may stand
in a file of its own, which `dynamicConfigFile` names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from paddock.server.config.config import ConfigError
from paddock.server.config.properties import Property, read_properties

_KEY: Final = re.compile(r"server\.[0-9]+")
_ELSEWHERE: Final = "dynamicConfigFile"
_KEYS_SHOWN: Final = 5
_WHAT_HELPS: Final = (
    "leave one server in the list, or have this one serve alone with --standalone"
    " (paddock.standalone=true)"
)


class ListedServers:
    """What the files that were read so far say of an ensemble's members."""

    def __init__(self) -> None:
        # By key, since of a key that is given twice the last one counts; with file and line.
        self._places: dict[str, str] = {}
        # Why a list that is in a file of its own is not known.
        self._unreadable: str | None = None

    def take(self, path: Path, entry: Property) -> None:
        """Take note of a line of a file, if it is about members."""
        where = f"{path}:{entry.line}"
        if _KEY.fullmatch(entry.key):
            self._places[entry.key] = where
        elif entry.key == _ELSEWHERE:
            self._read(Path(entry.value), where)

    def check(self) -> None:
        """Raise ConfigError unless at most one server is listed."""
        if self._unreadable is not None:
            raise ConfigError(f"{self._unreadable}, and may list several servers; {_WHAT_HELPS}")
        if len(self._places) < 2:
            return
        keys = list(self._places)
        shown = ", ".join(keys[:_KEYS_SHOWN]) + (", …" if len(keys) > _KEYS_SHOWN else "")
        raise ConfigError(
            f"{self._places[keys[0]]}: {shown} list {len(keys)} servers, which would not know each"
            f" other: each would serve alone, on data of its own; {_WHAT_HELPS}"
        )

    def _read(self, path: Path, where: str) -> None:
        try:
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self._unreadable = f"{where}: {_ELSEWHERE} = {str(path)!r} cannot be read: {reason}"
            return
        for entry in read_properties(text):
            if _KEY.fullmatch(entry.key):
                self._places[entry.key] = f"{path}:{entry.line}"
