"""Docstrings: words about asyncio become words about blocking code, or are refused."""

from __future__ import annotations

import re
import textwrap
from typing import Final

_WORDS: Final = (
    (r"\basync (with|for|def)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\basyncio\.timeout\b", "timeout"),
    (r"\bpaddock\.connect\b", "paddock.sync.connect"),
    # The body of a blocking scope continues.
    (r"\bcancels its body\b", "tells its body when that leaves"),
    (r"\bits body is cancelled\b", "its body hears of it when it leaves"),
    (
        r"\bsince it ends what is done in it when the grant is lost\b",
        "since leaving it says whether the grant was lost",
    ),
    (r"\bis cancelled\b", "is given up"),
    (r"\bthe event loop's clock\b", "`time.monotonic()`"),
    (
        r"It must not block\. What it raises goes to the event loop's exception handler\.",
        "It may make calls. What it raises is logged.",
    ),
)
_ASYNCIO: Final = re.compile(r"\basync\b|\bawait\b|\basyncio\b|\bevent loop\b|\bcoroutine\b")


# Examples and lists keep their lines.
_LINES: Final = re.compile(r"^(?: {2,}|\* |- )", re.MULTILINE)


def adapted(text: str, width: int) -> str:
    """Return a docstring about asyncio code for blocking code, wrapped to this width."""
    return "\n\n".join(_paragraph(one, width) for one in text.split("\n\n"))


def _paragraph(text: str, width: int) -> str:
    for pattern, replacement in _WORDS:
        # A sentence may continue on the next line.
        text = re.sub(pattern.replace(" ", r"\s+"), replacement, text)
    is_wide = any(len(line) > width for line in text.splitlines())
    return textwrap.fill(text, width) if is_wide and not _LINES.search(text) else text


def left_of_asyncio(text: str) -> str | None:
    """Return the first word that only asyncio code uses, if there is one."""
    found = _ASYNCIO.search(text)
    return None if found is None else found.group()
