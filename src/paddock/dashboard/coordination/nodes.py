"""Nodes by their parents: what recipes are recognised in.

Only nodes that may belong to a recipe are kept, and their parents. The items of queues are not: a
queue may have a million of them. That there are some is noted, and the stat of the node above says
how many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from paddock.layouts import CLOSED_BARRIER, item_layout, place_of
from paddock.protocol.paths import child_path, parent_path
from paddock.protocol.records import Stat

# The largest data that are read: names, addresses, a round of a barrier, an instance of a service.
DATA_BYTES_MAX: Final = 16_384
# Nodes that are not ephemeral, and a part of some recipe.
PARTS: Final = frozenset(
    {
        *("locks", "leases", "entries", "taken", "receipts", "dead"),
        *("members", "items", "ready", "lease_holder"),
    }
)

# The owner of a container, and the first byte of the owner of a node with a TTL.
_CONTAINER: Final = -(2**63)
_TTL: Final = -1
_NONE: Final[Mapping[str, Node]] = MappingProxyType({})


class Node(NamedTuple):
    """A node of a listing."""

    path: str
    data: bytes
    # As in a stat: 0 for a persistent node.
    owner: int
    czxid: int
    ctime_ms: int
    num_children: int

    @classmethod
    def read(cls, path: str, data: bytes, stat: Stat) -> Node:
        """Return the node with this stat."""
        owner, children = stat.ephemeral_owner, stat.num_children
        return cls(path, data, owner, stat.czxid, stat.ctime, children)

    @property
    def name(self) -> str:
        return self.path[self.path.rfind("/") + 1 :]

    @property
    def session(self) -> int:
        """The session that it belongs to; 0 if it is not ephemeral."""
        return session_of(self.owner)


def session_of(owner: int) -> int:
    """Return the session in the `ephemeral_owner` of a stat; 0 if the node is not ephemeral."""
    return 0 if owner == _CONTAINER or owner >> 56 == _TTL else owner


def may_matter(path: str, stat: Stat) -> bool:
    """Return whether a node may be a part of a recipe, by its name and stat."""
    if session_of(stat.ephemeral_owner):
        return True
    name = path[path.rfind("/") + 1 :]
    return (
        name in PARTS
        # The data tell whether it is one.
        or stat.data_length == len(CLOSED_BARRIER)
        or item_layout(name) is not None
        # kazoo's locks may be persistent.
        or place_of(name) is not None
    )


class Index:
    """Nodes that may belong to recipes, by their parents."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self._below: dict[str, dict[str, Node]] = {}
        # By path: whose items were seen below it.
        self._queues: dict[str, str] = {}
        self._count = 0
        for node in nodes:
            self.add(node)

    def __len__(self) -> int:
        """Return how many nodes are kept."""
        return self._count

    def add(self, node: Node) -> None:
        """Add a node, or what it is now."""
        if node.path == "/":
            self._add("", node)
            return
        above = parent_path(node.path)
        layout = None if node.session else item_layout(node.name)
        if layout is None:
            self._add(above, node)
        else:
            self._queues[above] = layout

    def _add(self, above: str, node: Node) -> None:
        siblings = self._below.setdefault(above, {})
        self._count += node.name not in siblings
        siblings[node.name] = node

    def remove(self, path: str) -> list[str]:
        """Remove a node and all below it; return their paths."""
        removed, todo = [path], [path]
        while todo:
            here = todo.pop()
            self._queues.pop(here, None)
            below = [child_path(here, one) for one in self._below.pop(here, ())]
            self._count -= len(below)
            removed += below
            todo += below
        above = "" if path == "/" else parent_path(path)
        siblings = self._below.get(above, {})
        if siblings.pop(path[path.rfind("/") + 1 :], None) is not None:
            self._count -= 1
            if not siblings:
                del self._below[above]
        return removed

    def get(self, path: str) -> Node | None:
        """Return a node that is kept."""
        above = "" if path == "/" else parent_path(path)
        return self._below.get(above, _NONE).get(path[path.rfind("/") + 1 :])

    def below(self, path: str) -> Mapping[str, Node]:
        """Return the kept children of a node, by name."""
        return self._below.get(path, _NONE)

    def queue_layout(self, path: str) -> str | None:
        """Return whose queue has its items right below a path; None if there were none."""
        return self._queues.get(path)

    def size(self, path: str) -> int | None:
        """Return how many items are right below a path; None if that is not known."""
        node = self.get(path)
        return None if node is None else max(0, node.num_children - len(self.below(path)))

    def parents(self) -> Iterator[str]:
        """Yield every path with something below it."""
        yield from (path for path in self._below if path)
        yield from (path for path in self._queues if path not in self._below)
