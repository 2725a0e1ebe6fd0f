"""The names of recipes' nodes."""

from __future__ import annotations

import pytest

from paddock import layouts
from paddock.layouts import CURATOR, KAZOO, PADDOCK, Place, Request

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


@pytest.mark.parametrize(
    ("layout", "kind", "name"),
    [
        ("curator", "lock-", f"_c_{MARK}-lock-"),
        ("kazoo", "__rlock__", f"{MARK}__rlock__"),
    ],
)
def test_a_name_is_begun_in_the_layout_that_is_asked_for(layout: str, kind: str, name: str) -> None:
    assert layouts.place_name(layout, MARK, kind) == name
    place = layouts.place_of(f"{name}0000000007")
    assert place is not None
    assert (place.layout, place.kind) == (KAZOO if layout == "kazoo" else PADDOCK, kind)


@pytest.mark.parametrize(
    ("name", "in_curators", "in_kazoos"),
    [
        (f"_c_{MARK}-lock-0000000007", False, True),
        (f"_c_{UUID}-__READ__0000000007", False, True),
        (f"{MARK}__lock__0000000003", True, False),
        (f"{MARK}__rlock__0000000003", True, False),
        ("lock-0000000007", False, False),
        (MARK, False, False),
    ],
)
def test_contenders_of_another_layout_are_told_from_strangers(
    name: str, in_curators: bool, in_kazoos: bool
) -> None:
    assert layouts.is_foreign("curator", name) is in_curators
    assert layouts.is_foreign("kazoo", name) is in_kazoos


@pytest.mark.parametrize("own", [b"", b"worker 7", b"\n\n", b"\xff\x00", b"[]"])
def test_requests_are_kept_beside_the_holders_own_data(own: bytes) -> None:
    first = Request("a" * 32, b"worker 9", 0x1000A)
    second = Request("b" * 32, b"\xff\n\xed\xa0\x80", 2**63 - 1)
    # Servers of an ensemble may give ids with the highest bit.
    third = Request("c" * 32, b"", -(2**63) + 5)
    data = layouts.with_request(layouts.with_request(own, first), second)
    data = layouts.with_request(data, third)
    assert data.startswith(layouts.REVOKE + b"\n")
    found = layouts.read_requests(data)
    assert (found.own, list(found.requests)) == (own, [first, second, third])


def test_a_request_of_curators_says_nothing_and_leaves_nothing_of_the_data() -> None:
    assert layouts.read_requests(layouts.REVOKE) == (b"", [Request()])
    later = layouts.with_request(layouts.REVOKE, Request("a" * 32, b"me", 1))
    assert layouts.read_requests(later) == (b"", [Request(), Request("a" * 32, b"me", 1)])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"worker 7",
        b"worker\n[]\n",
        b"__REVOKE__ me",
        b"__REVOKE__\n",
        b"__REVOKE__\nnot json\n",
        b"__REVOKE__\n7\n",
        b"__REVOKE__\n[7]\n",
        b'__REVOKE__\n[{"mark": "a"}]\n',
        b'__REVOKE__\n[{"mark": "a", "data": 7, "session": "0x1"}]\n',
        b'__REVOKE__\n[{"mark": "a", "data": "", "session": "one"}]\n',
        b"__REVOKE__\n" + b"[" * 100_000 + b"\n",
    ],
)
def test_data_that_are_no_request_are_the_holders_own(data: bytes) -> None:
    assert layouts.read_requests(data) == (data, ())
