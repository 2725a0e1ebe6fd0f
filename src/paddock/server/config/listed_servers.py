"""The servers that a `zoo.cfg` lists: a list of several stops the start.

    server.1=one:2888:3888

There is one line for each member of an ensemble. If each host ignored the list and served alone,
clients would see several services under one name, none of which has the writes that the others
acknowledged. A list of one is a standalone server, as in Apache. The list may be in a file of its
own, which `dynamicConfigFile` names.
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
    """The members of an ensemble that the files read so far list."""

    def __init__(self) -> None:
        # File and line, by key: the last value of a repeated key counts.
        self._places: dict[str, str] = {}
        # Why the list could not be read from its own file.
        self._unreadable: str | None = None

    def take(self, path: Path, entry: Property) -> None:
        """Note a line of a file, if it lists a member."""
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
