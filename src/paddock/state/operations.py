"""The operations that change the tree: their checks, in upstream's order, and their changes.

An operation succeeds as a whole or raises `Refused`. The order of its checks decides which code a
request gets that is wrong in two ways, so it is part of the protocol. Each adds its changes to
`changes`, in the order of their events.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i32, i64, mypyc_attr

from paddock.errors import (
    BAD_ARGUMENTS,
    BAD_VERSION,
    MARSHALLING_ERROR,
    NO_AUTH,
    NO_CHILDREN_FOR_EPHEMERALS,
    NO_NODE,
    NODE_EXISTS,
    NOT_EMPTY,
    QUOTA_EXCEEDED,
    UNIMPLEMENTED,
)
from paddock.protocol import opcodes, paths
from paddock.protocol.acl import ACL, ADMIN, CREATE, DELETE, OPEN_LIST, READ, WRITE
from paddock.state import quota
from paddock.state.access import NOBODY, Identities, NodeACL
from paddock.state.acl_resolution import Resolver
from paddock.state.entry import (
    CERTIFICATES,
    ENFORCE_QUOTA,
    EXTENDED_TYPES,
    LOOSE_QUOTAS,
    NEVER_SASL,
    SASL,
    UNBOUNDED,
    Entry,
    Refused,
)
from paddock.state.limits import Quota
from paddock.state.node import CONTAINER, TTL_BASE, TTL_MS_MAX, Node, data_length
from paddock.state.quota import Notice, OverLimit
from paddock.state.tree import CONFIG, SPECIAL, Tree

PERSISTENT: Final = 0
EPHEMERAL: Final = 1
PERSISTENT_SEQUENTIAL: Final = 2
EPHEMERAL_SEQUENTIAL: Final = 3
CONTAINER_MODE: Final = 4
PERSISTENT_TTL: Final = 5
PERSISTENT_SEQUENTIAL_TTL: Final = 6

NO_TTL: Final = -1

EPHEMERALS_MAX: Final = 50_000
"""How many ephemeral nodes a session may have: its end deletes them all in one step."""


@mypyc_attr(acyclic=True)
class Change:
    """A change of a node.

    `node` and `parent` are live: copy what is needed before the next entry is applied.
    """

    __slots__ = ("kind", "node", "parent", "path", "zxid")

    CREATED: Final = 1
    DELETED: Final = 2
    DATA: Final = 3
    ACL: Final = 4

    def __init__(self, kind: int, path: bytes, zxid: i64, node: Node, parent: Node | None) -> None:
        self.kind = kind
        self.path = path
        self.zxid: i64 = zxid
        self.node = node
        # The node above, where the change is one of its children too.
        self.parent = parent


class Operations:
    """Applies operations of one entry after another to a tree."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.changes: list[Change] = []
        # What an operator should know of the entry; the first thing, if there are several.
        self.notice: Notice | None = None
        # The entry being applied, the zxid that it takes, and who asks for it.
        self._entry = Entry(0, b"")
        self._zxid: i64 = 0
        self._identities: Identities = NOBODY
        # Made for the first ACL of the entry that is not the open one.
        self._resolver: Resolver | None = None

    def begin(self, entry: Entry, zxid: i64) -> None:
        self.tree.begin()
        self.changes = []
        self.notice = None
        self._entry = entry
        self._zxid = zxid
        self._identities = NOBODY if entry.identities is None else entry.identities
        self._resolver = None

    def undo(self) -> None:
        self.tree.undo()
        self.changes = []
        # What went over a limit did not happen, unless that is why it did not.
        if not (isinstance(self.notice, OverLimit) and self.notice.is_refused):
            self.notice = None

    def create(
        self,
        operation: i32,
        path: bytes,
        data: bytes | None,
        acls: list[ACL | None] | None,
        flags: i32,
        ttl_ms: i64,
    ) -> tuple[bytes, Node]:
        """Create a node; return its path and the node.

        The operation decides on containers and TTL nodes, the flags on the rest. They may disagree,
        as upstream; so is the result.
        """
        owner = self._owner(operation, flags, ttl_ms)
        above, slash, name = path.rpartition(b"/")
        if not slash or paths.NUL in path:
            raise Refused(BAD_ARGUMENTS)
        acl = self._resolve(acls)
        parent = self._node(above)
        self._require(parent, CREATE)
        if flags in (PERSISTENT_SEQUENTIAL, EPHEMERAL_SEQUENTIAL, PERSISTENT_SEQUENTIAL_TTL):
            number = b"%010d" % parent.created
            path += number
            name += number
        if not paths.is_valid_child(path, above, name):
            raise Refused(BAD_ARGUMENTS)
        if path in self.tree.nodes:
            raise Refused(NODE_EXISTS)
        if parent.owner > 0:
            raise Refused(NO_CHILDREN_FOR_EPHEMERALS)
        if owner > 0 and not self._has_room(owner):
            raise Refused(QUOTA_EXCEEDED)
        if self.tree.quotas.size:
            governor = self.tree.quotas.governor(path, self._entry.rules <= LOOSE_QUOTAS)
            if governor is not None:
                self._ask(governor, 1, data_length(data))
        acl = self.tree.acls.share(acl)
        node = Node(data, acl, self._zxid, self._entry.time_ms, owner)
        self.tree.create(path, node, above, parent)
        quota.created(self.tree, path, data, self._entry.rules)
        self.changes.append(Change(Change.CREATED, path, self._zxid, node, parent))
        return path, node

    def delete(self, path: bytes | None, version: int) -> None:
        path, above, parent = self._deletable(path)
        node = self._node(path)
        _check_version(node.version, version)
        self._remove(path, node, above, parent)

    def delete_container(self, path: bytes | None) -> None:
        """Delete a node unless it is ephemeral. A client needs DELETE on the parent for it."""
        path, above, parent = self._deletable(path)
        node = self._node(path)
        if node.child_count():
            raise Refused(NOT_EMPTY)
        if node.owner > 0:
            raise Refused(BAD_VERSION)
        self._remove(path, node, above, parent)

    def set_data(self, path: bytes | None, data: bytes | None, version: int) -> Node:
        if not path:
            raise Refused(BAD_ARGUMENTS)
        node = self._named(path)
        self._require(node, WRITE)
        governor: Quota | None = None
        growth = 0
        if self.tree.quotas.size:
            governor = self.tree.quotas.governor(path, self._entry.rules <= LOOSE_QUOTAS)
            if governor is not None:
                growth = data_length(data) - data_length(node.data)
                self._ask(governor, 0, growth)
        _check_version(node.version, version)
        self.tree.set_data(path, node, data, self._zxid, self._entry.time_ms)
        if governor is not None:
            quota.count(self.tree, governor, 0, growth)
        self.changes.append(Change(Change.DATA, path, self._zxid, node, None))
        return node

    def set_config(self, data: bytes) -> None:
        """Set the list of servers, which no client may write."""
        node = self.tree.nodes[CONFIG]
        self.tree.set_data(CONFIG, node, data, self._zxid, self._entry.time_ms)
        # As upstream's, which does not count its versions.
        node.version = -1
        self.changes.append(Change(Change.DATA, CONFIG, self._zxid, node, None))

    def set_acl(self, path: bytes | None, acls: list[ACL | None] | None, version: int) -> Node:
        path = self._valid(path)
        acl = self._resolve(acls)
        node = self._node(path)
        self._require(node, ADMIN)
        _check_version(node.aversion, version)
        self.tree.set_acl(path, node, self.tree.acls.share(acl))
        self.changes.append(Change(Change.ACL, path, self._zxid, node, None))
        return node

    def check(self, path: bytes | None, version: int) -> Node:
        if not path:
            raise Refused(BAD_ARGUMENTS)
        node = self._named(path)
        self._require(node, READ)
        _check_version(node.version, version)
        return node

    def delete_ephemerals(self, session: int) -> None:
        """Delete all nodes of a session that is over, each as a full delete."""
        # Sorted, since the order in which they were created is forgotten by a snapshot.
        for path in sorted(self.tree.ephemerals.get(session, ())):
            self._remove_by_path(path)

    def reap(self, path: bytes, czxid: int, mzxid: int) -> bool:
        """Delete an empty container or TTL node, if it is still the one that was decided on."""
        node = self.tree.nodes.get(path)
        if (
            node is None
            or node.child_count()
            or node.owner >= 0
            or node.czxid != czxid
            or node.mzxid != mzxid
        ):
            return False
        self._remove_by_path(path)
        return True

    def _owner(self, operation: i32, flags: i32, ttl_ms: i64) -> i64:
        if not PERSISTENT <= flags <= PERSISTENT_SEQUENTIAL_TTL:
            raise Refused(BAD_ARGUMENTS)
        if flags in (PERSISTENT_TTL, PERSISTENT_SEQUENTIAL_TTL):
            if not self._entry.flags & EXTENDED_TYPES:
                raise Refused(UNIMPLEMENTED)
            if not 0 < ttl_ms <= TTL_MS_MAX:
                raise Refused(BAD_ARGUMENTS)
        elif ttl_ms >= 0 or operation == opcodes.CREATE_TTL:
            # A TTL operation without a TTL is what upstream dies of, at every restart again.
            raise Refused(BAD_ARGUMENTS)
        if operation == opcodes.CREATE_CONTAINER:
            return CONTAINER
        if operation == opcodes.CREATE_TTL:
            return TTL_BASE + ttl_ms
        if flags in (EPHEMERAL, EPHEMERAL_SEQUENTIAL):
            return self._entry.session
        return 0

    def _resolve(self, acls: list[ACL | None] | None) -> NodeACL:
        if acls is OPEN_LIST:
            return self.tree.acls.open
        resolver = self._resolver
        if resolver is None:
            entry = self._entry
            resolver = Resolver(
                self._identities,
                entry.flags & CERTIFICATES != 0,
                entry.rules != UNBOUNDED,
                entry.flags & SASL != 0 and entry.rules > NEVER_SASL,
            )
            self._resolver = resolver
        return resolver.resolve(acls)

    def _has_room(self, session: i64) -> bool:
        """Return whether a session may have one more ephemeral node."""
        mine = self.tree.ephemerals.get(session)
        return mine is None or len(mine) < EPHEMERALS_MAX or self._entry.rules == UNBOUNDED

    def _remove_by_path(self, path: bytes) -> None:
        """Delete a node that is there, unless it has children."""
        above = path[: path.rfind(b"/")]
        self._remove(path, self.tree.nodes[path], above, self.tree.nodes[above])

    def _remove(self, path: bytes, node: Node, above: bytes, parent: Node) -> None:
        if node.child_count():
            raise Refused(NOT_EMPTY)
        self.tree.delete(path, node, above, parent, self._zxid)
        quota.deleted(self.tree, path, node.data, self._entry.rules)
        self.changes.append(Change(Change.DELETED, path, self._zxid, node, parent))

    def _ask(self, governor: Quota, nodes: int, size: int) -> None:
        """Check a quota before nodes and bytes are added."""
        is_enforced = self._entry.flags & ENFORCE_QUOTA != 0
        notice = quota.examine(self.tree, governor, nodes, size, is_enforced)
        if notice is None:
            return
        if isinstance(notice, OverLimit) and notice.is_refused:
            self.notice = notice
            raise Refused(QUOTA_EXCEEDED)
        if self.notice is None:
            self.notice = notice

    def _valid(self, path: bytes | None) -> bytes:
        # A path that a node has is valid, but for the root's other name.
        if not path or (path not in self.tree.nodes and not paths.is_valid(path)):
            raise Refused(BAD_ARGUMENTS)
        return path

    def _named(self, path: bytes) -> Node:
        """Return the node with a path that is not empty, which is not even valid if none has it."""
        node = self.tree.nodes.get(path)
        if node is None:
            raise Refused(NO_NODE if paths.is_valid(path) else BAD_ARGUMENTS)
        return node

    def _node(self, path: bytes) -> Node:
        node = self.tree.nodes.get(path)
        if node is None:
            raise Refused(NO_NODE)
        return node

    def _deletable(self, path: bytes | None) -> tuple[bytes, bytes, Node]:
        """Check that a path may be deleted; its parent must exist and grant DELETE.

        Returns the path, that of the parent, and the parent.
        """
        if path is None:
            raise Refused(MARSHALLING_ERROR)
        cut = path.rfind(b"/")
        if cut < 0 or paths.NUL in path or path in SPECIAL:
            raise Refused(BAD_ARGUMENTS)
        above = path[:cut]
        parent = self._node(above)
        self._require(parent, DELETE)
        return path, above, parent

    def _require(self, node: Node, permission: int) -> None:
        acl = node.acl
        if not acl.anyone & permission and not acl.permits(permission, self._identities):
            raise Refused(NO_AUTH)


def _check_version(current: int, expected: int) -> None:
    if expected != -1 and expected != current:
        raise Refused(BAD_VERSION)
