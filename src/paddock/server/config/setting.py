"""What a setting is, and the kinds of which there are several.

From its name follow its option (`--tick-time-ms`) and its environment variable
(`PADDOCK_TICK_TIME_MS`). Which settings there are is in `paddock.server.config.settings`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from paddock.server.config import parsers
from paddock.server.config.config import ServerConfig

VARIABLE_PREFIX: Final = "PADDOCK_"

PLACE: Final = "Where it is"
STORAGE: Final = "Storage"
SESSIONS: Final = "Sessions and nodes"
LIMITS: Final = "Limits"
ACCESS: Final = "Access"
TLS: Final = "TLS"
OPERATION: Final = "Operation"
ADMIN: Final = "The admin server"

DEFAULTS: Final = ServerConfig()


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: how it is called, how its value is read, what is said if it cannot be."""

    # The field of ServerConfig.
    field: str
    # The key in a zoo.cfg. Those that upstream does not have begin with `paddock.`.
    key: str
    parse: Callable[[str], Any]
    expected: str
    section: str
    # One sentence for --help and for the documentation.
    help: str
    # The name of its option; "" is the field's.
    name: str = ""
    # How the value is shown in --help: `--port PORT`.
    metavar: str = "TEXT"
    # The default, if the value itself would not say enough.
    default: str = ""
    # A smaller number is raised to this one, with a warning.
    minimum: int | None = None
    # What was written may be a password in the wrong place: an error does not repeat it.
    secret: bool = False

    @property
    def called(self) -> str:
        """What its option and its variable are made of."""
        return (self.name or self.field).replace("-", "_")

    @property
    def option(self) -> str:
        return "--" + self.called.replace("_", "-")

    @property
    def variable(self) -> str:
        return VARIABLE_PREFIX + self.called.upper()

    @property
    def is_switch(self) -> bool:
        return self.parse is parsers.boolean

    def default_shown(self) -> str:
        """Give the default as --help and the documentation show it; "" if there is none."""
        return self.default or parsers.shown(getattr(DEFAULTS, self.field))


# What is expected of their values.
MILLISECONDS: Final = "milliseconds, 1 or more"
_BYTES: Final = "a number of bytes, 1 or more, decimal or as 0x…"
COUNT: Final = "a number, 0 for no limit"
SWITCH: Final = "true or false"


def milliseconds(field: str, key: str, section: str, help: str) -> Setting:
    """Give one that is a time."""
    return Setting(field, key, parsers.at_least(1), MILLISECONDS, section, help, metavar="MS")


def count_limit(field: str, key: str, help: str) -> Setting:
    """Give one that bounds a number, or not if it is 0."""
    return Setting(
        field, key, parsers.at_least_zero_else_zero, COUNT, LIMITS, help, metavar="COUNT"
    )


def byte_limit(field: str, key: str, help: str) -> Setting:
    """Give one that bounds what is in memory or on the wire."""
    return Setting(field, key, parsers.decoded_integer, _BYTES, LIMITS, help, metavar="BYTES")


def switch(field: str, key: str, section: str, help: str) -> Setting:
    """Give one that is on or off."""
    return Setting(field, key, parsers.boolean, SWITCH, section, help)


def tls_file(field: str, key: str, help: str) -> Setting:
    """Give one that names a file for TLS."""
    return Setting(field, key, parsers.some_path, "a file", TLS, help, metavar="FILE")


def tls_store_type(field: str, key: str) -> Setting:
    """Give one that says what such a file is."""
    return Setting(
        field,
        key,
        parsers.one_of("PEM", "JKS", "PKCS12", "BCFKS"),
        "PEM (or JKS, PKCS12, BCFKS, which must be converted)",
        TLS,
        "What that is; only PEM can be used, and is recognised without this.",
        metavar="TYPE",
    )
