"""What the server has for us: which modes stand at a path, and what its events say of children."""

from __future__ import annotations

import pytest

from paddock.client.states import EventType
from paddock.client.watches.served import PERSISTENT, RECURSIVE, ServedWatches

CREATED, DELETED, CHANGED = EventType.CREATED, EventType.DELETED, EventType.CHANGED


def served_with(*modes: int, keeps_modes_apart: bool | None = None) -> ServedWatches:
    served = ServedWatches()
    served.keeps_modes_apart = keeps_modes_apart
    for one in modes:
        served.add(b"/a", one)
    return served


@pytest.mark.parametrize(
    ("asked", "keeps_modes_apart", "stand"),
    [
        ((PERSISTENT, RECURSIVE), None, PERSISTENT | RECURSIVE),
        ((RECURSIVE, PERSISTENT), True, PERSISTENT | RECURSIVE),
        # The latest may have taken the place of the other one.
        ((RECURSIVE, PERSISTENT), None, PERSISTENT),
        ((RECURSIVE, PERSISTENT), False, PERSISTENT),
        ((RECURSIVE, PERSISTENT | RECURSIVE), None, PERSISTENT | RECURSIVE),
    ],
)
def test_what_stands_at_a_path_after_requests(
    asked: tuple[int, ...], keeps_modes_apart: bool | None, stand: int
) -> None:
    assert served_with(*asked, keeps_modes_apart=keeps_modes_apart).at(b"/a") == stand


@pytest.mark.parametrize(("keeps_modes_apart", "stays"), [(None, 0), (False, 0), (True, RECURSIVE)])
def test_a_read_with_a_watch_of_its_own_may_have_ended_a_lasting_one(
    keeps_modes_apart: bool | None, stays: int
) -> None:
    served = served_with(RECURSIVE, keeps_modes_apart=keeps_modes_apart)
    served.take_read(b"/a")
    assert served.at(b"/a") == stays


@pytest.mark.parametrize("kind", [CREATED, DELETED])
def test_children_changed_with_what_a_recursive_watch_tells_of_them(kind: EventType) -> None:
    served = served_with(RECURSIVE)
    assert served.parent_to_tell(kind, b"/a/b", None) == b"/a"
    assert served.parent_to_tell(kind, b"/a/b/c", None) is None
    assert served.parent_to_tell(kind, b"/a", None) is None
    assert served.parent_to_tell(CHANGED, b"/a/b", None) is None
    # It says so itself.
    assert served.parent_to_tell(kind, b"/a/b", 5) is None


def test_while_watches_are_set_again_nothing_is_made_of_what_they_fire() -> None:
    served = ServedWatches()
    served.begin([b"/b"], [b"/a"])
    for _ in range(2):
        served.expect_replay()
    for due in (2, 1):
        assert served.parent_to_tell(CREATED, b"/a/b", None) is None, due
        served.end_replay()
    # Later answers are to requests that fire nothing.
    served.end_replay()
    assert served.parent_to_tell(CREATED, b"/a/b", None) == b"/a"


def test_only_an_event_with_a_zxid_tells_that_modes_are_kept_apart_and_only_here() -> None:
    served = ServedWatches()
    known = []
    for zxid in (None, 5):
        served.hear(zxid)
        known.append(served.keeps_modes_apart)
    served.begin([], [])
    assert [*known, served.keeps_modes_apart] == [None, True, None]
