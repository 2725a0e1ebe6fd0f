"""The tree of nodes, and the only functions that change it.

Nodes are found by their whole path, in one table: one lookup, whatever the depth. `""` is
another name of the root, as upstream, so that the parent of `/a` is found by cutting at the last
slash.

`_touch` is called before a node changes. It serves the journal, which can undo everything since
`begin`; the digest of the state; and a snapshot being written, which needs the old image of every
node that it has not written yet.

The number of nodes below a node and the bytes of their data are kept, not counted. A change costs
one step for each level above it.
"""

from __future__ import annotations

from typing import Final, Protocol

from librt.strings import BytesWriter
from mypy_extensions import i32, i64, mypyc_attr

from paddock._checksums import crc32
from paddock.protocol.acl import OPEN, READ_ONLY
from paddock.state.access import ACLTable, NodeACL
from paddock.state.limits import LIMITS, QUOTA, Quotas, governed_by
from paddock.state.node import (
    CONTAINER,
    AnswerCache,
    Children,
    Node,
    PathBag,
    data_length,
    data_term,
    header_term,
    node_term,
)
from paddock.state.planting import Planting
from paddock.state.table import Table

_INT32_MIN: Final = -0x80000000
_INT32_MAX: Final = 0x7FFFFFFF

# From this size on, the digest's part for a node's data is kept: no small request may have large
# data read again and again.
_LARGE_BYTES: Final = 1 << 12

# A journal with more records than a create has is dropped, and not used again: each keeps a node
# and its data in memory.
_KEPT_RECORDS_MAX: Final = 2

ZOOKEEPER: Final = b"/zookeeper"
CONFIG: Final = b"/zookeeper/config"
SPECIAL: Final = frozenset({b"/", ZOOKEEPER, QUOTA, CONFIG})
"""The nodes that are always there and cannot be deleted."""


class NodeImages(Protocol):
    """A snapshot being written, which must see a node before it changes."""

    def save(self, path: bytes, node: Node) -> None: ...


@mypyc_attr(acyclic=True)
class Before:
    """A journal record: a node with its fields before a change, a creation or a deletion."""

    __slots__ = ("acl", "data", "kind", "node", "numbers", "path")

    CHANGED: Final = 0
    CREATED: Final = 1
    DELETED: Final = 2

    def __init__(self, kind: int, path: bytes, node: Node) -> None:
        self.record(kind, path, node)

    def record(self, kind: int, path: bytes, node: Node) -> None:
        """Hold a node as it is now, and nothing of what was held before."""
        self.kind = kind
        self.path = path
        self.node = node
        self.data = node.data
        self.acl = node.acl
        self.numbers = (
            node.mzxid,
            node.mtime,
            node.version,
            node.created,
            node.aversion,
            node.pzxid,
        )


class Tree:
    """All nodes, and their indexes."""

    def __init__(self) -> None:
        self.nodes = Table[Node]()
        self.acls = ACLTable()
        # Paths by the session that owns them, in no order that means anything.
        self.ephemerals: dict[int, dict[bytes, None]] = {}
        self.containers = PathBag()
        self.ttls = PathBag()
        self.quotas = Quotas()
        # Bytes of all paths and data, for those who watch the server's size.
        self.data_bytes: i64 = 0
        self.answers = AnswerCache()
        # Counts snapshots. Invariant: no node's epoch is above it.
        self.epoch: i32 = 0
        # The snapshot being written, if there is one.
        self.images: NodeImages | None = None
        # What undoes the current entry, in the order in which it was done: so many records, from
        # the first on. Those behind them are of earlier entries. They are used again, since to make
        # a record and to drop it costs more than to fill it.
        self._journal: list[Before] = []
        self._journal_length: i64 = 0
        # What was planted since the last `link`.
        self._planting = Planting()
        self._digest: i64 = 0
        # For the numbers of which a term is made.
        self._numbers = BytesWriter()
        # Nodes changed since the digest was last settled, with their old terms. Invariant: every
        # other node knows its term.
        self._unsettled: dict[bytes, int] = {}
        # The digest's part for large data, with the very data that it is of. Invariant: when
        # nothing is unsettled, only nodes that are there and large have one.
        self._large: dict[bytes, tuple[bytes, int]] = {}

    @classmethod
    def fresh(cls) -> Tree:
        """Return the tree of a new service."""
        tree = cls()
        for path in (b"/", ZOOKEEPER, QUOTA):
            tree.plant(path, Node(b"", tree.acls.acquire(OPEN), 0, 0, 0))
        config = Node(b"", tree.acls.acquire(READ_ONLY), 0, 0, 0)
        config.aversion = -1
        tree.plant(CONFIG, config)
        tree.link()
        return tree

    def plant(self, path: bytes, node: Node) -> None:
        """Add a node of a snapshot, in any order and without a journal; `link` ends it.

        All that a node needs is done here, while it is in the CPU's cache: to walk over a million
        nodes once more takes 0.4 s.
        """
        self.nodes.plant(path, node)
        self._count(path, node)
        term: i64 = self._term(path, node)
        node.term = term
        self._digest += term
        if path == b"/":
            self.nodes.plant(b"", node)
            return
        self._planting.add(path, data_length(node.data))

    def link(self) -> bytes | None:
        """Link all planted nodes to their parents; return one without a parent, if there is any."""
        planting, self._planting = self._planting, Planting()
        return planting.link(self.nodes)

    def __len__(self) -> int:
        """Count the nodes, the root once."""
        return len(self.nodes) - 1

    def create(self, path: bytes, node: Node, above: bytes, parent: Node) -> None:
        """Add a new node below its parent. Its ACL has been acquired for it.

        `above` is the path of the parent, empty for the root.
        """
        self._touch(above or b"/", parent)
        self.answers.forget_children(parent)
        node.epoch = self.epoch
        self._unsettled.setdefault(path, 0)
        self._record(Before.CREATED, path, node)
        children = parent.children
        if children is None:
            children = Children(self._siblings(above) if above else None)
            parent.children = children
        self._attach(path, node, children)
        parent.created = _next(parent.created)
        parent.pzxid = node.czxid

    def delete(self, path: bytes, node: Node, above: bytes, parent: Node, zxid: i64) -> None:
        """Remove a node that is there and has no children from below its parent.

        `above` is the path of the parent, empty for the root.
        """
        self.answers.forget_data(node)
        self.answers.forget_children(node)
        self.answers.forget_children(parent)
        if parent.pzxid == zxid:
            # The end of a session deletes many children of one node: from the second on nothing
            # changes of the parent but what is counted from its children.
            self.answers.forget_data(parent)
        else:
            self._touch(above or b"/", parent)
        self._settle_later(path, node)
        self._record(Before.DELETED, path, node)
        children = parent.children
        assert children is not None
        self._detach(path, node, children)
        parent.pzxid = zxid

    def set_data(
        self, path: bytes, node: Node, data: bytes | None, zxid: i64, time_ms: i64
    ) -> None:
        self._touch(path, node)
        self._grow(path, data_length(data) - data_length(node.data))
        node.data = data
        node.mzxid = zxid
        node.mtime = time_ms
        node.version = _next(node.version)

    def set_silently(self, path: bytes, node: Node, data: bytes) -> None:
        """Set data that the server itself keeps: version, zxid and time stay."""
        self._touch(path, node)
        self._grow(path, len(data) - data_length(node.data))
        node.data = data

    def set_acl(self, path: bytes, node: Node, acl: NodeACL) -> None:
        """Replace the ACL of a node by one that has been acquired for it."""
        self._touch(path, node)
        self.acls.release(node.acl)
        node.acl = acl
        node.aversion = _next(node.aversion)

    def begin(self) -> None:
        """Start a new journal: earlier changes cannot be undone any more."""
        if len(self._journal) > _KEPT_RECORDS_MAX:
            self._journal.clear()
        self._journal_length = 0

    def undo(self) -> None:
        """Undo everything since `begin`."""
        for before in reversed(self._journal[: self._journal_length]):
            path, node = before.path, before.node
            if before.kind != Before.CHANGED:
                cut = path.rfind(b"/")
                children = self.nodes[path[:cut]].children
                assert children is not None
                if before.kind == Before.CREATED:
                    self._detach(path, node, children)
                else:
                    self.acls.retain(node.acl)
                    self._attach(path, node, children)
            else:
                self._grow(path, data_length(before.data) - data_length(node.data))
                node.data = before.data
                if node.acl is not before.acl:
                    self.acls.release(node.acl)
                    self.acls.retain(before.acl)
                    node.acl = before.acl
                (node.mzxid, node.mtime, node.version, node.created, node.aversion, node.pzxid) = (
                    before.numbers
                )
        self._journal_length = 0

    def digest(self) -> int:
        """Return the digest of all nodes, brought up to date.

        It is for use between two entries: `undo` does not undo it.
        """
        if self._unsettled:
            total = self._digest
            for path, old in self._unsettled.items():
                node = self.nodes.get(path)
                total -= old
                if node is not None:
                    node.term = self._term(path, node)
                    total += node.term
                elif self._large:
                    self._large.pop(path, None)
            self._digest = total
            self._unsettled.clear()
        return self._digest

    def adopt_digest(self) -> None:
        """Compute the digest anew from every node, whatever it was."""
        self._unsettled.clear()
        total: i64 = 0
        for path, node in self.nodes.items():
            if path:
                node.term = self._term(path, node)
                total += node.term
        self._digest = total

    def _term(self, path: bytes, node: Node) -> int:
        """Return the term of a node in the digest."""
        data = node.data
        if data is None or len(data) < _LARGE_BYTES:
            if self._large:
                self._large.pop(path, None)
            return node_term(path, node, self._numbers)
        return self._large_term(path, node, data)

    def _large_term(self, path: bytes, node: Node, data: bytes) -> int:
        name = crc32(path)
        known = self._large.get(path)
        if known is None or known[0] is not data:
            known = (data, data_term(name, data))
            self._large[path] = known
        return header_term(name, node, self._numbers) + known[1]

    def descendants(self, path: bytes) -> int:
        """Return the number of nodes below one."""
        children = self.nodes[path].children
        return 0 if children is None else int(children.below)

    def subtree(self, path: bytes) -> tuple[int, int]:
        """Return the number of nodes at and below a path, and the bytes of their data."""
        node = self.nodes.get(path)
        if node is None:
            return 0, 0
        size = data_length(node.data)
        children = node.children
        if children is None:
            return 1, size
        return int(children.below) + 1, int(children.below_bytes) + size

    def _attach(self, path: bytes, node: Node, children: Children) -> None:
        self.nodes.add(path, node)
        self._count(path, node)
        children.add(path, None)
        children.count(1, data_length(node.data))

    def _detach(self, path: bytes, node: Node, children: Children) -> None:
        del self.nodes[path]
        self._discount(path, node)
        children.count(-1, -data_length(node.data))
        self.acls.release(node.acl)
        # Last: should the parent not know the child, `undo` finds everything else done.
        del children[path]

    def _siblings(self, path: bytes) -> Children | None:
        """Return the children among which a node is; None for the root, by either name."""
        return None if len(path) < 2 else self.nodes[path[: path.rfind(b"/")]].children

    def _grow(self, path: bytes, size: i64) -> None:
        """Count that the data of a node grows by `size`, which may be negative."""
        if size:
            self.data_bytes += size
            siblings = self._siblings(path)
            if siblings is not None:
                siblings.count(0, size)

    def _touch(self, path: bytes, node: Node) -> None:
        self._settle_later(path, node)
        self._record(Before.CHANGED, path, node)
        self.answers.forget_data(node)

    def _record(self, kind: int, path: bytes, node: Node) -> None:
        """Add a record to the journal."""
        length = self._journal_length
        if length < len(self._journal):
            self._journal[length].record(kind, path, node)
        else:
            self._journal.append(Before(kind, path, node))
        self._journal_length = length + 1

    def _settle_later(self, path: bytes, node: Node) -> None:
        """Save a node for the digest and the snapshot, before it changes."""
        if path not in self._unsettled:
            self._unsettled[path] = int(node.term)
        if self.images is not None and node.epoch != self.epoch:
            self.images.save(path, node)

    def _count(self, path: bytes, node: Node) -> None:
        self.data_bytes += len(path) + data_length(node.data)
        governed = governed_by(LIMITS, path)
        if governed is not None:
            self.quotas.add(governed)
        owner = node.owner
        if owner == 0:
            return
        if owner > 0:
            mine = self.ephemerals.get(owner)
            if mine is None:
                mine = {}
                self.ephemerals[owner] = mine
            mine[path] = None
        elif owner == CONTAINER:
            self.containers.add(path)
        else:
            self.ttls.add(path)

    def _discount(self, path: bytes, node: Node) -> None:
        self.data_bytes -= len(path) + data_length(node.data)
        governed = governed_by(LIMITS, path)
        if governed is not None:
            self.quotas.remove(governed)
        owner = node.owner
        if owner == 0:
            return
        if owner > 0:
            mine = self.ephemerals[owner]
            del mine[path]
            if not mine:
                del self.ephemerals[owner]
        elif owner == CONTAINER:
            self.containers.remove(path)
        else:
            self.ttls.remove(path)


def _next(number: i32) -> i32:
    """Add 1, in 32 bits: the lowest number follows the highest."""
    # In two statements: of the value of a conditional expression mypyc makes an object.
    if number < _INT32_MAX:
        return number + 1
    return _INT32_MIN
