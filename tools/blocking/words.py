"""How words about asyncio code become words about blocking code, and what none may be left of."""

from __future__ import annotations

import re
import textwrap
from typing import Final

_WORDS: Final = (
    (r"\basync (with|for|def)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\basyncio\.timeout\b", "timeout"),
    (r"\bpaddock\.connect\b", "paddock.sync.connect"),
    # A body in a thread goes on.
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


# What has lines of its own: examples, lists.
_LINES: Final = re.compile(r"^(?: {2,}|\* |- )", re.MULTILINE)


def adapted(text: str, width: int) -> str:
    """Return words about asyncio code as words about blocking code, in lines of this width."""
    return "\n\n".join(_paragraph(one, width) for one in text.split("\n\n"))


def _paragraph(text: str, width: int) -> str:
    for pattern, replacement in _WORDS:
        # A sentence goes on in the next line.
        text = re.sub(pattern.replace(" ", r"\s+"), replacement, text)
    is_wide = any(len(line) > width for line in text.splitlines())
    return textwrap.fill(text, width) if is_wide and not _LINES.search(text) else text


def left_of_asyncio(text: str) -> str | None:
    """Return the first word about asyncio, if there is one."""
    found = _ASYNCIO.search(text)
    return None if found is None else found.group()
