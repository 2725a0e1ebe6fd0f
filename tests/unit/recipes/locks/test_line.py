"""The line of contenders: who stands in it, in which order, and who is in whose way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

import pytest

from paddock.api import connect
from paddock.protocol.acl import OPEN
from paddock.recipes.locks.line import Entry, Line, predecessor
from paddock.recipes.locks.rw_lock import _last_writer

LARGEST: Final = 2**31 - 1
READ: Final = "__READ__"
WRITE: Final = "__WRIT__"


def in_order(names: Sequence[str], kinds: Sequence[str] = ("lock-",)) -> list[Entry]:
    async def look() -> list[Entry]:
        return Line(connect("nobody:2181"), "/line", kinds, b"", OPEN).in_order(names)

    return asyncio.run(look())


def name(number: int, kind: str = "lock-", mark: str = "f" * 32) -> str:
    """Return a name as the service makes it: ten places for the number, including a minus sign."""
    return f"_c_{mark}-{kind}{number:010d}"


def numbers(after: int, count: int) -> list[int]:
    """Return consecutive sequence numbers of the service, which wrap around at 32 bits."""
    return [(after + one + 2**31) % 2**32 - 2**31 for one in range(count)]


@pytest.mark.parametrize(
    "first",
    [0, 999_999_998, LARGEST - 2, -LARGEST - 1, -1_000_000_001, -3],
    ids=["the first", "all places", "the largest", "the least", "fewer places", "up to zero"],
)
def test_numbers_are_in_the_order_in_which_the_service_gives_them(first: int) -> None:
    """Also when it begins again with the least: in 32 bits nobody is ever late."""
    expected = [name(number) for number in numbers(first, 6)]
    for seed in range(20):
        shuffled = Random(seed).sample(expected, len(expected))
        assert [entry.name for entry in in_order(shuffled)] == expected


def test_it_is_the_number_that_counts_and_neither_the_mark_nor_the_kind() -> None:
    names = [
        name(1, WRITE, "f" * 32),
        name(2, READ, "0" * 32),
        name(3, WRITE, "a" * 32),
        # As a client without marks writes it.
        f"{READ}{4:010d}",
    ]
    for seed in range(20):
        found = in_order(Random(seed).sample(names, 4), [READ, WRITE])
        assert [entry.name for entry in found] == names
        assert [entry.kind for entry in found] == [WRITE, READ, WRITE, READ]


def test_nobody_ever_waits_for_who_waits_for_it() -> None:
    """Readers and writers in every order, whatever their names sort like."""
    for seed in range(200):
        random = Random(seed)
        names = [
            name(number, random.choice([READ, WRITE]), random.randbytes(16).hex())
            for number in range(6)
        ]
        line = in_order(random.sample(names, 6), [READ, WRITE])
        for position, entry in enumerate(line):
            ahead = (predecessor if entry.kind == WRITE else _last_writer)(line[:position])
            if ahead is None:
                assert entry.kind == READ or position == 0
            else:
                assert ahead.number < entry.number
                assert WRITE in (ahead.kind, entry.kind)


@pytest.mark.parametrize(
    "stranger",
    [
        "stranger",
        "lock-",
        "lock-1",
        "lock-000000001",
        "lock-00000000012",
        "lock-000000000x",
        "lock-0000000001-",
        "lease-0000000001",
        "-0000000001",
        "0000000001",
    ],
)
def test_strangers_do_not_stand_in_the_line(stranger: str) -> None:
    found = in_order([stranger, name(7), name(-7)])
    assert [entry.number for entry in found] == [-7, 7]
