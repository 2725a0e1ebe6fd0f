"""Data of nodes: JSON objects."""

from __future__ import annotations

import json
from typing import Any


def decode_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object in the data of a node; raise ValueError for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found
