"""Recursive watches are found by whatever happens below them, as their definition says."""

from __future__ import annotations

from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from paddock.state.watches import RecursiveWatches, Watcher

names = st.sampled_from([b"a", b"b", b"aa"])
paths = st.lists(names, max_size=6).map(lambda some: b"/" + b"/".join(some))
changes = st.lists(st.tuples(st.booleans(), paths, st.integers(0, 2)), max_size=30)


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
            found: dict[Watcher, None] = {}
            index.collect_above(event, found)
            assert {*found} == {everybody[who] for above, who in standing if is_above(above, event)}
    assert index.count == len(standing)


def is_above(path: bytes, event: bytes) -> bool:
    return event != path and event.startswith(path if path == b"/" else path + b"/")


def test_paths_of_the_same_checksum_are_told_apart() -> None:
    one, other = b"/2573b66f", b"/211389e7"
    assert crc32(one) == crc32(other)
    index = RecursiveWatches()
    watcher, another = Watcher(), Watcher()
    index.add(one, watcher)
    index.add(other, another)
    for path, who in ((one, watcher), (other, another)):
        found: dict[Watcher, None] = {}
        index.collect_above(path + b"/n", found)
        assert [*found] == [who]
    index.remove(other, another)
    found = {}
    index.collect_above(other + b"/n", found)
    assert found == {}
