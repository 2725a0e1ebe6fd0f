"""Names and data of nodes: the order of sequential names, and JSON objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

# The number of a sequential node; the service counts in 32 bits, so some are negative.
NUMBER: Final = r"(?P<number>-\d{9,10}|\d{10})"

_NUMBERS: Final = 2**32


def in_order(names: Iterable[str], pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """Return the matches of the names that end with the pattern, in the order of creation."""
    found = [one for name in names if (one := pattern.search(name)) and one.end() == len(name)]
    if len(found) < 2:
        return found
    numbers = [int(one["number"]) for one in found]
    # After the largest number the service goes on with the least, which is negative.
    is_wrapped = max(numbers) - min(numbers) >= _NUMBERS // 2
    ranks = [number % _NUMBERS for number in numbers] if is_wrapped else numbers
    return [found[place] for place in sorted(range(len(found)), key=ranks.__getitem__)]


def decode_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object in the data of a node; raise ValueError for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found
