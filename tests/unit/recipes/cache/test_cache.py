"""What a cache makes of what was read, in whatever order and pieces that comes."""

from __future__ import annotations

import pytest

from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.protocol.records import Stat
from paddock.recipes.cache.cache import Cache, ChangeKind, _Backlog


def found(czxid: int, mzxid: int) -> NodeData:
    return NodeData(b"", Stat(czxid, mzxid, *[0] * 9))


@pytest.fixture
def cache() -> Cache:
    # It is not started, so nothing is asked of the client.
    return Cache(Client.__new__(Client), "/a")


def taken(backlog: _Backlog) -> list[tuple[ChangeKind, str]]:
    return [(change.kind, change.path) for change in iter(backlog.take, None)]


def test_what_was_below_a_node_goes_with_it_before_anybody_says_so(cache: Cache) -> None:
    cache._apply([("/a", found(1, 1)), ("/a/b", found(2, 2)), ("/a/b/c", found(3, 3))])
    # The node is another one, so nothing below it can still be there.
    cache._apply([("/a", found(7, 7))])
    assert list(cache.snapshot()) == ["/a"]


def test_what_was_read_is_told_in_the_order_of_the_service(cache: Cache) -> None:
    backlog = _Backlog([])
    cache._backlogs.add(backlog)
    cache._apply([("/a/late", found(9, 9)), ("/a/early", found(2, 5)), ("/a", found(1, 1))])
    cache._apply([("/a/late", found(9, 11)), ("/a", found(1, 10)), ("/a/early", None)])
    # Merged into one change for each.
    assert taken(backlog) == [(ChangeKind.CREATED, "/a"), (ChangeKind.CREATED, "/a/late")]
    cache._apply([("/a/late", found(9, 13)), ("/a", found(1, 12)), ("/a/x", found(14, 14))])
    assert taken(backlog) == [
        (ChangeKind.CHANGED, "/a"),
        (ChangeKind.CHANGED, "/a/late"),
        (ChangeKind.CREATED, "/a/x"),
    ]


def test_what_has_not_changed_is_told_once(cache: Cache) -> None:
    backlog = _Backlog([])
    cache._backlogs.add(backlog)
    cache._apply([("/a", found(1, 1))])
    assert taken(backlog) == [(ChangeKind.CREATED, "/a")]
    cache._apply([("/a", found(1, 1))])
    assert taken(backlog) == []


def test_a_node_that_goes_is_told_after_those_below_it_also_if_it_had_changed_first(
    cache: Cache,
) -> None:
    backlog = _Backlog([])
    cache._backlogs.add(backlog)
    cache._apply([("/a", found(1, 1)), ("/a/b", found(2, 2))])
    taken(backlog)
    cache._apply([("/a", found(1, 3))])
    cache._apply([("/a/b", None)])
    cache._apply([("/a", None)])
    assert taken(backlog) == [(ChangeKind.DELETED, "/a/b"), (ChangeKind.DELETED, "/a")]


def test_what_has_come_and_gone_before_it_was_told_is_not_told(cache: Cache) -> None:
    backlog = _Backlog([])
    cache._backlogs.add(backlog)
    cache._apply([("/a", found(1, 1))])
    cache._apply([("/a", None)])
    assert taken(backlog) == []
