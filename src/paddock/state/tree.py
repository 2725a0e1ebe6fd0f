"""The tree of nodes, and the only functions that change it.

Nodes are found by their whole path, in one dictionary, because that is one lookup whatever the
depth. `""` is another name of the root, as upstream, so that the parent of `/a` is found by
cutting at the last slash.

Before a node changes, `_touch` is told. That one place serves three masters: the journal, which
can undo everything since it was last cleared; the digest of the state; and a snapshot being
written, which needs the old image of every node that it has not written yet.
"""

from __future__ import annotations

from typing import Final, Protocol

from librt.strings import BytesWriter, write_i32_be, write_i64_be
from mypy_extensions import i32, i64, mypyc_attr

from paddock.protocol.acl import OPEN, READ_ONLY
from paddock.protocol.jute import to_int32
from paddock.state.access import ACLTable, NodeACL
from paddock.state.digest import node_term
from paddock.state.limits import QUOTA, Quotas, governed_by_limits
from paddock.state.path_bag import PathBag

_INT32_MIN: Final = -(1 << 31)
_INT32_MAX: Final = (1 << 31) - 1

CONTAINER: Final = -(1 << 63)
TTL_BASE: Final = -(1 << 56)
TTL_MS_MAX: Final = (1 << 40) - 1

ZOOKEEPER: Final = b"/zookeeper"
CONFIG: Final = b"/zookeeper/config"
SPECIAL: Final = frozenset({b"/", ZOOKEEPER, QUOTA, CONFIG})
"""The nodes that are always there and cannot be deleted."""


@mypyc_attr(acyclic=True)
class Node:
    """One node. Whoever changes a field has called `Tree._touch` before."""

    __slots__ = (
        "acl",
        "aversion",
        "children",
        "children_wire",
        "created",
        "ctime",
        "czxid",
        "data",
        "epoch",
        "mtime",
        "mzxid",
        "owner",
        "pzxid",
        "version",
        "wire",
    )

    def __init__(self, data: bytes | None, acl: NodeACL, zxid: i64, time_ms: i64, owner: i64):
        self.data = data
        self.acl = acl
        self.czxid: i64 = zxid
        self.mzxid: i64 = zxid
        self.pzxid: i64 = zxid
        self.ctime: i64 = time_ms
        self.mtime: i64 = time_ms
        # The session of an ephemeral node; 0; CONTAINER; or TTL_BASE plus the TTL in ms.
        self.owner: i64 = owner
        # Four of 32 bits, side by side: there may be millions of nodes.
        self.version: i32 = 0
        # How many children were ever created here. The sequence suffix shows it, and the cversion
        # on the wire is twice this minus the children there are: creates plus deletes.
        self.created: i32 = 0
        self.aversion: i32 = 0
        # The number of the last snapshot that has this node, or after whose point it was born.
        self.epoch: i32 = 0
        self.children: dict[bytes, None] | None = None
        # What get and get_children answer; thrown away when the node changes.
        self.wire: bytes | None = None
        self.children_wire: bytes | None = None

    def stat(self) -> bytes:
        """Give the stat as the wire has it."""
        writer = BytesWriter()
        self.write_stat(writer)
        return writer.getvalue()

    def write_stat(self, writer: BytesWriter) -> None:
        """Write the stat as the wire has it."""
        data, children = self.data, self.children
        child_count: i64 = 0 if children is None else len(children)
        # Not as numbers of 32 bits, of which twice as much may be none.
        created: int = self.created
        changes: i64 = created * 2 - child_count
        write_i64_be(writer, self.czxid)
        write_i64_be(writer, self.mzxid)
        write_i64_be(writer, self.ctime)
        write_i64_be(writer, self.mtime)
        write_i32_be(writer, int(self.version))
        # The usual case without the arithmetic, which is slow on numbers of any size.
        fits = -_INT32_MAX <= changes <= _INT32_MAX
        write_i32_be(writer, int(changes) if fits else to_int32(changes))
        write_i32_be(writer, int(self.aversion))
        write_i64_be(writer, max(self.owner, 0))
        write_i32_be(writer, 0 if data is None else len(data))
        write_i32_be(writer, int(child_count))
        write_i64_be(writer, self.pzxid)

    def data_and_stat(self) -> bytes:
        """Give what get answers, encoded at most once for each state of the node."""
        wire = self.wire
        if wire is None:
            data = self.data
            writer = BytesWriter()
            if data is None:
                write_i32_be(writer, -1)
            else:
                write_i32_be(writer, len(data))
                writer.write(data)
            self.write_stat(writer)
            wire = writer.getvalue()
            self.wire = wire
        return wire

    def child_list(self) -> bytes:
        """Give what get_children answers, encoded at most once for each state of the node."""
        wire = self.children_wire
        if wire is None:
            writer = BytesWriter()
            if self.children is None:
                write_i32_be(writer, 0)
            else:
                write_i32_be(writer, len(self.children))
                for name in self.children:
                    write_i32_be(writer, len(name))
                    writer.write(name)
            wire = writer.getvalue()
            self.children_wire = wire
        return wire


class NodeImages(Protocol):
    """Who must see a node before it changes: a snapshot being written."""

    def save(self, path: bytes, node: Node) -> None: ...


@mypyc_attr(acyclic=True)
class Before:
    """A node's changeable fields as they were, or that it was not there, or that it was."""

    __slots__ = ("acl", "data", "kind", "node", "numbers", "path")

    CHANGED: Final = 0
    CREATED: Final = 1
    DELETED: Final = 2

    def __init__(self, kind: int, path: bytes, node: Node) -> None:
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
    """All nodes, with what is kept about them together."""

    def __init__(self) -> None:
        self.nodes: dict[bytes, Node] = {}
        self.acls = ACLTable()
        # Paths by the session that owns them, in no order that means anything.
        self.ephemerals: dict[int, dict[bytes, None]] = {}
        self.containers = PathBag()
        self.ttls = PathBag()
        self.quotas = Quotas()
        # Bytes of all paths and data, for those who watch the server's size.
        self.data_bytes: i64 = 0
        # Counts snapshots. Invariant: no node's epoch is above it.
        self.epoch: i32 = 0
        # The snapshot being written, if there is one.
        self.images: NodeImages | None = None
        # What undoes the current entry, in the order in which it was done.
        self._journal: list[Before] = []
        self._digest: i64 = 0
        # Nodes changed since the digest was last settled, with their old terms.
        self._unsettled: dict[bytes, int] = {}

    @classmethod
    def fresh(cls) -> Tree:
        """Give the tree of a service that nobody has used yet."""
        tree = cls()
        everybody, readers = OPEN, READ_ONLY
        root = tree.plant(b"/", Node(b"", tree.acls.acquire(everybody), 0, 0, 0))
        above = tree.plant(ZOOKEEPER, Node(b"", tree.acls.acquire(everybody), 0, 0, 0))
        tree.plant(QUOTA, Node(b"", tree.acls.acquire(everybody), 0, 0, 0))
        config = tree.plant(CONFIG, Node(b"", tree.acls.acquire(readers), 0, 0, 0))
        config.aversion = -1
        root.children = {b"zookeeper": None}
        above.children = {b"config": None, b"quota": None}
        for path in SPECIAL:
            tree._digest += node_term(path, tree.nodes[path])
        return tree

    def plant(self, path: bytes, node: Node) -> Node:
        """Put a node where a snapshot had it: nobody is told, and its parent knows it already."""
        self.nodes[path] = node
        if path == b"/":
            self.nodes[b""] = node
        self._count(path, node)
        return node

    def __len__(self) -> int:
        """Count the nodes, the root once."""
        return len(self.nodes) - 1

    def create(self, path: bytes, data: bytes | None, acl: NodeACL, zxid: i64, time_ms: i64,
               owner: i64) -> Node:  # fmt: skip
        """Add a node; its parent is there, and it is not. `acl` has been acquired for it."""
        cut = path.rfind(b"/")
        above = path[:cut]
        parent = self.nodes[above]
        self._touch(above or b"/", parent)
        node = Node(data, acl, zxid, time_ms, owner)
        node.epoch = self.epoch
        if path not in self._unsettled:
            self._unsettled[path] = 0
        self.nodes[path] = node
        self._journal.append(Before(Before.CREATED, path, node))
        self._count(path, node)
        if parent.children is None:
            parent.children = {}
        parent.children[path[cut + 1 :]] = None
        parent.created = _next(parent.created)
        parent.pzxid = zxid
        parent.children_wire = None
        return node

    def delete(self, path: bytes, zxid: i64) -> Node:
        """Remove a node that is there and has no children, and give it back."""
        cut = path.rfind(b"/")
        above = path[:cut]
        parent = self.nodes[above]
        node = self.nodes[path]
        if parent.pzxid == zxid:
            # The end of a session deletes many children of one node: from the second on nothing
            # changes of the parent but what is counted from its children.
            parent.wire = None
        else:
            self._touch(above or b"/", parent)
        self._settle_later(path, node)
        self._journal.append(Before(Before.DELETED, path, node))
        del self.nodes[path]
        self._discount(path, node)
        self.acls.release(node.acl)
        assert parent.children is not None
        del parent.children[path[cut + 1 :]]
        parent.pzxid = zxid
        parent.children_wire = None
        return node

    def set_data(
        self, path: bytes, node: Node, data: bytes | None, zxid: i64, time_ms: i64
    ) -> None:
        self._touch(path, node)
        self.data_bytes += _length(data) - _length(node.data)
        node.data = data
        node.mzxid = zxid
        node.mtime = time_ms
        node.version = _next(node.version)

    def set_silently(self, path: bytes, node: Node, data: bytes) -> None:
        """Write what the server itself keeps in a node: no version, zxid or time shows it."""
        self._touch(path, node)
        self.data_bytes += len(data) - _length(node.data)
        node.data = data

    def set_acl(self, path: bytes, node: Node, acl: NodeACL) -> None:
        """Give a node another ACL, which has been acquired for it."""
        self._touch(path, node)
        self.acls.release(node.acl)
        node.acl = acl
        node.aversion = _next(node.aversion)

    def begin(self) -> None:
        """Start a new journal: what was done before is there to stay."""
        self._journal.clear()

    def undo(self) -> None:
        """Take back everything since `begin`."""
        for before in reversed(self._journal):
            path, node = before.path, before.node
            cut = path.rfind(b"/")
            if before.kind == Before.CREATED:
                del self.nodes[path]
                self._discount(path, node)
                parent = self.nodes[path[:cut]]
                assert parent.children is not None
                parent.children.pop(path[cut + 1 :], None)
                parent.children_wire = None
                self.acls.release(node.acl)
            elif before.kind == Before.DELETED:
                self.acls.retain(node.acl)
                self.nodes[path] = node
                self._count(path, node)
                parent = self.nodes[path[:cut]]
                if parent.children is None:
                    parent.children = {}
                parent.children[path[cut + 1 :]] = None
                parent.children_wire = None
            else:
                self.data_bytes += _length(before.data) - _length(node.data)
                node.data = before.data
                if node.acl is not before.acl:
                    self.acls.release(node.acl)
                    self.acls.retain(before.acl)
                    node.acl = before.acl
                (
                    node.mzxid,
                    node.mtime,
                    node.version,
                    node.created,
                    node.aversion,
                    node.pzxid,
                ) = before.numbers
                node.wire = None
        self._journal.clear()

    def digest(self) -> int:
        """Give the sum over all nodes of what each contributes, brought up to date.

        It is asked for between two entries: what was settled within one is not undone.
        """
        if self._unsettled:
            total = self._digest
            for path, old in self._unsettled.items():
                node = self.nodes.get(path)
                total -= old
                if node is not None:
                    total += node_term(path, node)
            self._digest = total
            self._unsettled.clear()
        return self._digest

    def adopt_digest(self) -> None:
        """Compute the digest anew from every node, after a snapshot was loaded."""
        self._unsettled.clear()
        total: i64 = 0
        for path, node in self.nodes.items():
            if path:
                total += node_term(path, node)
        self._digest = total

    def descendants(self, path: bytes) -> int:
        """Count all nodes below one."""
        count = 0
        waiting = [path]
        while waiting:
            above = waiting.pop()
            children = self.nodes[above].children
            if children:
                count += len(children)
                prefix = b"/" if above == b"/" else above + b"/"
                for name in children:
                    below = prefix + name
                    if self.nodes[below].children:
                        waiting.append(below)
        return count

    def _touch(self, path: bytes, node: Node) -> None:
        self._settle_later(path, node)
        self._journal.append(Before(Before.CHANGED, path, node))
        node.wire = None

    def _settle_later(self, path: bytes, node: Node) -> None:
        """Keep what the digest has of a node, and what a snapshot wants of it, as it still is."""
        if path not in self._unsettled:
            self._unsettled[path] = node_term(path, node)
        if self.images is not None and node.epoch != self.epoch:
            self.images.save(path, node)

    def _count(self, path: bytes, node: Node) -> None:
        self.data_bytes += len(path) + _length(node.data)
        governed = governed_by_limits(path)
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
        self.data_bytes -= len(path) + _length(node.data)
        governed = governed_by_limits(path)
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
    """Count one more, as 32 bits do: the lowest number follows the highest."""
    return number + 1 if number < _INT32_MAX else _INT32_MIN


def _length(data: bytes | None) -> int:
    return 0 if data is None else len(data)
