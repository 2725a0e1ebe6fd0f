"""The watches of a client: whom an event concerns, and what is left afterwards."""

from __future__ import annotations

import pytest

from paddock.client.states import Event, EventType
from paddock.client.watches.watches import ClientWatches


def first(event: Event) -> None: ...


def second(event: Event) -> None: ...


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ("data", EventType.CHANGED),
        ("data", EventType.DELETED),
        ("exists", EventType.CREATED),
        ("child", EventType.CHILDREN_CHANGED),
        ("child", EventType.DELETED),
    ],
)
def test_a_one_shot_watch_is_over_with_its_first_event(table: str, kind: EventType) -> None:
    watches = ClientWatches()
    watches.add(getattr(watches, table), b"/a", first)
    assert watches.take(kind, b"/a") == [first]
    assert watches.take(kind, b"/a") == []
    assert watches.everybody() == []


def test_persistent_watches_stay_and_recursive_ones_hear_of_what_is_below() -> None:
    watches = ClientWatches()
    watches.add(watches.persistent, b"/a", first)
    watches.add(watches.recursive, b"/", second)
    for _ in range(2):
        assert watches.take(EventType.CHANGED, b"/a") == [first, second]
        assert watches.take(EventType.CHILDREN_CHANGED, b"/a") == [first]
        assert watches.take(EventType.CHANGED, b"/a/b") == [second]


def test_somebody_who_watches_twice_is_told_once() -> None:
    watches = ClientWatches()
    watches.add(watches.data, b"/a", first)
    watches.add(watches.child, b"/a", first)
    assert watches.take(EventType.DELETED, b"/a") == [first]


def test_all_unfired_watches_are_set_again_in_pieces_of_a_bounded_size() -> None:
    watches = ClientWatches()
    paths = [b"/%04d" % number + b"x" * 1000 for number in range(300)]
    for path in paths:
        watches.add(watches.exists, path, first)
    watches.add(watches.recursive, b"/r", second)
    requests = list(watches.requests(7))
    assert len(requests) == 3
    assert [path for one in requests for path in one.exists] == paths
    assert [path for one in requests for path in one.recursive] == [b"/r"]
    assert {one.relative_zxid for one in requests} == {7}
    assert list(ClientWatches().requests(7)) == []
