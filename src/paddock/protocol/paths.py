"""Which paths are valid, and what is above a path.

A path is UTF-8 `bytes`. It starts with a slash, has no empty, `.` or `..` component, and ends
without a slash unless it is the root. Control characters, private-use characters, the specials
block and everything outside the basic plane are refused, because upstream refuses them.
"""

from __future__ import annotations

import re
from typing import Final

ROOT: Final = b"/"

# The whole of a valid path in ASCII; nearly every path is decided here.
_ASCII_PATH: Final = re.compile(rb"(?:/(?!\.{1,2}(?:/|\Z))[\x20-\x2e\x30-\x7e]+)+")
_TEXT_PATH: Final = re.compile(
    "(?:/(?!\\.{1,2}(?:/|\\Z))"
    "[^/\\x00-\\x1f\\x7f-\\x9f\\ud800-\\uf8ff\\ufff0-\\uffff\\U00010000-\\U0010ffff]+)+"
)


def is_valid(path: bytes) -> bool:
    """Tell whether a node may have this path."""
    if _ASCII_PATH.fullmatch(path) is not None or path == ROOT:
        return True
    if path.isascii():
        return False
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return False
    return _TEXT_PATH.fullmatch(text) is not None


def parent(path: bytes) -> bytes:
    """Give the path above, `/` for a top-level node. The root has none above it."""
    assert path != ROOT, "nothing is above the root"
    cut = path.rfind(b"/")
    return path[:cut] if cut > 0 else ROOT


def join(above: bytes, name: bytes) -> bytes:
    """Give the path of a child."""
    return above + name if above == ROOT else above + b"/" + name
