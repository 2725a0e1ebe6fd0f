"""Paths in no order, that can be walked a few at a time while they change.

    at = len(bag)
    while at > 0:
        at -= 1
        path = bag[at]
        …

Walked from the end like this, nothing that stays is missed although paths are added and removed
between two steps: what is removed is replaced by the last one, which has been seen, and what is
added comes behind. `at` may have to be lowered to `len(bag)` before a step.
"""

from __future__ import annotations

from collections.abc import Iterator


class PathBag:
    """A set of paths with places from 0 on."""

    __slots__ = ("_paths", "_places")

    def __init__(self) -> None:
        # Invariant: _paths[_places[path]] is path, for each of them.
        self._paths: list[bytes] = []
        self._places: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._paths)

    def __contains__(self, path: object) -> bool:
        return path in self._places

    def __getitem__(self, place: int) -> bytes:
        return self._paths[place]

    def add(self, path: bytes) -> None:
        """Put a path behind the others, unless it is there."""
        if path not in self._places:
            self._places[path] = len(self._paths)
            self._paths.append(path)

    def remove(self, path: bytes) -> None:
        """Take a path out; the last one takes its place. Raises KeyError if it is not there."""
        place = self._places.pop(path)
        last = self._paths.pop()
        if place < len(self._paths):
            self._paths[place] = last
            self._places[last] = place
