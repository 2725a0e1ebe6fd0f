"""Things are divided evenly, all of them, and as few as possible change hands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.recipes.groups.division import Division, decoded, divide, encoded

ITEMS = [f"item {number:02}" for number in range(10)]


def check(items: list[str], members: list[str], division: Division) -> None:
    assert list(division) == members
    given_out = [item for those in division.values() for item in those]
    assert sorted(given_out) == sorted(items)
    sizes = [len(those) for those in division.values()]
    assert max(sizes) - min(sizes) <= 1


def moved(before: Division, after: Division) -> set[str]:
    """Return the items that moved between members present before and after."""
    owner = {item: one for one, those in after.items() for item in those}
    return {item for one in before.keys() & after.keys() for item in before[one]} - {
        item for one, those in before.items() for item in those if owner.get(item) == one
    }


def test_who_comes_is_given_no_more_than_their_share() -> None:
    alone = divide(ITEMS, ["a"], {})
    assert alone == {"a": ITEMS}
    two = divide(ITEMS, ["a", "b"], alone)
    assert two == {"a": ITEMS[:5], "b": ITEMS[5:]}
    three = divide(ITEMS, ["a", "b", "c"], two)
    check(ITEMS, ["a", "b", "c"], three)
    assert len(moved(two, three)) == 3


def test_what_is_left_behind_goes_to_others_and_nothing_else_moves() -> None:
    three = divide(ITEMS, ["a", "b", "c"], {})
    two = divide(ITEMS, ["a", "c"], three)
    check(ITEMS, ["a", "c"], two)
    assert moved(three, two) == set()


def test_the_same_again_changes_nothing() -> None:
    three = divide(ITEMS, ["a", "b", "c"], {})
    assert divide(ITEMS, ["a", "b", "c"], three) == three


def test_there_may_be_more_members_than_items() -> None:
    division = divide(["x"], ["a", "b"], {})
    assert division == {"a": ["x"], "b": []}
    assert divide(["x"], ["b"], division) == {"b": ["x"]}
    assert divide([], ["a"], division) == {"a": []}


names = st.lists(st.sampled_from("abcdefg"), min_size=1, unique=True)


@given(st.lists(names, min_size=1, max_size=6), st.integers(0, 20))
def test_whoever_comes_and_goes_it_is_even_and_only_what_has_to_moves(
    rounds: list[list[str]], count: int
) -> None:
    items = [str(number) for number in range(count)]
    division: Division = {}
    for members in rounds:
        before, division = division, divide(items, members, division)
        check(items, members, division)
        least = count // len(members)
        # Nobody gives away what is within their share.
        for one in before.keys() & division.keys():
            kept = set(before[one]) & set(division[one])
            assert len(kept) >= min(len(before[one]), least)


def test_what_was_written_is_read_again() -> None:
    division = divide([*ITEMS, "ä/ö"], ["a", "b"], {})
    assert decoded(encoded(division)) == division


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\xff", b"[]", b"7"])
def test_what_is_no_division_divides_nothing(data: bytes) -> None:
    assert decoded(data) == {}


def test_what_is_no_list_of_texts_is_left_out() -> None:
    assert decoded(b'{"a": ["x"], "b": 7, "c": [7]}') == {"a": ["x"]}
