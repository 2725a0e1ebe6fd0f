"""Valid paths, and the paths above and below a path.

A path is UTF-8 `bytes`. It starts with a slash, has no empty, `.` or `..` component, and ends
without a slash unless it is the root. Control characters, private-use characters, the specials
block and everything outside the basic plane are refused, because upstream refuses them.
"""

from __future__ import annotations

import re
from typing import Final

ROOT: Final = b"/"
# A number, for `NUL in path`: to look for bytes in bytes, CPython first raises and drops a
# TypeError, which takes a thousand instructions.
NUL: Final = 0

# The characters of a valid path in ASCII, as nearly every path is.
_PRINTABLE: Final = bytes(range(0x20, 0x7F))
_REFUSED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


def is_valid(path: bytes) -> bool:
    """Return whether a node may have this path."""
    if not path.startswith(b"/"):
        return False
    if path.endswith(b"/") or path.find(b"//") >= 0:
        return path == ROOT
    if path.find(b"/.") >= 0:
        whole = path + b"/"
        if b"/./" in whole or b"/../" in whole:
            return False
    if not path.translate(None, _PRINTABLE):
        return True
    if path.isascii():
        return False
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return False
    return _REFUSED.search(text) is None


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
