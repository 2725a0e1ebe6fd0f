"""A line of the shell, taken apart into words as upstream does.

Words end at blanks. One that begins with a quote ends at the next quote of its kind and stands for
what is between; a quote in the middle of a word is a character like any other, and one that is
never closed is passed over.
"""

import re
from typing import Final

_WORD: Final = re.compile(r"""\s*([^"']\S*|"[^"]*"|'[^']*')\s*""", re.ASCII)
_QUOTED: Final = re.compile(r"""(['"])(.*)\1""")


def words(line: str) -> list[str]:
    """Split a line into words: a command and its arguments."""
    return [_unquoted(word) for word in _WORD.findall(line)]


def _unquoted(word: str) -> str:
    return word[1:-1] if _QUOTED.fullmatch(word) else word
