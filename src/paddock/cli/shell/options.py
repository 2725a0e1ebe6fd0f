"""The flags of a command, taken from its words as upstream does, down to the complaints.

Upstream leaves this to a library, whose rules fingers know: flags may stand anywhere; `-sw` is `-s
-w`; the value of `-v 3` may also be written `-v3` or `-v=3`; `--` ends the flags; what looks like a
flag and is none is refused. Complaints begin with the name that the library gives them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from paddock.cli.shell.errors import CommandError


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of a command, without its hyphen, and what it is for."""

    name: str
    says: str
    takes_value: bool = False
    # The values to choose from, for completion.
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """What a command was given: its arguments in their order, and its flags."""

    arguments: tuple[str, ...] = ()
    flags: dict[str, str | None] = field(default_factory=dict)

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
        # The flag whose value is expected.
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
            self._close(_without_quotes(word))
        elif word.startswith("--"):
            _refuse_unknown(word)
        elif word.startswith("-") and word != "-":
            self._take_flags(word)
        else:
            self._arguments.append(word)

    def _is_flag(self, word: str) -> bool:
        if not word.startswith("-") or len(word) == 1:
            return False
        # Here, and only here, a second hyphen does no harm.
        name = word[1:].partition("=")[0].removeprefix("-")
        return any(self._flags.find(one) is not None for one in (name, name[:1]))

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
        if self._flags.exclusive:
            for other in self._found:
                if other != flag.name:
                    _refuse(
                        "AlreadySelected",
                        f"The option '{flag.name}' was specified but an option from this group has"
                        f" already been selected: '{other}'",
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


def _without_quotes(value: str) -> str:
    inner = value[1:-1]
    is_quoted = len(value) > 1 and value[0] == value[-1] == '"' and '"' not in inner
    return inner if is_quoted else value
