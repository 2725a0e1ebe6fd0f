"""How things are divided among members: evenly, and so that as few as possible change hands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

# By member: what it is to have.
Division: TypeAlias = dict[str, list[str]]


def divide(
    items: Sequence[str], members: Sequence[str], before: Mapping[str, Iterable[str]]
) -> Division:
    """Divide things anew: nobody has two more than another one, and whoever can keep them does."""
    known = {*items}
    kept = {one: [item for item in before.get(one, ()) if item in known] for one in members}
    least, rest = divmod(len(items), len(members))
    # Those who have most have one more than the others, so that they keep it.
    by_wealth = sorted(members, key=lambda one: -len(kept[one]))
    quota = {one: least + (place < rest) for place, one in enumerate(by_wealth)}
    divided = {one: kept[one][: quota[one]] for one in members}
    taken = {item for those in divided.values() for item in those}
    free = [item for item in items if item not in taken]
    for one in members:
        room = quota[one] - len(divided[one])
        divided[one] += free[:room]
        free = free[room:]
    return divided


def encoded(division: Division) -> bytes:
    return json.dumps(division, separators=(",", ":")).encode()


def decoded(data: bytes) -> Division:
    """Give a division that was written; what is none divides nothing."""
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        one: those
        for one, those in found.items()
        if isinstance(those, list) and all(isinstance(item, str) for item in those)
    }
