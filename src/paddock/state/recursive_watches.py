"""The index of recursive watches: the watches above a path, found by walking down to it.

It is a radix tree over the segments of paths, with at most two branches for a watched path, which
keep at most twice its bytes. An event follows its own path from the root and stops where no watch
lies ahead, so it looks at each of its bytes once at most. A removal does not walk at all.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from paddock.protocol.paths import SLASH
from paddock.state.table import Table
from paddock.state.watcher import RECURSIVE, Watcher

# How many letters have a bit of their own, in 64 bits with a sign.
_LETTERS: Final = 61


class Branch:
    """A path in the index of recursive watches: one that is watched, or where others part.

    Invariant: it is watched or has two branches at least, unless it is the root.
    """

    __slots__ = ("branches", "letters", "parent", "path", "watchers")

    def __init__(self, path: bytes, parent: Branch | None) -> None:
        # The root has the empty path here, since it is the beginning of all others.
        self.path = path
        self.parent = parent
        self.watchers: dict[Watcher, int] = {}
        # By the first segment behind this path, with its slash.
        self.branches = Table[Branch]()
        # The bits of the letters that these begin with (`_letter`), and of some that did once.
        self.letters: i64 = 0

    def put(self, key: bytes, below: Branch) -> None:
        """Put a branch below this one."""
        self.branches[key] = below
        self.letters |= _letter(key, 0)


class RecursiveWatches:
    """The recursive watches of a table."""

    def __init__(self) -> None:
        # How many there are.
        self.count: i64 = 0
        self._root = Branch(b"", None)
        # The branches that are watched.
        self._by_path = Table[Branch]()

    def add(self, path: bytes, watcher: Watcher) -> None:
        """Add a watch that does not stand yet."""
        if not path.startswith(b"/"):
            # Nothing is below such a path.
            return
        self.count += 1
        branch = self._by_path.get(path)
        if branch is None:
            branch = self._root if path == b"/" else self._grow(path)
            self._by_path[path] = branch
        branch.watchers[watcher] = RECURSIVE

    def remove(self, path: bytes, watcher: Watcher) -> None:
        """Remove a watch that stands."""
        if not path.startswith(b"/"):
            return
        self.count -= 1
        branch = self._by_path[path]
        del branch.watchers[watcher]
        if not branch.watchers:
            del self._by_path[path]
            if not self._by_path:
                self._by_path = Table()
            _prune(branch)

    def join_above(self, path: bytes, here: dict[Watcher, int] | None) -> dict[Watcher, int] | None:
        """Join those `here`, at a path, with all watchers above it; None if there are none.

        Those above are added to `here`, which is the caller's own.
        """
        if path == b"/":
            return here
        branch = self._root
        concerned = _join(here, branch.watchers)
        start = 0
        # Most of what changes is not below any of them: to see that by a letter takes a twentieth
        # of what it takes to look for the segment.
        while branch.letters & _letter(path, start):
            end = path.find(b"/", start + 1)
            if end < 0:
                break
            below = branch.branches.get(path[start:end])
            if below is None:
                break
            start = len(below.path)
            if start != end and not _begins_with(path, below.path, end):
                break
            if start == len(path):
                break
            concerned = _join(concerned, below.watchers)
            branch = below
        return concerned

    def _grow(self, path: bytes) -> Branch:
        """Return the branch of a path, which is made if it is not there."""
        # Where each level of a deep path is watched, one after the other, there is no walk.
        branch = self._by_path.get(path[: path.rfind(b"/")]) or self._root
        start = len(branch.path)
        while start < len(path):
            end = path.find(b"/", start + 1)
            if end < 0:
                end = len(path)
            key = path[start:end]
            below = branch.branches.get(key)
            if below is None:
                below = Branch(path, branch)
                branch.put(key, below)
            elif len(below.path) != end and not _begins_with(path, below.path, end):
                # Only the beginning of the branch is on our way: it gets a branch of its own.
                shared = _shared(path, below.path, end)
                middle = Branch(path[:shared], branch)
                branch.put(key, middle)
                middle.put(_segment(below.path, shared), below)
                below.parent = middle
                below = middle
            branch = below
            start = len(branch.path)
        return branch


def _join(
    concerned: dict[Watcher, int] | None, more: dict[Watcher, int]
) -> dict[Watcher, int] | None:
    """Add watchers to those that were found so far, in their dictionary if there is one."""
    if not more:
        return concerned
    if concerned is None:
        return dict(more)
    concerned.update(more)
    return concerned


def _prune(branch: Branch) -> None:
    """Take a branch out that is not watched any more, unless others part there."""
    parent = branch.parent
    if parent is None or len(branch.branches) > 1:
        return
    key = _segment(branch.path, len(parent.path))
    for only in branch.branches.values():
        only.parent = parent
        parent.put(key, only)
        return
    del parent.branches[key]
    if not parent.branches:
        parent.branches = Table()
        parent.letters = 0
    if not parent.watchers:
        # It has lost one of its branches, so this goes no further up.
        _prune(parent)


def _letter(path: bytes, slash: i64) -> i64:
    """Return a bit for the letter behind a slash, which some letters share."""
    bit: i64 = 1
    if slash + 1 < len(path):
        letter: int = path[slash + 1]
        bit <<= letter % _LETTERS
    return bit


def _segment(path: bytes, start: int) -> bytes:
    """Return the segment that begins at a position, with its slash."""
    end = path.find(b"/", start + 1)
    return path[start:] if end < 0 else path[start:end]


def _begins_with(path: bytes, above: bytes, known: int) -> bool:
    """Return whether `above` is the path or above it, if that is `known` up to a position."""
    length = len(above)
    if length > len(path) or path[known:length] != above[known:]:
        return False
    return length == len(path) or path[length] == SLASH


def _shared(one: bytes, other: bytes, known: int) -> int:
    """Return how many bytes two paths share, in whole segments; `known` are the same for sure."""
    low, high = known, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    if (low == len(one) or one[low] == SLASH) and (low == len(other) or other[low] == SLASH):
        return low
    return one.rfind(b"/", 0, low)
