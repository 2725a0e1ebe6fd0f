"""The state of an Apache server, made from its snapshot and its transactions.

The nodes are Paddock's, since both keep the same numbers: `created` is the cversion that Apache
stores. Nothing is checked that Apache checked before it logged. A snapshot is fuzzy: it was written
while the server went on, so it may hold effects of later transactions, which are replayed all the
same. Then a new node may be there already, and one to be changed or deleted may be gone. These are
upstream's rules for that.
"""

from __future__ import annotations

from typing import Final

from paddock.protocol.acl import ACL, encode_acls
from paddock.state.access import NodeACL
from paddock.state.limits import Quotas, governed_by_limits, governed_by_statistics
from paddock.state.node import Children, Node, data_length
from paddock.state.tree import Tree
from paddock.upgrade import owners, quota
from paddock.upgrade.transaction import (
    UNKNOWN_CVERSION,
    Change,
    CloseSession,
    Create,
    Delete,
    Nothing,
    OpenSession,
    SetACL,
    SetData,
    Transaction,
)

# The ACL of a node in a snapshot that does not hold it: it was made while the snapshot was written,
# and the transaction that gave it to the node follows.
NOT_YET_KNOWN: Final = NodeACL((), b"")


class ApacheState:
    """Everything that an Apache server keeps. The root is found under `/` and under ``."""

    def __init__(self) -> None:
        self.nodes: dict[bytes, Node] = {}
        self.sessions: dict[int, int] = {}
        # Paths by the session that owns them.
        self.ephemerals: dict[int, dict[bytes, None]] = {}
        self.quotas = Quotas()
        # The last zxid, and the highest session that was seen, alive or over.
        self.zxid = 0
        self.last_session = 0
        # The digest that Apache wrote for the tree as it is now, if it did.
        self.digest: int | None = None
        self._acls: dict[tuple[ACL, ...], NodeACL] = {}

    @classmethod
    def fresh(cls) -> ApacheState:
        """Return the state of a new server."""
        state = cls()
        for path, node in Tree.fresh().nodes.items():
            state.nodes[path] = node
            node.acl = state.acl(node.acl.entries)
        return state

    def acl(self, entries: tuple[ACL, ...]) -> NodeACL:
        """Return the shared object for an ACL."""
        found = self._acls.get(entries)
        if found is None:
            found = NodeACL(entries, encode_acls(entries))
            self._acls[entries] = found
        return found

    def put(self, path: bytes, node: Node) -> None:
        """Add a node of a snapshot, whose parent is there unless it is the root."""
        self.nodes[path] = node
        if path:
            above, _, name = path.rpartition(b"/")
            _add_child(self.nodes[above], name)
            self._own(path, node.owner)
        else:
            self.nodes[b"/"] = node

    def apply(self, transaction: Transaction) -> None:
        """Apply a transaction, as far as it has not been applied."""
        self.last_session = max(self.last_session, transaction.session)
        for change in transaction.changes:
            self._apply(change, transaction)
        self.zxid = max(self.zxid, transaction.zxid)
        if transaction.digest is not None:
            self.digest = transaction.digest
        elif any(not isinstance(change, Nothing | OpenSession) for change in transaction.changes):
            self.digest = None

    def end_session(self, session: int, zxid: int) -> None:
        """Delete the nodes that a session still has."""
        for path in list(self.ephemerals.pop(session, ())):
            self._delete(path, zxid)

    def _apply(self, change: Change, transaction: Transaction) -> None:
        zxid = transaction.zxid
        match change:
            case Create():
                self._create(change, zxid, transaction.time_ms)
            case Delete():
                self._delete(change.path, zxid)
            case SetData():
                node = self.nodes.get(change.path)
                if node is not None:
                    old, node.data = node.data, change.data
                    node.mzxid, node.mtime = zxid, transaction.time_ms
                    node.version = change.version
                    self._count(change.path, 0, data_length(change.data) - data_length(old))
            case SetACL():
                node = self.nodes.get(change.path)
                if node is not None:
                    node.acl = self.acl(change.acl)
                    node.aversion = change.version
            case OpenSession():
                self.sessions[transaction.session] = change.timeout_ms
            case CloseSession():
                self.sessions.pop(transaction.session, None)
                for path in change.paths or ():
                    self._delete(path, zxid)
                self.end_session(transaction.session, zxid)
            case Nothing():
                pass

    def _create(self, change: Create, zxid: int, time_ms: int) -> None:
        path = change.path
        above, _, name = path.rpartition(b"/")
        parent = self.nodes.get(above)
        if parent is None:
            return
        if parent.children is not None and name in parent.children.names:
            node = self.nodes[path]
            if node.acl is NOT_YET_KNOWN:
                node.acl = self.acl(change.acl)
            if change.mends_parent:
                _raise_created(parent, change.parent_cversion, zxid)
            return
        # One that was created and deleted while the snapshot was written must not take the parent
        # back to where it was then.
        _raise_created(parent, change.parent_cversion, zxid)
        self.nodes[path] = Node(change.data, self.acl(change.acl), zxid, time_ms, change.owner)
        _add_child(parent, name)
        self._own(path, change.owner)
        limited, counted = governed_by_limits(path), governed_by_statistics(path)
        if limited is not None:
            self.quotas.add(limited)
        elif counted is not None:
            quota.count_anew(self.nodes, counted)
        self._count(path, 1, data_length(change.data))

    def _delete(self, path: bytes, zxid: int) -> None:
        above, _, name = path.rpartition(b"/")
        parent = self.nodes.get(above)
        if parent is None:
            return
        # Also if the node itself is gone: the snapshot may have been written between the two.
        if parent.children is not None:
            parent.children.names.pop(name, None)
        parent.pzxid = max(parent.pzxid, zxid)
        node = self.nodes.pop(path, None)
        if node is None:
            return
        if owners.is_session(node.owner):
            self.ephemerals.get(node.owner, {}).pop(path, None)
        limited = governed_by_limits(path)
        if limited is not None:
            self.quotas.remove(limited)
        self._count(path, -1, -data_length(node.data))

    def _count(self, path: bytes, more: int, size: int) -> None:
        quota.count(self.nodes, self.quotas, path, more, size)

    def _own(self, path: bytes, owner: int) -> None:
        if owners.is_session(owner):
            self.ephemerals.setdefault(owner, {})[path] = None
            self.last_session = max(self.last_session, owner)


def _add_child(parent: Node, name: bytes) -> None:
    if parent.children is None:
        parent.children = Children(None)
    parent.children.names[name] = None


def _raise_created(parent: Node, created: int, zxid: int) -> None:
    if created == UNKNOWN_CVERSION:
        created = int(parent.created) + 1
    if created > parent.created:
        parent.created = created
        parent.pzxid = zxid
