"""Dividing items among members: evenly, and so that as few as possible change hands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from paddock.recipes.common.encoding import decode_object

# The items of each member.
Division: TypeAlias = dict[str, list[str]]


def divide(
    items: Sequence[str], members: Sequence[str], before: Mapping[str, Iterable[str]]
) -> Division:
    """Divide items anew: shares differ by one at most, and members keep what they can."""
    known = {*items}
    kept = {one: [item for item in before.get(one, ()) if item in known] for one in members}
    least, rest = divmod(len(items), len(members))
    # Members with the most items get the larger quota, so that they keep them.
    by_count = sorted(members, key=lambda one: -len(kept[one]))
    quota = {one: least + (place < rest) for place, one in enumerate(by_count)}
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
    """Return the division in the data of a node; an empty one if there is none."""
    try:
        found = decode_object(data)
    except ValueError:
        return {}
    return {
        one: those
        for one, those in found.items()
        if isinstance(those, list) and all(isinstance(item, str) for item in those)
    }
