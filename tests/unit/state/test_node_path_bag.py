"""Paths that are walked while they change."""

from __future__ import annotations

import random

import pytest

from paddock.state.node import PathBag


def path_of(number: int) -> bytes:
    return b"/n%d" % number


def test_it_holds_each_path_once() -> None:
    bag = PathBag()
    for number in (1, 2, 1, 3):
        bag.add(path_of(number))
    bag.remove(path_of(1))
    assert sorted(bag) == [b"/n2", b"/n3"]
    assert (len(bag), b"/n1" in bag, b"/n3" in bag) == (2, False, True)
    bag.remove(path_of(3))
    bag.remove(path_of(2))
    assert not bag
    with pytest.raises(KeyError):
        bag.remove(path_of(2))


@pytest.mark.parametrize("seed", range(20))
def test_walked_from_its_end_it_shows_all_that_stays_while_it_changes(seed: int) -> None:
    chance = random.Random(seed)
    bag = PathBag()
    for number in range(200):
        bag.add(path_of(number))
    staying = set(bag)
    seen: set[bytes] = set()
    at, new = len(bag), 1000
    while at > 0:
        at -= 1
        seen.add(bag[at])
        for _ in range(chance.randrange(4)):
            if chance.random() < 0.5:
                bag.add(path_of(new))
                new += 1
            else:
                gone = bag[chance.randrange(len(bag))]
                bag.remove(gone)
                staying.discard(gone)
            if not bag:
                break
        at = min(at, len(bag))
    assert staying <= seen
