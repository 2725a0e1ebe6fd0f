"""Tables by paths: small ones in one dict, large ones in many that never grow large."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from paddock.state.table import FIRST_MAX, Table

MORE = 20_000


def key(number: int) -> bytes:
    return b"/n%d" % number


@pytest.fixture(scope="module")
def numbers() -> dict[bytes, int]:
    return {key(number): number for number in range(FIRST_MAX + MORE)}


@pytest.fixture
def large(numbers: dict[bytes, int]) -> Table[int]:
    return filled(numbers)


def filled(numbers: dict[bytes, int]) -> Table[int]:
    table = Table[int]()
    for one, number in numbers.items():
        table[one] = number
    return table


def test_a_small_table_is_one_dict_in_the_order_of_its_entries() -> None:
    table = filled({b"b": 1, b"a": 2})
    table[b"b"] = 3
    assert table.dicts() == [{b"b": 3, b"a": 2}]
    assert list(table) == [b"b", b"a"]
    assert b"a" in table
    assert b"c" not in table
    assert list(table.items()) == [(b"b", 3), (b"a", 2)]
    assert list(table.values()) == [3, 2]


def test_a_table_is_one_dict_up_to_its_limit(numbers: dict[bytes, int]) -> None:
    table = filled(dict(islice(numbers.items(), FIRST_MAX)))
    assert len(table.dicts()) == 1
    table[key(0)] = -1
    assert len(table.dicts()) == 1
    table[key(FIRST_MAX)] = 1
    assert len(table.dicts()) > 1
    assert len(table) == FIRST_MAX + 1


def test_a_large_table_has_all_entries_and_no_others(
    large: Table[int], numbers: dict[bytes, int]
) -> None:
    assert len(large) == len(numbers)
    assert dict(large.items()) == numbers
    assert set(large) == numbers.keys()
    assert sorted(large.values()) == sorted(numbers.values())
    last, absent = key(FIRST_MAX + MORE - 1), key(-1)
    assert last in large
    assert large[last] == large.get(last) == FIRST_MAX + MORE - 1
    assert absent not in large
    assert large.get(absent) is None
    with pytest.raises(KeyError):
        large[absent]
    with pytest.raises(KeyError):
        del large[absent]
    assert len(large) == len(numbers)


def test_what_exceeds_the_first_dict_is_spread_evenly(large: Table[int]) -> None:
    first, *others = large.dicts()
    assert len(first) == FIRST_MAX
    assert sum(map(len, others)) == MORE
    # A share is 312, and chance alone makes it 18 more or less.
    assert all(MORE / len(others) - 150 < len(one) < MORE / len(others) + 150 for one in others)


def test_a_key_that_is_set_again_stays_where_it_is(large: Table[int]) -> None:
    early, late = key(0), key(FIRST_MAX)
    large[early], large[late] = -1, -2
    assert large.dicts()[0][early] == large[early] == -1
    assert late not in large.dicts()[0]
    assert large[late] == -2
    # Also when the first dict has room again.
    del large[key(1)]
    large[late] = -3
    assert late not in large.dicts()[0]
    assert large[late] == -3
    assert len(large) == FIRST_MAX + MORE - 1


def test_a_first_dict_that_has_room_again_is_filled_first(large: Table[int]) -> None:
    del large[key(1)]
    large[b"/new"] = 1
    assert b"/new" in large.dicts()[0]
    assert len(large) == FIRST_MAX + MORE


def test_a_large_table_that_becomes_small_is_one_dict_again(large: Table[int]) -> None:
    for number in range(FIRST_MAX, FIRST_MAX + MORE):
        assert len(large.dicts()) > 1
        del large[key(number)]
    assert len(large.dicts()) == 1
    assert len(large) == FIRST_MAX
    assert key(FIRST_MAX) not in large


def test_a_copy_has_the_same_entries_and_is_independent(
    large: Table[int], numbers: dict[bytes, int]
) -> None:
    copied = large.copy()
    del large[key(0)]
    large[key(FIRST_MAX)] = -1
    assert dict(copied.items()) == numbers


def test_a_walk_over_the_dicts_misses_nothing_that_stays(
    large: Table[int], numbers: dict[bytes, int]
) -> None:
    random = Random(7)
    gone = set[bytes]()
    seen = list[bytes]()
    everything = list(numbers)
    for one in large.dicts():
        for path in list(one):
            if path in one:
                seen.append(path)
        for _ in range(50):
            victim = random.choice(everything)
            if victim in large:
                del large[victim]
                gone.add(victim)
            large[b"/new%d" % random.getrandbits(60)] = 1
    old = [path for path in seen if path in numbers]
    assert len(old) == len(set(old))
    assert set(old) | gone == numbers.keys()


def test_what_is_known_to_be_new_is_put_where_any_other_entry_is(
    large: Table[int], numbers: dict[bytes, int]
) -> None:
    table = Table[int]()
    for one, number in numbers.items():
        table.add(one, number)
    assert table.dicts() == large.dicts()
    assert len(table) == len(numbers)
    del table[key(0)]
    # There is room in the first dict again.
    table.add(b"/new", 1)
    assert b"/new" in table.dicts()[0]


@pytest.mark.parametrize("count", [1, FIRST_MAX, FIRST_MAX + 1, FIRST_MAX + MORE])
def test_a_table_that_is_built_at_once_is_the_same_as_any_other(
    numbers: dict[bytes, int], count: int
) -> None:
    wanted = dict(islice(numbers.items(), count))
    table = Table[int]()
    for one in wanted:
        table.plant(one, -1)
    for one, number in wanted.items():
        table.plant(one, number)
    assert len(table) == count
    assert dict(table.items()) == wanted
    assert key(-1) not in table
    # Either all are in the first dict or none is.
    assert len(table.dicts()[0]) == (count if count <= FIRST_MAX else 0)


def test_a_table_that_was_built_at_once_changes_as_any_other(numbers: dict[bytes, int]) -> None:
    table = Table[int]()
    for one, number in numbers.items():
        table.plant(one, number)
    table[key(5)] = -5
    table[key(-1)] = -1
    del table[key(7)]
    wanted = {**numbers, key(5): -5, key(-1): -1}
    del wanted[key(7)]
    table.add(b"/new", 1)
    wanted[b"/new"] = 1
    assert table.dicts()[0] == {}
    assert len(table) == len(wanted)
    assert dict(table.items()) == wanted
    for one in wanted:
        del table[one]
    assert len(table) == 0
    assert len(table.dicts()) == 1
