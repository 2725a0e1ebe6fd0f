"""Recursive watches: which ones hear of a path, and what depth and number cost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.unit.state.driver import Connection, World
from tests.unit.state.watch_words import RECURSIVE, RECURSIVE_KIND


def test_a_recursive_watch_does_not_hear_of_a_path_that_only_begins_alike(
    watcher: Connection, writer: Connection
) -> None:
    watcher.add_watch(b"/a", RECURSIVE)
    writer.create(b"/ab")
    writer.create(b"/ab/c")
    assert watcher.told == []


@pytest.mark.parametrize("lengths", [0, 50])
def test_recursive_watches_are_found_among_many_of_other_lengths(
    world: World, writer: Connection, lengths: int
) -> None:
    watchers = [world.open() for _ in range(4)]
    for watcher, path in zip(watchers, (b"/", b"/a", b"/a/b", b"/a/b/c"), strict=True):
        watcher.add_watch(path, RECURSIVE)
    for length in range(lengths):
        watchers[0].add_watch(b"/x" + b"x" * length, RECURSIVE)
    for path in (b"/a", b"/a/b", b"/a/bc", b"/a/b/c"):
        writer.create(path)
    told = [[path for _, path in watcher.told] for watcher in watchers]
    assert told == [
        [b"/a", b"/a/b", b"/a/bc", b"/a/b/c"],
        [b"/a", b"/a/b", b"/a/bc", b"/a/b/c"],
        [b"/a/b", b"/a/b/c"],
        [b"/a/b/c"],
    ]


def steps_of(call: Callable[..., object], *arguments: object) -> int:
    """Return how many lines of the modules for watches a call runs.

    Compiled code is not seen; it is the same code.
    """
    lines = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.endswith(("state/watches.py", "recursive_watches.py")):
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(*arguments)
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("where", ["at the root", "elsewhere", "on every level"])
def test_a_deep_tree_under_recursive_watches_costs_its_depth_once(
    world: World, writer: Connection, where: str
) -> None:
    """Apache took 55 ms for each of these deletes, and others waited for 24 s."""
    levels = 300
    watcher = world.open()
    paths = [b"/d" * depth for depth in range(1, levels + 1)]
    watcher.add_watch(b"/", RECURSIVE)
    for number, path in enumerate(paths):
        if where != "at the root":
            watcher.add_watch(b"/x/%d" % number if where == "elsewhere" else path, RECURSIVE)
    steps = [steps_of(writer.create, path) for path in paths]
    for path in reversed(paths):
        writer.delete(path)
    assert [path for _, path in watcher.told] == paths + paths[::-1]
    if where == "on every level":
        assert steps[-1] <= 50 + 20 * levels
    else:
        assert max(steps) <= 100


def test_watching_each_level_of_a_deep_path_costs_the_same_at_each(world: World) -> None:
    watcher = world.open()
    paths = [b"/d" * depth for depth in range(1, 301)]
    assert max(steps_of(watcher.add_watch, path, RECURSIVE) for path in paths) <= 80
    # And so does the removal, from either end.
    for path in (*paths[:100], *reversed(paths[100:])):
        assert steps_of(watcher.remove_watches, path, RECURSIVE_KIND) <= 80


@pytest.mark.parametrize("many", [10, 3000])
def test_an_event_and_a_removal_cost_the_same_whatever_is_watched_elsewhere(
    world: World, writer: Connection, many: int
) -> None:
    """Removing a recursive watch once made the next event look at all others: 3.7 s."""
    watcher, crowd = world.open(), world.open()
    writer.create(b"/a")
    watcher.add_watch(b"/a", RECURSIVE)
    for number in range(many):
        crowd.add_watch(b"/x/%d/y" % number, RECURSIVE)
        crowd.add_watch(b"/" + b"z/" * (number % 40) + b"%d" % number, RECURSIVE)
    for path in (b"/x/7/y", b"/7"):
        assert steps_of(crowd.remove_watches, path, RECURSIVE_KIND) <= 80
        assert steps_of(writer.create, b"/a/b") <= 80
        assert steps_of(writer.delete, b"/a/b") <= 80
    assert len(watcher.told) == 4
