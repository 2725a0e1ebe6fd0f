"""Nodes of the service, kept in memory: a tree that changes, and snapshots of it that never do.

A snapshot costs nothing when it is taken. It shares everything with the tree, and what is shared is
never changed: the tree makes a copy of a branch before its first change after a snapshot. That
concerns the branches from the root down to the node that changes, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paddock.protocol.records import Stat


@dataclass(frozen=True, slots=True)
class CachedNode:
    """A node as it was last read.

    What its stat says about children and ACL may be older than the data is: only what changes the
    node itself is followed.
    """

    path: str
    data: bytes
    stat: Stat


class Branch:
    """A node, and everything below it."""

    __slots__ = ("children", "edition", "node")

    def __init__(
        self,
        edition: int,
        node: CachedNode | None = None,
        children: dict[str, Branch] | None = None,
    ) -> None:
        # The tree may change it while the tree is still of this edition.
        self.edition = edition
        # None for one that we know only by what is below it.
        self.node = node
        self.children = {} if children is None else children

    def nodes(self) -> Iterator[CachedNode]:
        """Give all nodes in it, parents first."""
        level = [self]
        while level:
            following: list[Branch] = []
            for branch in level:
                if branch.node is not None:
                    yield branch.node
                following.extend(branch.children.values())
            level = following


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Snapshot(Mapping[str, CachedNode]):
    """All nodes of a cache by their paths, parents first, as they were at one moment of its life.

        print(*snapshot)  # /app /app/color
        print(snapshot["/app/color"].data)  # b'blue'

    It never changes.
    """

    path: str
    _root: Branch
    _count: int

    def children(self, path: str) -> list[str]:
        """Give the names of a node's children, in order; none, if the node is not there."""
        branch = find(self._root, self.path, path)
        return [] if branch is None else sorted(branch.children)

    def __getitem__(self, path: str) -> CachedNode:
        branch = find(self._root, self.path, path)
        if branch is None or branch.node is None:
            raise KeyError(path)
        return branch.node

    def __iter__(self) -> Iterator[str]:
        return (node.path for node in self._root.nodes())

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<Snapshot {self.path}: {self._count} nodes>"


class Tree:
    """Nodes at and below a path."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._edition = 0
        self._root = Branch(0)
        self._count = 0
        # The present state, if it was asked for since the last change.
        self._snapshot: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """Give the tree as it is now."""
        if self._snapshot is None:
            self._snapshot = Snapshot(self.path, self._root, self._count)
            # So nothing of it is ours to change any more.
            self._edition += 1
        return self._snapshot

    def get(self, path: str) -> CachedNode | None:
        branch = find(self._root, self.path, path)
        return None if branch is None else branch.node

    def children(self, path: str) -> list[str]:
        branch = find(self._root, self.path, path)
        return [] if branch is None else sorted(branch.children)

    def nodes(self) -> list[CachedNode]:
        """Give all nodes, parents first."""
        return list(self._root.nodes())

    def put(self, node: CachedNode) -> None:
        """Set a node."""
        branch = self._way_to(names_below(self.path, node.path))[-1]
        self._count += branch.node is None
        branch.node = node

    def remove(self, path: str) -> list[CachedNode]:
        """Remove a node with everything below it; give what was there, parents last."""
        branch = find(self._root, self.path, path)
        if branch is None:
            return []
        removed = list(branch.nodes())
        removed.reverse()
        self._count -= len(removed)
        names = names_below(self.path, path)
        way = self._way_to(names[:-1])
        if names:
            del way[-1].children[names[-1]]
        else:
            self._root = Branch(self._edition)
        # Nobody needs those any more that we knew only by what was below them.
        for above, name in reversed([*zip(way, names[:-1], strict=False)]):
            below = above.children[name]
            if below.node is not None or below.children:
                break
            del above.children[name]
        return removed

    def _way_to(self, names: list[str]) -> list[Branch]:
        """Give the branches from the root to a node, all of them ours to change."""
        self._snapshot = None
        self._root = branch = self._own(self._root)
        way = [branch]
        for name in names:
            found = branch.children.get(name)
            branch.children[name] = own = self._own(found or Branch(self._edition))
            branch = own
            way.append(branch)
        return way

    def _own(self, branch: Branch) -> Branch:
        if branch.edition == self._edition:
            return branch
        return Branch(self._edition, branch.node, dict(branch.children))


def find(root: Branch, top: str, path: Any) -> Branch | None:
    """Give the branch at a path, if there is one, in a tree that begins at another."""
    if path != top and not (isinstance(path, str) and is_below(top, path)):
        return None
    branch: Branch | None = root
    for name in names_below(top, path):
        branch = None if branch is None else branch.children.get(name)
    return branch


def is_below(top: str, path: str) -> bool:
    return path.startswith("/" if top == "/" else f"{top}/")


def names_below(top: str, path: str) -> list[str]:
    """Give the names on the way from one path down to another."""
    if path == top:
        return []
    return path[len(top.rstrip("/")) + 1 :].split("/")
