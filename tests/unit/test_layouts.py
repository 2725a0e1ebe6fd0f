"""The names of recipes' nodes."""

from __future__ import annotations

import pytest

from paddock import layouts
from paddock.layouts import CURATOR, KAZOO, PADDOCK, Place

MARK = "0123456789abcdef" * 2
UUID = "f311e146-b032-4918-a013-25462fe11a43"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (f"_c_{MARK}-lock-0000000007", Place(PADDOCK, "lock-", 7)),
        (f"_c_{UUID}-lock-0000000007", Place(CURATOR, "lock-", 7)),
        (f"_c_{UUID}-__WRIT__0000000001", Place(CURATOR, "__WRIT__", 1)),
        # The service counts in 32 bits.
        (f"_c_{MARK}-lock--000000007", Place(PADDOCK, "lock-", -7)),
        (f"_c_{MARK}-lock--2147483648", Place(PADDOCK, "lock-", -(2**31))),
        (f"{MARK}__lock__0000000003", Place(KAZOO, "__lock__", 3)),
        (f"{MARK}__rlock__0000000003", Place(KAZOO, "__rlock__", 3)),
        (f"_c_{MARK}-lock-", None),
        (f"_c_{MARK}-other-0000000007", None),
        (f"_c_{MARK[1:]}-lock-0000000007", None),
        (f"x{MARK}__lock__0000000003", None),
        (f"_c_{MARK}-lock-0000000007x", None),
        ("lock-0000000007", None),
    ],
)
def test_a_place_in_a_line_is_known_by_its_name(name: str, place: Place | None) -> None:
    assert layouts.place_of(name) == place


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        (f"_c_{MARK}-anything", PADDOCK),
        (f"_c_{UUID}-anything", CURATOR),
        (f"{MARK}__rlock__", KAZOO),
        ("lock-0000000001", None),
    ],
)
def test_the_beginning_of_a_name_tells_whose_it_is(name: str, layout: str | None) -> None:
    assert layouts.layout_of(name) == layout


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        (f"item-100-{MARK}-0000000001", PADDOCK),
        (f"item--5-{MARK}-due17000000000-0000000001", PADDOCK),
        ("entry-100-0000000001", KAZOO),
        ("queue-0000000001", CURATOR),
        ("queue-10000000A0000000001", CURATOR),
        ("queue-|1A1EC4F4BC3|0000000000", CURATOR),
        ("queue-|name 0|0000000000", CURATOR),
        ("qn-0000000000", CURATOR),
        # A log room's.
        ("entry-0000000001", None),
        ("queue-1", None),
        (f"item-100-{MARK}", None),
    ],
)
def test_items_of_queues(name: str, layout: str | None) -> None:
    assert layouts.item_layout(name) == layout


def test_other_names() -> None:
    assert layouts.number_of("n_0000000012") == 12
    assert layouts.number_of("n_12") is None
    assert layouts.is_party_member(f"{MARK}__party__")
    assert layouts.is_party_member(f"{MARK}-host 1")
    assert not layouts.is_party_member(MARK)
    assert layouts.unique_layout(MARK) == KAZOO
    assert layouts.unique_layout(UUID) == CURATOR
    assert layouts.unique_layout("worker 7") is None
    assert layouts.fenced(f"report-{MARK}") == "report"
    assert layouts.fenced(MARK) is None


def test_numbers_that_wrap_stay_in_order() -> None:
    assert layouts.ranked([5, 3]) == [5, 3]
    # After the largest comes the least.
    late, early = layouts.ranked([-(2**31), 2**31 - 1])
    assert early < late
    assert layouts.ranked([]) == []
