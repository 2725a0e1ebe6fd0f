"""How the value of a setting is read from text, the same wherever it was written.

Each function raises ValueError for what it cannot read; what it expected is said by the table of
settings, which knows the setting's name.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

INT32_MAX: Final = 2**31 - 1
# A session timeout that was not given and follows from the tick; the number is upstream's.
FROM_TICK: Final = -1
LISTEN_BACKLOG: Final = 1024


def decimal(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(text)
    return _within(int(text), -INT32_MAX - 1)


def at_least(low: int, high: int = INT32_MAX) -> Callable[[str], int]:
    return lambda text: _within(decimal(text), low, high)


def at_least_zero_else_zero(text: str) -> int:
    """Upstream takes anything below for 0 too."""
    return max(0, decimal(text))


def listen_backlog(text: str) -> int:
    """Upstream's default is -1: whatever the platform has."""
    number = decimal(text)
    return LISTEN_BACKLOG if number == -1 else _within(number, 1)


def timeout_ms(text: str) -> int:
    number = decimal(text)
    return FROM_TICK if number == FROM_TICK else _within(number, 1)


def decoded_integer(text: str) -> int:
    """Read a number as Java's `Integer.decode`: `0x…` and `#…` are hexadecimal, `0…` is octal."""
    match = re.fullmatch(r"\+?(?:(?:0[xX]|#)([0-9a-fA-F]+)|0([0-7]+)|([0-9]+))", text)
    if match is None:
        raise ValueError(text)
    hexadecimal, octal, plain = match.groups()
    if hexadecimal is not None:
        return _within(int(hexadecimal, 16), 1)
    return _within(int(octal, 8) if octal is not None else int(plain), 1)


def boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError(text)


def some_text(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


def url_path(text: str) -> str:
    if not re.fullmatch(r"/[A-Za-z0-9_.~/-]*", text):
        raise ValueError(text)
    return text


def one_of(*words: str) -> Callable[[str], str]:
    """Read one of the words, in capitals or not; it is given as it stands here."""
    by_lower = {word.lower(): word for word in words}

    def parse(text: str) -> str:
        if text.lower() not in by_lower:
            raise ValueError(text)
        return by_lower[text.lower()]

    return parse


def one_of_exactly(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return parse


def only_false(text: str) -> bool:
    if boolean(text):
        raise ValueError(text)
    return False


def some_path(text: str) -> Path:
    return Path(some_text(text))


def words_of(*known: str) -> Callable[[str], frozenset[str]]:
    """Read some of the known words, with commas between them."""

    def parse(text: str) -> frozenset[str]:
        words = _words(text)
        if not words or not words <= set(known):
            raise ValueError(text)
        return words

    return parse


def four_letter_words(text: str) -> frozenset[str]:
    words = _words(text)
    if any(word != "*" and not re.fullmatch(r"[a-z]{4}", word) for word in words):
        raise ValueError(text)
    return words


def host_names(text: str) -> frozenset[str]:
    words = _words(text)
    if not words or any(word != "*" and not re.fullmatch(r"[\w.:-]+", word) for word in words):
        raise ValueError(text)
    return words


def user_and_digest(text: str) -> str:
    user, _, digest = text.partition(":")
    try:
        size = len(base64.b64decode(digest, validate=True))
    except binascii.Error:
        raise ValueError(text) from None
    if not user or size != 20:
        raise ValueError(text)
    return text


def shown(value: object) -> str:
    """Write a value as it would be given; "" for none."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case frozenset():
            return ",".join(sorted(value))
    return str(value)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",")) - {""}


def _within(number: int, low: int, high: int = INT32_MAX) -> int:
    if not low <= number <= high:
        raise ValueError(number)
    return number
