"""A table by paths or names that never takes long to grow.

A dict is hashed anew as a whole when it is full, which holds the server for 0.3 s at three million
entries. So a table is one dict up to `FIRST_MAX` entries. More of them are spread over many dicts,
by the hash of their key, which no client knows.

* A table of usual size costs what its one dict costs. A key of a large one is looked for twice,
  the first time in the first dict.
* An entry stays in the dict that it was put into. So the dicts can be walked one after the other
  while the table changes: no entry that stays is missed.
* A table that is built at once, when nobody waits for it, has no first dict beyond `FIRST_MAX`
  entries: `plant` spreads them all, and then a key is looked for in one of the many only.
* The order is that of a dict up to `FIRST_MAX` entries, and none beyond.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, Generic, TypeVar

from mypy_extensions import i64

V = TypeVar("V")

# How many entries the first dict may have. One more, and all of them would be hashed anew; it takes
# 10 ms to hash half as many.
FIRST_MAX: Final = (1 << 18) * 2 // 3

_PART_COUNT: Final = 64
# Not by the lowest bits of the hash: a dict looks at those, so they must differ among its keys.
_HASH_SHIFT: Final = 24


class Table(Generic[V]):
    """A mapping of bytes. Its values are not None, except in one that is used as a set of keys."""

    __slots__ = ("_first", "_spread", "_spread_count")

    def __init__(self) -> None:
        self._first: dict[bytes, V] = {}
        # What does not fit into the first. Invariants: None if there is nothing; a key is in one
        # dict only.
        self._spread: list[dict[bytes, V]] | None = None
        self._spread_count: i64 = 0

    def __len__(self) -> int:
        return len(self._first) + int(self._spread_count)

    def __contains__(self, key: object) -> bool:
        if key in self._first:
            return True
        spread = self._spread
        return spread is not None and key in spread[_place(key)]

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self.dicts())

    def dicts(self) -> list[dict[bytes, V]]:
        """Return the dicts that have all entries, for a walk; others have only later ones."""
        return [self._first] if self._spread is None else [self._first, *self._spread]

    def items(self) -> Iterable[tuple[bytes, V]]:
        return chain.from_iterable([one.items() for one in self.dicts()])

    def values(self) -> Iterable[V]:
        return chain.from_iterable([one.values() for one in self.dicts()])

    def copy(self) -> Table[V]:
        """Return a table with the same entries, whose dicts are no larger than they must be."""
        copied = Table[V]()
        for key, value in self.items():
            copied[key] = value
        return copied

    def get(self, key: bytes) -> V | None:
        found = self._first.get(key)
        if found is None:
            spread = self._spread
            if spread is not None:
                return spread[_place(key)].get(key)
        return found

    def __getitem__(self, key: bytes) -> V:
        spread = self._spread
        if spread is None or key in self._first:
            return self._first[key]
        return spread[_place(key)][key]

    def __setitem__(self, key: bytes, value: V) -> None:
        first = self._first
        if self._spread is None and len(first) < FIRST_MAX:
            first[key] = value
        else:
            self._put(key, value)

    def add(self, key: bytes, value: V) -> None:
        """Put an entry that is not there: in a large table it is not looked for first."""
        if self._has_room():
            self._first[key] = value
            return
        spread = self._spread
        if spread is None:
            self._put(key, value)
        else:
            spread[_place(key)][key] = value
            self._spread_count += 1

    def plant(self, key: bytes, value: V) -> None:
        """Put an entry into a table that is being built, and from which nothing was removed yet.

        A million of them took 0.6 s by `table[key] = value`, and take 0.2 s.
        """
        spread = self._spread
        if spread is None:
            first = self._first
            first[key] = value
            if len(first) > FIRST_MAX:
                self._first = {}
                self._spread = [{} for _ in range(_PART_COUNT)]
                for one, its in first.items():
                    self.plant(one, its)
            return
        part = spread[_place(key)]
        before: i64 = len(part)
        part[key] = value
        self._spread_count += len(part) - before

    def __delitem__(self, key: bytes) -> None:
        """Remove an entry. Raises KeyError if it is not there."""
        spread = self._spread
        if spread is None or key in self._first:
            del self._first[key]
            return
        del spread[_place(key)][key]
        self._spread_count -= 1
        if not self._spread_count:
            self._spread = None

    def _put(self, key: bytes, value: V) -> None:
        """Put an entry into a large table, or one that becomes large by it."""
        first = self._first
        if key in first:
            first[key] = value
            return
        spread = self._spread
        if spread is None:
            spread = [{} for _ in range(_PART_COUNT)]
            self._spread = spread
        part = spread[_place(key)]
        if key not in part:
            if self._has_room():
                first[key] = value
                return
            self._spread_count += 1
        part[key] = value

    def _has_room(self) -> bool:
        """Return whether a new entry goes into the first dict.

        If all others are spread, it stays empty, so that it need not be looked into.
        """
        count = len(self._first)
        return count < FIRST_MAX and (count > 0 or self._spread is None)


def _place(key: object) -> i64:
    """Return the number of the part that has a key, if it is not in the first dict."""
    # By way of an int: uncompiled, a conversion to i64 is a slow call.
    hashed: int = hash(key)
    native: i64 = hashed
    return (native >> _HASH_SHIFT) % _PART_COUNT
