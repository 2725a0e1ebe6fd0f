"""A setting: one field of `ServerConfig`, which declares everything about it.

    tick_time_ms: int = setting(2000, "tickTime", MILLISECONDS, "The unit of session timeouts.")

The name of its option (`--tick-time-ms`) and of its environment variable (`PADDOCK_TICK_TIME_MS`)
follow from the name of the field. `paddock.server.config.settings` lists all settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from paddock.server.config.parsers import SWITCH, Parser

VARIABLE_PREFIX: Final = "PADDOCK_"

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its names, its parser, and its texts."""

    # The key in a zoo.cfg. A key that upstream does not have begins with `paddock.`.
    key: str
    parser: Parser[Any]
    # One sentence for --help and for the documentation.
    help: str
    # The heading in --help and in the documentation.
    section: str
    # The default, as --help and the documentation show it.
    default_text: str
    # A smaller number is raised to this one, with a warning.
    minimum: int | None
    # The text may be a password: error messages do not repeat it.
    secret: bool
    # The name that its option and variable are made of.
    name: str
    # The field of ServerConfig.
    field: str = ""

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return VARIABLE_PREFIX + self.name.upper()

    @property
    def is_switch(self) -> bool:
        return self.parser is SWITCH


def setting(
    default: Value,
    key: str,
    parser: Parser[Value],
    help: str,
    *,
    section: str = "",
    default_text: str = "",
    minimum: int | None = None,
    secret: bool = False,
    name: str = "",
) -> Value:
    """Declare a field of `ServerConfig`.

    A section begins with the first field that names it. Without `default_text` the default itself
    is shown, without `name` the field's name is used.
    """
    declared = Setting(key, parser, help, section, default_text, minimum, secret, name)
    return field(default=default, repr=not secret, metadata={"setting": declared})
