"""The sources of settings: a `zoo.cfg`, the environment, the command line.

Options override variables, variables override the file, the file overrides the defaults. A value
that cannot be used raises `ConfigError` with one line that names its source:

    zoo.cfg:3: tickTime = 'two': expected milliseconds, 1 or more

A key or variable that is not used causes a warning, with the reason if it is known. A file that
lists several servers is refused, unless they share a log or `standalone` is set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from paddock.server.config.config import ConfigError, ServerConfig
from paddock.server.config.ignored import why_unused
from paddock.server.config.parsers import VARIABLE_PREFIX, ExplainedError, Setting
from paddock.server.config.properties import Property, read_properties, read_property_file
from paddock.server.config.settings import SETTINGS

# Variables that are not settings: of `serve`, of the other commands and the programs that they run,
# of the build, and of the tests.
_OTHER_VARIABLES: Final = frozenset(
    {
        *("PADDOCK_CONFIG", "PADDOCK_SERVER", "PADDOCK_TOKEN", "PADDOCK_GUARD", "PADDOCK_PATH"),
        *("PADDOCK_LOCK_PATH", "PADDOCK_ELECTION_PATH", "PADDOCK_CHANGE", "PADDOCK_VERSION"),
        *("PADDOCK_ZXID", "PADDOCK_COMPILE", "PADDOCK_OPT_LEVEL", "PADDOCK_PURE"),
        *("PADDOCK_PROPERTY_FACTOR", "PADDOCK_RECORD_SCENARIOS", "PADDOCK_COMPLETION_SECONDS"),
        *("PADDOCK_AUTH", "PADDOCK_SASL_USER", "PADDOCK_SASL_PASSWORD", "PADDOCK_ADMIN"),
        *("PADDOCK_SASL_PASSWORD_FILE", "PADDOCK_FROM_SASL_PASSWORD", "PADDOCK_ADMIN_AUTH"),
        *("PADDOCK_KERBEROS", "PADDOCK_KERBEROS_USER", "PADDOCK_KERBEROS_SERVER"),
    }
)

_SERVER_KEY: Final = re.compile(r"server\.[0-9]+")
_SERVERS_FILE: Final = "dynamicConfigFile"
_KEYS_SHOWN: Final = 5
_WHAT_HELPS: Final = (
    "have them share a log with --log, leave one server in the list, or have this one serve alone"
    " with --standalone (paddock.standalone=true)"
)

# Settings that have no effect without a log in etcd, and with one. `syncLimit` is in every zoo.cfg.
_ONLY_SHARED: Final = (
    *("advertise", "etcd_ca_file", "etcd_cert_file", "etcd_key_file", "etcd_user"),
    *("etcd_password", "etcd_quota_bytes"),
)
_ONLY_ALONE: Final = ("data_log_directory",)

_BY_KEY: Final = {setting.key: setting for setting in SETTINGS if setting.key}
# Keys of these and a suffix add to the same setting.
_FAMILIES: Final = {setting.key: setting for setting in SETTINGS if setting.is_family}
_BY_VARIABLE: Final = {setting.variable: setting for setting in SETTINGS}
_BY_OPTION: Final = {setting.option: setting for setting in SETTINGS if setting.option}


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
        entries = list(read_property_file(path))
        last = {entry.key: entry for entry in entries}
        of_this_file: set[str] = set()
        for entry in entries:
            where = f"{path}:{entry.line}: "
            if not entry.is_separated:
                self.warnings.append(
                    f"{where}no = or : in this line; {entry.key!r} is taken for a key"
                )
            key = entry.key.removeprefix("zookeeper.")
            setting = _BY_KEY.get(key) or _FAMILIES.get(key.partition(".")[0])
            if setting is None:
                self._servers.take(path, entry)
                self.warnings.append(f"{where}key {entry.key!r} {_why_not_a_key(entry.key)}")
            else:
                if setting.is_family and last[entry.key] is not entry:
                    continue
                # The keys of a family add up, in whatever order they come.
                adds = setting.is_family and setting.field in of_this_file
                self._take(setting, f"{where}{entry.key}", entry.value, adds=adds)
                of_this_file.add(setting.field)

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
        is_shared = self._values.get("shared_log") is not None
        if not self._values.get("standalone") and not is_shared:
            self._servers.check()
        if is_shared:
            self._warn_of_unused(_ONLY_ALONE, "the log is in etcd")
        else:
            self._warn_of_unused(_ONLY_SHARED, "there is no log in etcd (--log)")
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

    def _warn_of_unused(self, fields: tuple[str, ...], reason: str) -> None:
        self.warnings += [
            f"{self._origins[field]} is not used: {reason}"
            for field in fields
            if self._values.get(field) is not None
        ]

    def _take(self, setting: Setting, where: str, text: str, *, adds: bool = False) -> None:
        origin = f"{where} = {'(not shown)' if setting.secret else repr(text)}"
        try:
            value = setting.parser.parse(text)
        except ExplainedError as error:
            shown = origin if error.may_repeat else f"{where} = (not shown)"
            raise ConfigError(f"{shown}: {error}") from None
        except ValueError:
            raise ConfigError(f"{origin}: expected {setting.parser.expected}") from None
        if setting.minimum is not None and value < setting.minimum:
            self.warnings.append(f"{where} = {value} is too small, {setting.minimum} is used")
            value = setting.minimum
        if adds:
            value |= self._values.get(setting.field, frozenset())
        self.set(setting.field, value, origin)


def _why_not_a_key(key: str) -> str:
    reason = why_unused(key.removeprefix("zookeeper."))
    return (
        f"is not used by this server: {reason}" if reason else f"is not known{_meant(key, _BY_KEY)}"
    )


def _meant(name: str, known: Mapping[str, Setting]) -> str:
    # The case of letters is the most frequent mistake in a key. What all variables begin with would
    # make short ones look alike.
    lower = {one.removeprefix(VARIABLE_PREFIX).lower(): one for one in known}
    close = get_close_matches(name.removeprefix(VARIABLE_PREFIX).lower(), lower, n=1, cutoff=0.8)
    return f"; did you mean {lower[close[0]]}?" if close else ""


class ListedServers:
    """The servers that the files read so far list: several stop the start.

    If each host ignored the list and served alone, clients would see several services under one
    name, none of which has the writes that the others acknowledged. A list of one is a standalone
    server, as in Apache. The list may be in a file of its own, which `dynamicConfigFile` names.
    """

    def __init__(self) -> None:
        # File and line, by key: the last value of a repeated key counts.
        self._places: dict[str, str] = {}
        # Why the list could not be read from its own file.
        self._unreadable: str | None = None

    def take(self, path: Path, entry: Property) -> None:
        """Note a line of a file, if it lists a member."""
        where = f"{path}:{entry.line}"
        if _SERVER_KEY.fullmatch(entry.key):
            self._places[entry.key] = where
        elif entry.key == _SERVERS_FILE:
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
            self._unreadable = f"{where}: {_SERVERS_FILE} = {str(path)!r} cannot be read: {reason}"
            return
        for entry in read_properties(text):
            if _SERVER_KEY.fullmatch(entry.key):
                self._places[entry.key] = f"{path}:{entry.line}"
