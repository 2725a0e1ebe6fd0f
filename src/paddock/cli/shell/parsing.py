"""Lines, flags and numbers, parsed as zkCli does, down to the complaints.

Words end at blanks. One that begins with a quote ends at the next quote of its kind; a quote in the
middle of a word is a character like any other, and one that is never closed is passed over.

Flags may stand anywhere; `-sw` is `-s -w`; the value of `-v 3` may also be written `-v3` or `-v=3`;
`--` ends the flags; what looks like a flag and is none is refused. Complaints begin with the name
that upstream's library gives them.

Numbers are read as Java reads them. Where upstream ends with a stack trace, its last line is the
complaint here, and the shell goes on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from paddock.cli.shell.texts import CommandError

_WORD: Final = re.compile(r"""\s*([^"']\S*|"[^"]*"|'[^']*')\s*""", re.ASCII)
_QUOTED: Final = re.compile(r"""(['"])(.*)\1""")


def words(line: str) -> list[str]:
    """Split a line into words: a command and its arguments."""
    return [word[1:-1] if _QUOTED.fullmatch(word) else word for word in _WORD.findall(line)]


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of a command, without its hyphen, and what it is for."""

    name: str
    says: str
    takes_value: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """What a command was given: its arguments in their order, and its flags."""

    arguments: tuple[str, ...] = ()
    flags: dict[str, str | None] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The first argument, which is a path for most commands."""
        return self.arguments[0]

    def has(self, name: str) -> bool:
        return name in self.flags

    def value(self, name: str) -> str | None:
        """Return the value of a flag, the first one if it was given several times."""
        return self.flags.get(name)


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags that a command knows."""

    known: tuple[Flag, ...] = ()
    # Whether only one of them may be given, and whether one has to be.
    exclusive: bool = False
    required: bool = False

    def find(self, name: str) -> Flag | None:
        return next((flag for flag in self.known if flag.name == name), None)

    def parse(self, words: Sequence[str]) -> Given:
        """Take the flags from the words behind a command; raises `CommandError`."""
        return _Parser(self).parse(words)


_REFUSAL: Final = "org.apache.commons.cli."


class _Parser:
    """What is known while words are looked at, one after the other."""

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._arguments: list[str] = []
        self._found: dict[str, str | None] = {}
        self._open: Flag | None = None
        self._are_flags_over = False

    def parse(self, words: Sequence[str]) -> Given:
        for word in words:
            self._take(word)
        self._check_nothing_open()
        if self._flags.required and not self._found:
            group = ", ".join(f"-{flag.name} {flag.says}" for flag in self._flags.known)
            _refuse("MissingOption", f"Missing required option: [{group}]")
        return Given(tuple(self._arguments), self._found)

    def _take(self, word: str) -> None:
        if self._are_flags_over:
            self._arguments.append(word)
        elif word == "--":
            self._are_flags_over = True
        elif self._open is not None and not self._is_flag(word):
            is_quoted = len(word) > 1 and word[0] == word[-1] == '"' and word.count('"') == 2
            self._close(word[1:-1] if is_quoted else word)
        elif word.startswith("--"):
            _refuse_unknown(word)
        elif word.startswith("-") and word != "-":
            self._take_flags(word)
        else:
            self._arguments.append(word)

    def _is_flag(self, word: str) -> bool:
        # Here, and only here, a second hyphen does no harm.
        name = word[1:].partition("=")[0].removeprefix("-")
        is_known = any(self._flags.find(one) is not None for one in (name, name[:1]))
        return is_known and len(word) > 1 and word.startswith("-")

    def _take_flags(self, word: str) -> None:
        text = word[1:]
        flag = self._flags.find(text)
        if flag is not None:
            self._add(flag)
            return
        name, equals, value = text.partition("=")
        if len(text) == 1 or (equals and len(name) != 1):
            _refuse_unknown(word)
        if equals:
            flag = self._flags.find(name)
            if flag is None or not flag.takes_value:
                _refuse_unknown(word)
            self._add(flag)
            self._close(value)
            return
        for position, letter in enumerate(text, start=1):
            flag = self._flags.find(letter)
            if flag is None:
                _refuse_unknown(word)
            self._add(flag)
            if flag.takes_value and position < len(text):
                self._close(text[position:])
                return

    def _add(self, flag: Flag) -> None:
        self._check_nothing_open()
        others = [name for name in self._found if name != flag.name]
        if self._flags.exclusive and others:
            _refuse(
                "AlreadySelected",
                f"The option '{flag.name}' was specified but an option from this group has"
                f" already been selected: '{others[0]}'",
            )
        self._found.setdefault(flag.name, None)
        self._open = flag if flag.takes_value else None

    def _close(self, value: str) -> None:
        assert self._open is not None
        if self._found[self._open.name] is None:
            self._found[self._open.name] = value
        self._open = None

    def _check_nothing_open(self) -> None:
        if self._open is not None:
            _refuse("MissingArgument", f"Missing argument for option: {self._open.name}")


def _refuse(kind: str, says: str) -> NoReturn:
    raise CommandError(f"{_REFUSAL}{kind}Exception: {says}")


def _refuse_unknown(word: str) -> NoReturn:
    _refuse("UnrecognizedOption", f"Unrecognized option: {word}")


_DECIMAL: Final = re.compile(r"[+-]?[0-9]+")
_HEX: Final = re.compile(r"[+-]?[0-9a-fA-F]+")
_DECODED: Final = re.compile(r"([+-]?)(0[xX]|#|0(?=.))?([0-9a-fA-F]+)")
_ANY_VERSION: Final = -1
# What no node has: it would take two thousand million writes.
_NO_VERSION: Final = 2**31 - 1
_BASES: Final = {"": 10, "0": 8}


def as_int(text: str) -> int | None:
    """Parse a number of 32 bits; return None if it is none."""
    return _bounded(text, 31, _DECIMAL, 10)


def as_long(text: str, base: int = 10) -> int | None:
    """Parse a number of 64 bits; return None if it is none."""
    return _bounded(text, 63, _DECIMAL if base == 10 else _HEX, base)


def version_of(text: str | None) -> int:
    """Parse a version; None stands for any."""
    if text is None:
        return _ANY_VERSION
    number = as_int(text)
    if number is None:
        raise _no_number(text)
    # Below -1 there is none either, but the client would not ask for it.
    return number if number >= _ANY_VERSION else _NO_VERSION


def decoded_int(text: str) -> int:
    """Parse a number in base 10, 8 or 16, such as `8`, `010`, `0x8` or `#8`."""
    match = _DECODED.fullmatch(text)
    if match is None:
        raise _no_number(text)
    try:
        number = int(match[1] + match[3], _BASES.get(match[2] or "", 16))
    except ValueError:
        raise _no_number(text) from None
    if not -(2**31) <= number < 2**31:
        raise _no_number(text)
    return number


def _bounded(text: str, bits: int, pattern: re.Pattern[str], base: int) -> int | None:
    if pattern.fullmatch(text) is None:
        return None
    try:
        number = int(text, base)
    except ValueError:
        # Thousands of digits, which Python does not even read.
        return None
    return number if -(2**bits) <= number < 2**bits else None


def _no_number(text: str) -> CommandError:
    return CommandError(f'For input string: "{text}"')
