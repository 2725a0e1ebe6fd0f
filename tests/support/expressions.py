"""What a regular expression is made of, as Python parses it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

# Private modules, but the same in every release from 3.11 on; `tests/unit` would notice.
_PARSER: Any = import_module("re._parser")
_CONSTANTS: Any = import_module("re._constants")

# What matches exactly one character.
_OF_ONE = {"ANY", "IN", "LITERAL", "NOT_LITERAL"}


def repeats_group_possessively(pattern: str | bytes, flags: int = 0) -> bool:
    """Return whether more than one character is repeated possessively anywhere in a pattern.

    Releases of Python from 3.11.0 on match that wrongly (gh-106052, gh-100061) or fail
    (gh-101955); 3.13.1 is the first release after which none is known to.
    """
    return any(
        operator is _CONSTANTS.POSSESSIVE_REPEAT and not _is_one(argument[2])
        for operator, argument in _operations(_parse(pattern, flags))
    )


def compiles(pattern: str) -> bool:
    """Return whether Python takes it for a pattern at all."""
    try:
        _parse(pattern)
    except (re.error, OverflowError):
        return False
    return True


def _parse(pattern: str | bytes, flags: int = 0) -> Any:
    with warnings.catch_warnings():
        # A "[" in a set may mean something else one day.
        warnings.simplefilter("ignore", FutureWarning)
        return _PARSER.parse(pattern, flags)


def _operations(parsed: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every operation of a pattern, however deep."""
    if isinstance(parsed, _PARSER.SubPattern):
        for operator, argument in parsed:
            yield operator, argument
            yield from _operations(argument)
    elif isinstance(parsed, tuple | list):
        for part in parsed:
            yield from _operations(part)


def _is_one(parsed: Any) -> bool:
    """Return whether the compiler takes it for one character, as it does with `(?:a)`."""
    if len(parsed) != 1:
        return False
    operator, argument = parsed[0]
    if operator is _CONSTANTS.SUBPATTERN:
        return argument[0] is None and _is_one(argument[-1])
    return str(operator) in _OF_ONE
