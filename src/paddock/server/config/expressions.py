r"""Regular expressions of users: what not every release of Python matches as it is written.

A possessive repeat of more than one character, such as `(?:ab?c)*+`, matches what it should not
before Python 3.11.5, and fails with a SystemError in some forms in all of 3.11 and up to 3.12.7 and
3.13.0. One of a single character or set, `[^/]*+`, is right everywhere, and so is an atomic group,
`(?>(?:ab?c)*)`, which means the same.

>>> possessive_group(r"(a|b)*+c"), possessive_group(r"[ab]*+c"), possessive_group(r"(?>(a|b)*)c")
(')*+', None, None)
"""

from __future__ import annotations

import re
from typing import Final

# A comment, an escape, a set or another character; and how often it is to come, possessively.
_ITEM: Final = re.compile(
    r"(\(\?#[^)]*\)|\\(?:[0-9]+|.)|\[\^?\]?[^\]\\]*+(?:\\.[^\]\\]*+)*\]|.)"
    r"((?:[*+?]|\{(?:[0-9]+|[0-9]*,[0-9]*)\})\+)?",
    re.DOTALL,
)
# The end of a group or of a comment, and a reference to a group.
_NOT_ONE: Final = re.compile(r"\)|\(\?#|\\[1-9]")
# Here comments have another form, and blanks may stand before a repeat. So any is taken for one.
_VERBOSE: Final = re.compile(r"\(\?[a-zA-Z]*x")
_ANY_POSSESSIVE: Final = re.compile(r"[*+?}]\+")


def possessive_group(pattern: str) -> str | None:
    """Return how a pattern repeats more than one character possessively; None if it does not.

    If in doubt, it does.
    """
    if _VERBOSE.search(pattern):
        found = _ANY_POSSESSIVE.search(pattern)
        return None if found is None else found[0]
    for item, repeat in _ITEM.findall(pattern):
        if repeat and _NOT_ONE.match(item):
            return f"{item}{repeat}"
    return None
