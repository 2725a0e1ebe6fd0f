"""A tree of nodes in memory, and immutable snapshots of it.

A snapshot costs nothing, since it shares everything with the tree (copy on write): the tree copies
the branches from the root down to a node before it changes that node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paddock.protocol.records import Stat


@dataclass(frozen=True, slots=True)
class CachedNode:
    """A node as it was last read.

    The fields of its stat about children and ACL may be older: only changes of data are followed.
    """

    path: str
    data: bytes
    stat: Stat


class Branch:
    """A node and its descendants."""

    __slots__ = ("children", "edition", "node")

    def __init__(
        self,
        edition: int,
        node: CachedNode | None = None,
        children: dict[str, Branch] | None = None,
    ) -> None:
        # The tree may change it only while it has the same edition.
        self.edition = edition
        # None if only descendants of it are known.
        self.node = node
        self.children = {} if children is None else children

    def nodes(self) -> Iterator[CachedNode]:
        """Yield all nodes in it, parents first."""
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
    """All nodes of a cache at one moment, by their paths, parents first.

        print(*snapshot)  # /app /app/color
        print(snapshot["/app/color"].data)  # b'blue'

    It never changes.
    """

    path: str
    _root: Branch
    _count: int

    def children(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; none for a missing node."""
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
        # The present state, if there is a snapshot of it.
        self._snapshot: Snapshot | None = None

    def snapshot(self) -> Snapshot:
        """Return the tree as it is now."""
        if self._snapshot is None:
            self._snapshot = Snapshot(self.path, self._root, self._count)
            # Now every branch is shared.
            self._edition += 1
        return self._snapshot

    def get(self, path: str) -> CachedNode | None:
        branch = find(self._root, self.path, path)
        return None if branch is None else branch.node

    def children(self, path: str) -> list[str]:
        branch = find(self._root, self.path, path)
        return [] if branch is None else sorted(branch.children)

    def nodes(self) -> list[CachedNode]:
        """Return all nodes, parents first."""
        return list(self._root.nodes())

    def put(self, node: CachedNode) -> None:
        """Set a node."""
        branch = self._way_to(names_below(self.path, node.path))[-1]
        self._count += branch.node is None
        branch.node = node

    def remove(self, path: str) -> list[CachedNode]:
        """Remove a node and its descendants; return them, parents last."""
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
        # Remove branches that have neither a node nor children.
        for above, name in reversed([*zip(way, names[:-1], strict=False)]):
            below = above.children[name]
            if below.node is not None or below.children:
                break
            del above.children[name]
        return removed

    def _way_to(self, names: list[str]) -> list[Branch]:
        """Return the branches from the root to a node, none of them shared."""
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
    """Return the branch at a path, if there is one, in a tree that begins at `top`."""
    if path != top and not (isinstance(path, str) and is_below(top, path)):
        return None
    branch: Branch | None = root
    for name in names_below(top, path):
        branch = None if branch is None else branch.children.get(name)
    return branch


def is_below(top: str, path: str) -> bool:
    return path.startswith("/" if top == "/" else f"{top}/")


def names_below(top: str, path: str) -> list[str]:
    """Return the names on the way from one path down to another."""
    return [] if path == top else path[len(top.rstrip("/")) + 1 :].split("/")
