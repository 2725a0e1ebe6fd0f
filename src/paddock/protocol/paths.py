"""Which paths are valid, and what is above a path.

A path is UTF-8 `bytes`. It starts with a slash, has no empty, `.` or `..` component, and ends
without a slash unless it is the root. Control characters, private-use characters, the specials
block and everything outside the basic plane are refused, because upstream refuses them.
"""

from __future__ import annotations

import re
from typing import Final

ROOT: Final = b"/"
# To be looked for as a number, as `NUL in path`. For bytes in bytes CPython first makes an error
# that they are no number, and forgets it: a thousand instructions.
NUL: Final = 0

# What a path in ASCII may hold; nearly every path has nothing else.
_PRINTABLE: Final = bytes(range(0x20, 0x7F))
_REFUSED: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


def is_valid(path: bytes) -> bool:
    """Tell whether a node may have this path."""
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
    """Give the path above, `/` for a top-level node. The root has none above it."""
    assert path != ROOT, "nothing is above the root"
    cut = path.rfind(b"/")
    return path[:cut] if cut > 0 else ROOT


def join(above: bytes, name: bytes) -> bytes:
    """Give the path of a child."""
    return above + name if above == ROOT else above + b"/" + name
