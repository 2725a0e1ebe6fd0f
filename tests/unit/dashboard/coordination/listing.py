"""Listings for tests: nodes by hand, and those that Curator has left."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from paddock.dashboard.coordination.nodes import Node
from paddock.dashboard.coordination.recipe import Recipe

# Made by tests/conformance/test_curator_layouts.py, from Curator 5.4.
RECORDED: Final = Path(__file__).with_name("curator.jsonl")


def recorded() -> list[Node]:
    """Return the listing that Curator has left."""
    rows = map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines())
    return [Node(**{**row, "data": row["data"].encode("latin-1")}) for row in rows]


def summary(recipes: Iterable[Recipe]) -> dict[str, Any]:
    """Return by path: kind, layout, how its holders and waiters do, and the size."""
    return {
        one.path: (
            one.kind.value,
            one.layout,
            [holder.how for holder in one.holders],
            [waiter.how for waiter in one.waiters],
            one.size,
        )
        for one in recipes
    }


CURATORS: Final[dict[str, Any]] = {
    "/mutex": ("lock", "Curator", ["holds"], ["waits"], None),
    "/rw": ("read-write lock", "Curator", ["reads"], ["writes", "reads"], None),
    "/semaphore": (
        "semaphore",
        "Curator",
        ["holds a lease"] * 2,
        ["waits for a lease"],
        None,
    ),
    "/latch": ("election", "Curator", ["leads"], ["stands for election"], None),
    "/queue": ("queue", "Curator", [], [], 2),
    "/priority": ("queue", "Curator", [], [], 2),
    "/delay": ("queue", "Curator", [], [], 2),
    "/id": ("queue", "Curator", [], [], 2),
    "/simple": ("queue", "Curator", [], [], 1),
    "/taken-queue": ("queue", "Curator", [], [], 1),
    "/taken-locks": ("queue", "Curator", ["processes an item"], [], None),
    # Nothing tells what they wait for, until the other comes.
    "/entering": ("members", "unknown", ["is a member"], [], 1),
    "/inside": ("barrier", "Curator", ["inside"] * 2, [], None),
    "/group": ("members", "unknown", ["is a member"] * 2, [], 2),
}
