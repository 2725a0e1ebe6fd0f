"""The sources of settings: a `zoo.cfg`, the environment, the command line.

Options override variables, variables override the file, the file overrides the defaults. A value
that cannot be used raises `ConfigError` with one line that names its source:

    zoo.cfg:3: tickTime = 'two': expected milliseconds, 1 or more

A key or variable that is not used causes a warning, with the reason if it is known. A file that
lists several servers is refused, unless `standalone` is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.config.ignored import why_refused, why_unused
from paddock.server.config.listed_servers import ListedServers
from paddock.server.config.properties import read_properties
from paddock.server.config.setting import VARIABLE_PREFIX, Setting
from paddock.server.config.settings import SETTINGS

# Variables that are not settings: of `serve`, of the other commands and the programs that they run,
# of the build, and of the tests.
_OTHER_VARIABLES: Final = frozenset(
    {
        *("PADDOCK_CONFIG", "PADDOCK_SERVER", "PADDOCK_TOKEN", "PADDOCK_GUARD", "PADDOCK_PATH"),
        *("PADDOCK_LOCK_PATH", "PADDOCK_ELECTION_PATH", "PADDOCK_CHANGE", "PADDOCK_VERSION"),
        *("PADDOCK_ZXID", "PADDOCK_COMPILE", "PADDOCK_OPT_LEVEL", "PADDOCK_PURE"),
        *("PADDOCK_PROPERTY_FACTOR", "PADDOCK_RECORD_SCENARIOS"),
    }
)

_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
_BY_VARIABLE: Final = {setting.variable: setting for setting in SETTINGS}
_BY_OPTION: Final = {setting.option: setting for setting in SETTINGS}


class Settings:
    """The values given so far; a later source overrides an earlier one."""

    def __init__(self) -> None:
        # One line each.
        self.warnings: list[str] = []
        # By field of ServerConfig, in the order in which they were given.
        self._values: dict[str, Any] = {}
        # The source of each value, for errors that concern several fields.
        self._origins: dict[str, str] = {}
        self._servers = ListedServers()

    def read_file(self, path: Path) -> None:
        """Read a `zoo.cfg`. The last value of a repeated key counts, as in Java."""
        try:
            # Bytes that are not UTF-8 can only be part of a file name, and survive this way.
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
        for entry in read_properties(text):
            where = f"{path}:{entry.line}: "
            setting = _BY_KEY.get(entry.key.removeprefix("zookeeper."))
            if setting is None:
                self._servers.take(path, entry)
                refusal = why_refused(entry.key, entry.value)
                if refusal is not None:
                    raise ConfigError(f"{where}{entry.key} = {entry.value!r}: {refusal}")
                self.warnings.append(f"{where}key {entry.key!r} {_why_not_a_key(entry.key)}")
            else:
                self._take(setting, f"{where}{entry.key}", entry.value)

    def read_environment(self, environment: Mapping[str, str]) -> None:
        """Read the variables that begin with `PADDOCK_`."""
        for name in sorted(environment):
            setting = _BY_VARIABLE.get(name)
            if setting is not None:
                self._take(setting, name, environment[name])
            elif name.startswith(VARIABLE_PREFIX) and name not in _OTHER_VARIABLES:
                self.warnings.append(f"variable {name} is not known{_meant(name, _BY_VARIABLE)}")

    def read_options(self, options: Mapping[str, str]) -> None:
        """Read options as written on the command line."""
        for name, text in options.items():
            self._take(_BY_OPTION[name], name, text)

    def set(self, field: str, value: object, origin: str = "") -> None:
        """Set a field to a value that is parsed already."""
        # Removed first, so that the last one given is the last in order.
        self._values.pop(field, None)
        self._values[field] = value
        self._origins[field] = origin

    def config(self) -> ServerConfig:
        """Return the configuration; raise ConfigError if its values contradict each other."""
        if not self._values.get("standalone"):
            self._servers.check()
        try:
            return ServerConfig(**self._values)
        except ConfigError as error:
            origins = [
                self._origins[field]
                for field in self._values
                if field in error.fields and self._origins[field]
            ]
            if not origins:
                raise
            raise ConfigError(f"{origins[-1]}: {error}") from None

    def _take(self, setting: Setting, where: str, text: str) -> None:
        origin = f"{where} = {'(not shown)' if setting.secret else repr(text)}"
        try:
            value = setting.parser.parse(text)
        except ValueError:
            raise ConfigError(f"{origin}: expected {setting.parser.expected}") from None
        if setting.minimum is not None and value < setting.minimum:
            self.warnings.append(f"{where} = {value} is too small, {setting.minimum} is used")
            value = setting.minimum
        self.set(setting.field, value, origin)


def _why_not_a_key(key: str) -> str:
    reason = why_unused(key.removeprefix("zookeeper."))
    if reason is not None:
        return f"is not used by this server: {reason}"
    return f"is not known{_meant(key, _BY_KEY)}"


def _meant(name: str, known: Mapping[str, Setting]) -> str:
    # The case of letters is the most frequent mistake in a key.
    lower = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), lower, n=1, cutoff=0.8)
    return f"; did you mean {lower[close[0]]}?" if close else ""
