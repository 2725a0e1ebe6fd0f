"""Recursive watches are found by what happens below them, as their definition says."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.state.recursive_watches import RecursiveWatches
from paddock.state.watcher import Watcher

names = st.sampled_from([b"a", b"b", b"aa"])
paths = st.lists(names, max_size=6).map(lambda some: b"/" + b"/".join(some))
# A watch may be set on what no node can have for a path.
odd = st.sampled_from([b"//", b"//a", b"/a/", b"/a//", b"/a//b", b"/b/"])
watched = st.one_of(paths, paths, paths, odd)
changes = st.lists(st.tuples(st.booleans(), watched, st.integers(0, 2)), max_size=30)


@given(changes, st.lists(paths, min_size=1, max_size=6))
def test_everybody_above_is_found_and_nobody_else(
    changes: list[tuple[bool, bytes, int]], events: list[bytes]
) -> None:
    everybody = [Watcher() for _ in range(3)]
    index = RecursiveWatches()
    standing: set[tuple[bytes, int]] = set()
    for adds, path, number in changes:
        if adds and (path, number) not in standing:
            index.add(path, everybody[number])
            standing.add((path, number))
        elif not adds and (path, number) in standing:
            index.remove(path, everybody[number])
            standing.remove((path, number))
        for event in events:
            found = index.join_above(event, None)
            assert {*(found or ())} == {
                everybody[who] for above, who in standing if is_above(above, event)
            }
    assert index.count == len(standing)


def is_above(path: bytes, event: bytes) -> bool:
    return event != path and event.startswith(path if path == b"/" else path + b"/")


def branch_count(index: RecursiveWatches) -> int:
    """Count all branches, with the root."""
    count, pending = 0, [index._root]
    while pending:
        count += 1
        pending += pending.pop().branches.values()
    return count


@given(changes)
def test_there_are_at_most_two_branches_for_a_watched_path(
    changes: list[tuple[bool, bytes, int]],
) -> None:
    """So what is kept follows the number of watches, and not the depth of their paths."""
    watcher = Watcher()
    index = RecursiveWatches()
    standing: set[bytes] = set()
    for adds, path, _number in changes:
        if adds and path not in standing:
            index.add(path, watcher)
            standing.add(path)
        elif not adds and path in standing:
            index.remove(path, watcher)
            standing.remove(path)
        assert branch_count(index) <= max(2 * len(standing), 1)
    for path in standing:
        index.remove(path, watcher)
    assert (branch_count(index), index.count) == (1, 0)


@pytest.mark.parametrize(
    "paths",
    [
        (b"/a/bc", b"/a/bd"),
        (b"/a/b", b"/a/bc"),
        (b"/a/bc", b"/a/b"),
        (b"/a/b/c/d", b"/a/b/cd"),
        (b"/a/b/c/d", b"/a/b"),
        (b"/a/b", b"/a/b/c/d"),
    ],
)
def test_names_that_begin_alike_are_told_apart(paths: tuple[bytes, bytes]) -> None:
    index, watchers = RecursiveWatches(), [Watcher(), Watcher()]
    for path, watcher in zip(paths, watchers, strict=True):
        index.add(path, watcher)
    for event in (b"/a/x", b"/a/b/x", b"/a/bc/x", b"/a/bd/x", b"/a/b/c/d/x", b"/a/b/cd/x"):
        found = index.join_above(event, None)
        expected = [one for one, path in zip(watchers, paths, strict=True) if is_above(path, event)]
        assert {*(found or ())} == {*expected}


@pytest.mark.parametrize("order", [*itertools.permutations((b"/a", b"/a/b", b"/a/c", b"/a/b/d"))])
def test_watches_can_be_removed_in_any_order(order: tuple[bytes, ...]) -> None:
    index, watcher = RecursiveWatches(), Watcher()
    left = sorted(order)
    for path in left:
        index.add(path, watcher)
    for path in order:
        index.remove(path, watcher)
        left.remove(path)
        assert branch_count(index) <= max(2 * len(left), 1)
        for event in (b"/a/x", b"/a/b/x", b"/a/b/d/x", b"/a/c/x"):
            found = index.join_above(event, None)
            assert bool(found) == any(is_above(one, event) for one in left)
    assert (branch_count(index), index.count) == (1, 0)


@pytest.mark.parametrize("path", [b"", b"a", b"a/b"])
def test_nothing_is_below_a_path_without_a_leading_slash(path: bytes) -> None:
    index, watcher = RecursiveWatches(), Watcher()
    index.add(path, watcher)
    for event in (b"/", b"/a", b"/a/b", b"/a/b/c"):
        found = index.join_above(event, None)
        assert found is None
    index.remove(path, watcher)
    assert (branch_count(index), index.count) == (1, 0)
