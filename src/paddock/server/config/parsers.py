"""Settings: how one is declared, and the parsers that read its value from text.

    tick_time_ms: int = setting(2000, "tickTime", MILLISECONDS, "The unit of session timeouts.")

The name of its option (`--tick-time-ms`) and of its environment variable (`PADDOCK_TICK_TIME_MS`)
follow from the name of the field. A parse function raises ValueError for a text that it cannot
read; `Parser.expected` becomes the error message.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

Value = TypeVar("Value", covariant=True)
Default = TypeVar("Default")

VARIABLE_PREFIX: Final = "PADDOCK_"
INT32_MAX: Final = 2**31 - 1


class ExplainedError(ValueError):
    """A text cannot be read. The message says why, better than `Parser.expected` can."""

    def __init__(self, message: str, *, may_repeat: bool = True) -> None:
        super().__init__(message)
        # Whether the text may be shown: it holds no password.
        self.may_repeat = may_repeat


@dataclass(frozen=True, slots=True)
class Parser(Generic[Value]):
    """Reads one kind of value."""

    parse: Callable[[str], Value]
    # What a value must be, for error messages.
    expected: str
    # What stands for the value in --help: `--port PORT`.
    metavar: str


def number(
    expected: str, metavar: str, low: int = -INT32_MAX - 1, high: int = INT32_MAX
) -> Parser[int]:
    return Parser(lambda text: _within(_integer(text), low, high), expected, metavar)


def count(expected: str, metavar: str) -> Parser[int]:
    """Return a parser of a number of 0 or more; as upstream, a negative one counts as 0."""
    return Parser(lambda text: max(0, _integer(text)), expected, metavar)


def positive_or(default: int, expected: str, metavar: str) -> Parser[int]:
    """Return a parser of a number of 1 or more; as upstream, -1 stands for the default."""

    def parse(given: str) -> int:
        value = _integer(given)
        return default if value == -1 else _within(value, 1)

    return Parser(parse, expected, metavar)


def text(expected: str, metavar: str, pattern: str = r"(?s).+") -> Parser[str]:
    return Parser(lambda given: _matching(pattern, given), expected, metavar)


def one_of(metavar: str, *known: str, expected: str = "") -> Parser[str]:
    """Return a parser of one of these words, in upper or lower case."""
    by_lower = {word.lower(): word for word in known}
    pattern = "|".join(by_lower)
    return Parser(
        lambda given: by_lower[_matching(pattern, given.lower())],
        expected or " or ".join((", ".join(known[:-1]), known[-1])),
        metavar,
    )


def words(
    expected: str, metavar: str, pattern: str, *, may_be_empty: bool = False
) -> Parser[frozenset[str]]:
    """Return a parser of words with commas between them, each of which matches the pattern."""

    def parse(given: str) -> frozenset[str]:
        found = frozenset(word.strip() for word in given.split(",")) - {""}
        if not (found or may_be_empty) or not all(re.fullmatch(pattern, word) for word in found):
            raise ValueError(given)
        return found

    return Parser(parse, expected, metavar)


def shown(value: object) -> str:
    """Return a value as it would be written in a zoo.cfg; "" for None."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case frozenset():
            return ",".join(sorted(value))
    return str(value)


def _matching(pattern: str, given: str) -> str:
    if not re.fullmatch(pattern, given):
        raise ValueError(given)
    return given


def _integer(given: str) -> int:
    return _within(int(_matching(r"[+-]?[0-9]+", given)), -INT32_MAX - 1)


def _within(value: int, low: int, high: int = INT32_MAX) -> int:
    if not low <= value <= high:
        raise ValueError(value)
    return value


def _java_integer(given: str, high: int = INT32_MAX) -> int:
    """Read a number as Java's `Integer.decode`: `0x…` and `#…` are hexadecimal, `0…` is octal."""
    match = re.fullmatch(r"\+?(?:(?:0[xX]|#)([0-9a-fA-F]+)|0([0-7]+)|([0-9]+))", given)
    if match is None or match.lastindex is None:
        raise ValueError(given)
    return _within(int(match[match.lastindex], (16, 8, 10)[match.lastindex - 1]), 1, high)


_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_POWERS: Final = ("k", "m", "g", "t")


def _duration_or_off(given: str) -> int:
    """Read a duration as seconds; 0 for `off`."""
    if given.lower() == "off":
        return 0
    match = re.fullmatch(r"([0-9]+)\s*([smhdw]?)", given.lower())
    if match is None:
        raise ValueError(given)
    return _within(int(match[1]) * _SECONDS[match[2]], 0)


def _size(given: str) -> int:
    """Read a number of bytes, with or without a unit: of 1000 (10GB), or of 1024 (1GiB)."""
    match = re.fullmatch(r"([0-9]+)\s*([kmgt])(i?)b", given.lower())
    if match is None:
        return _java_integer(given, 2**63 - 1)
    unit = (1024 if match[3] else 1000) ** (_POWERS.index(match[2]) + 1)
    return _within(int(match[1]) * unit, 1, 2**63 - 1)


def _boolean(given: str, pattern: str = "true|false") -> bool:
    return _matching(pattern, given.lower()) == "true"


def _path(given: str) -> Path:
    return Path(_matching("(?s).+", given))


def _user_and_digest(given: str) -> str:
    user, _, digest = given.partition(":")
    try:
        size = len(base64.b64decode(digest, validate=True))
    except binascii.Error:
        size = 0
    if not user or size != 20:
        raise ValueError(given)
    return given


SWITCH: Final = Parser(_boolean, "true or false", "")
ONLY_FALSE: Final = Parser(
    lambda given: _boolean(given, "false"),
    "false: OCSP is not supported; revocation lists are (ssl.crl)",
    "false",
)
MILLISECONDS: Final = number("milliseconds, 1 or more", "MS", 1)
COUNT: Final = count("a number, 0 for no limit", "COUNT")
BYTES: Final = Parser(_java_integer, "a number of bytes, 1 or more, decimal or as 0x…", "BYTES")
MANY_BYTES: Final = Parser(
    lambda given: _java_integer(given, 2**63 - 1), BYTES.expected, BYTES.metavar
)
DURATION_OR_OFF: Final = Parser(
    _duration_or_off, "a duration, such as 90m, 12h or 7d, or off", "DURATION"
)
SIZE: Final = Parser(_size, "a number of bytes, 1 or more, such as 500MB or 10GiB", "SIZE")
HOST: Final = text("a name or an address", "HOST")
PORT: Final = number("a port, 0 to 65535", "PORT", 0, 65535)
FOLDER: Final = Parser(_path, "a folder", "DIR")
FILE: Final = Parser(_path, "a file", "FILE")
USER_AND_DIGEST: Final = Parser(
    _user_and_digest, "user:digest, where digest is the SHA-1 of user:password in base 64", "DIGEST"
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its names, its parser, and its texts."""

    # The key in a zoo.cfg. A key that upstream does not have begins with `paddock.`, except `log`.
    # Without a key there is no option either: it is given in the environment alone.
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
    # Whether keys such as `key.1` add to it, as upstream.
    is_family: bool
    # The field of ServerConfig.
    field: str = ""

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-") if self.key else ""

    @property
    def variable(self) -> str:
        return VARIABLE_PREFIX + self.name.upper()

    @property
    def is_switch(self) -> bool:
        return self.parser is SWITCH


def setting(
    default: Default,
    key: str,
    parser: Parser[Default],
    help: str,
    *,
    section: str = "",
    default_text: str = "",
    minimum: int | None = None,
    secret: bool = False,
    name: str = "",
    is_family: bool = False,
) -> Default:
    """Declare a field of `ServerConfig`.

    A section begins with the first field that names it. Without `default_text` the default itself
    is shown, without `name` the field's name is used.
    """
    declared = Setting(key, parser, help, section, default_text, minimum, secret, name, is_family)
    return field(default=default, repr=not secret, metadata={"setting": declared})
