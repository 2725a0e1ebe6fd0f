"""Valid paths, and the paths above and below a path.

A path is UTF-8 `bytes`. It starts with a slash, has no empty, `.` or `..` component, and ends
without a slash unless it is the root. Control characters, private-use characters, the specials
block and everything outside the basic plane are refused, because upstream refuses them.
"""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64

ROOT: Final = b"/"
# A number, for `NUL in path`: to look for bytes in bytes, CPython first raises and drops a
# TypeError, which takes a thousand instructions.
NUL: Final = 0

# As numbers: mypyc does not know what `ord` returns, and would look it up for each character.
SLASH: Final = 0x2F
_DOT: Final = 0x2E
# What is printable in ASCII, and up to which length a name is looked at alone.
_FIRST_PLAIN: Final = 0x20
_LAST_PLAIN: Final = 0x7E
_SHORT: Final = 64
_REFUSED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


def is_valid(path: bytes) -> bool:
    """Return whether a node may have this path."""
    # By index, which is faster than `startswith`; and what is printable in ASCII is what is valid.
    if not path or path[0] != SLASH:
        return False
    if path[-1] == SLASH or path.find(b"//") >= 0:
        return path == ROOT
    if path.find(b"/.") >= 0:
        whole = path + b"/"
        if b"/./" in whole or b"/../" in whole:
            return False
    if path.isascii():
        return path.decode().isprintable()
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return False
    return _REFUSED.search(text) is None


def is_valid_child(path: bytes, above: bytes, name: bytes) -> bool:
    """Return whether a node may have this path, if one is at the path above.

    `above` is all before its last slash, which is empty below the root, and `name` all behind it:
    the caller has them. Only the name has to be looked at then.
    """
    if not 0 < len(name) <= _SHORT or name[0] == _DOT or above == ROOT:
        return is_valid(path)
    # By index: of ten bytes, compiled, in a fourth of the time of `name.decode().isprintable()`.
    at: i64 = len(name)
    while at > 0:
        at -= 1
        letter: i64 = name[at]
        if letter < _FIRST_PLAIN or letter > _LAST_PLAIN:
            return is_valid(path)
    return True


def parent(path: bytes) -> bytes:
    """Return the path above, `/` for a top-level node. The root has none."""
    assert path != ROOT, "nothing is above the root"
    cut = path.rfind(b"/")
    return path[:cut] if cut > 0 else ROOT


def parent_path(path: str) -> str:
    """Return the path above a path as text, `/` for the root as well."""
    return path[: path.rfind("/")] or "/"


def child_path(above: str, name: str) -> str:
    """Return the path of a child as text."""
    return f"/{name}" if above == "/" else f"{above}/{name}"
