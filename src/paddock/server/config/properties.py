"""Java's properties files, the format of a `zoo.cfg`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from paddock.server.config.config import ConfigError


@dataclass(frozen=True, slots=True)
class Property:
    """A key, its value, and the line on which it begins."""

    line: int
    key: str
    value: str
    # Whether a `=` or `:` stands between them, as everybody writes, though white space is enough.
    is_separated: bool = True


def read_property_file(path: Path) -> Iterator[Property]:
    """Yield every property of a file; raises ConfigError if it cannot be read."""
    try:
        # Bytes that are not UTF-8 can only be part of a file name, and survive this way.
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    yield from read_properties(text)


def read_properties(text: str) -> Iterator[Property]:
    """Yield every property of a file, in the order of its lines.

    A key ends at the first `=`, `:` or blank without a backslash before it. A backslash at the end
    of a line continues the property on the next line; elsewhere it escapes the next character, or
    begins `\\t`, `\\n`, `\\r`, `\\f` or `\\uXXXX`. Values are trimmed, as upstream does.
    """
    pending: str | None = None
    first = 0
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = natural.lstrip(" \t\f")
        if pending is None:
            # In a continued property, an empty line or a # is part of it.
            if not line or line[0] in "#!":
                continue
            first, pending = number, ""
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2 == 1:
            pending += line[:-1]
            continue
        yield _split(first, pending + line)
        pending = None
    if pending is not None:
        yield _split(first, pending)


_KEY_AND_VALUE: Final = re.compile(
    r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*([=:]?)[ \t\f]*(.*)", flags=re.DOTALL
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", flags=re.DOTALL)
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _split(line: int, text: str) -> Property:
    match = _KEY_AND_VALUE.fullmatch(text)
    assert match is not None, "the pattern matches every text"
    key, separator, value = match.groups()
    return Property(line, _unescaped(key).strip(), _unescaped(value).strip(), bool(separator))


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code, character = match.groups()
        return chr(int(code, 16)) if code else _CONTROL.get(character, character)

    return _ESCAPE.sub(plain, text)
