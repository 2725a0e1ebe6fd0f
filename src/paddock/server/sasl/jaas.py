"""JAAS files, in which Apache ZooKeeper has its users and where its Kerberos key is.

    Server {
        org.apache.zookeeper.server.auth.DigestLoginModule required
        user_super="adminsecret"
        user_bob="bobsecret";
    };

The rules are Java's: a section has login modules, each with a class, a flag, options, and a `;`. A
value is a word or quoted, on one line, with backslashes as in C. Comments are `//` and `/* */`.
Properties of the system, `${…}`, are refused: there are none here. Errors name the file and the
line, and never a value, which may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from paddock.server.config.config import ConfigError

BYTES_MAX: Final = 1 << 20

_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\f\r\n]++|//[^\n]*+|/\*.*?\*/)
      | (?P<text>"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*")
      | (?P<sign>[{};=])
      | (?P<word>[^\s{};="/]++)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One login module of a section: the last part of its class, and its options."""

    name: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name!r}, {sorted(self.options)})"


class _Token(NamedTuple):
    line: int
    kind: str
    value: str


def read_section(path: Path, section: str) -> list[LoginModule]:
    """Return the login modules of a section. Raises ConfigError, also if there is none."""
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: the JAAS file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the JAAS file is not text in UTF-8") from None
    if len(content) > BYTES_MAX:
        raise ConfigError(f"{path}: the JAAS file is larger than {BYTES_MAX} bytes")
    for name, modules in _Sections(path, text).read():
        if name == section:
            return modules
    raise ConfigError(f"{path}: there is no section {section!r} in this JAAS file")


class _Sections:
    """Reads the sections of a file, one after another."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._tokens = self._tokenize(text)
        self._next = next(self._tokens)

    def read(self) -> Iterator[tuple[str, list[LoginModule]]]:
        while self._next.kind != "end":
            name = self._take("word", "text").value
            self._take("{")
            modules = []
            while self._next.kind != "}":
                modules.append(self._module())
            self._take("}")
            self._take(";")
            yield name, modules

    def _module(self) -> LoginModule:
        class_name = self._take("word").value
        flag = self._take("word")
        if flag.value.lower() not in ("required", "requisite", "sufficient", "optional"):
            raise self._error(flag, "required, requisite, sufficient or optional")
        options: dict[str, str] = {}
        while self._next.kind != ";":
            key = self._take("word").value
            self._take("=")
            value = self._take("word", "text")
            if "${" in value.value:
                raise ConfigError(
                    f"{self._path}:{value.line}: the value of {key} has ${{…}}, which is not"
                    " expanded here"
                )
            options[key] = value.value
        self._take(";")
        return LoginModule(class_name.rpartition(".")[2], options)

    def _take(self, *kinds: str) -> _Token:
        token = self._next
        if token.kind not in kinds:
            names = {"word": "a name", "text": "a quoted text"}
            raise self._error(token, " or ".join(names.get(kind, repr(kind)) for kind in kinds))
        if token.kind != "end":
            self._next = next(self._tokens)
        return token

    def _error(self, token: _Token, expected: str) -> ConfigError:
        return ConfigError(
            f"{self._path}:{token.line}: this JAAS file is not understood: expected {expected}"
        )

    def _tokenize(self, text: str) -> Iterator[_Token]:
        at, line = 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._error(_Token(line, "", ""), "a name, a whole quoted text or a comment")
            kind, found = match.lastgroup or "", match.group()
            if kind == "text":
                yield _Token(line, kind, _ESCAPE.sub(_unescaped, found[1:-1]))
            elif kind != "blank":
                yield _Token(line, found if kind == "sign" else kind, found)
            at = match.end()
            line += found.count("\n")
        yield _Token(line, "end", "")


def _unescaped(match: re.Match[str]) -> str:
    found = match[1]
    return chr(int(found, 8)) if found[0] in "01234567" else _LETTERS.get(found, found)
