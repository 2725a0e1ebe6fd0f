"""A set of paths that can be walked in steps while it changes.

    at = len(bag)
    while at > 0:
        at -= 1
        path = bag[at]
        …

Walked from the end like this, no path that stays is missed although paths are added and removed
between two steps: a removed path is replaced by the last one, which has been visited, and a new one
is appended. `at` may have to be lowered to `len(bag)` before a step.
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
        """Append a path, unless it is there."""
        if path not in self._places:
            self._places[path] = len(self._paths)
            self._paths.append(path)

    def remove(self, path: bytes) -> None:
        """Remove a path; the last one takes its place. Raises KeyError if it is not there."""
        place = self._places.pop(path)
        last = self._paths.pop()
        if place < len(self._paths):
            self._paths[place] = last
            self._places[last] = place
