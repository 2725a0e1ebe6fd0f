"""The state of an Apache server, made from its snapshot and its transactions.

The nodes are Paddock's, since both keep the same numbers: `created` is the cversion that Apache
stores. Nothing is checked that Apache checked before it logged. A snapshot is fuzzy: it was written
while the server went on, so it may hold effects of later transactions, which are replayed all the
same. Then a new node may be there already, and one to be changed or deleted may be gone. These are
upstream's rules for that.

The owner of a node is one number with four meanings. 0 is no owner, and the lowest number a
container. With all of the top eight bits set it is a TTL in milliseconds, in the low 40. Anything
else is the session of an ephemeral node; its top eight bits are the id of the server that gave it,
so for the servers from 128 on it is negative. 3.5.3 alone kept a TTL under the top bit: a session
has a time where that has zeros.

The counts below the nodes that have a quota are not in Apache's log: they are counted when a
snapshot has been loaded, and from then on with every transaction, for the nearest quota above.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from paddock.protocol.acl import ACL, encode_acls
from paddock.state.access import NodeACL
from paddock.state.limits import LIMITS, QUOTA, STATISTICS, Quotas, governed_by, statistics_text
from paddock.state.node import CONTAINER, TTL_BASE, TTL_MS_MAX, Children, Node, data_length
from paddock.state.tree import ZOOKEEPER, Tree
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
_DIGEST_STAT: Final = struct.Struct(">qqqqqiiiq")
_SIGN: Final = 1 << 63


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
            _add_child(self.nodes[path[: path.rfind(b"/")]], path)
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

    def count_quotas(self) -> None:
        """Find the quotas of a snapshot that has been loaded, and count what is below each."""
        for path in list(self.nodes):
            governed = governed_by(LIMITS, path)
            if governed:
                self.quotas.add(governed)
                self._count_anew(governed)

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
        parent = self.nodes.get(path[: path.rfind(b"/")])
        if parent is None:
            return
        if parent.children is not None and path in parent.children:
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
        _add_child(parent, path)
        self._own(path, change.owner)
        limited, counted = governed_by(LIMITS, path), governed_by(STATISTICS, path)
        if limited is not None:
            self.quotas.add(limited)
        elif counted is not None:
            self._count_anew(counted)
        self._count(path, 1, data_length(change.data))

    def _delete(self, path: bytes, zxid: int) -> None:
        parent = self.nodes.get(path[: path.rfind(b"/")])
        if parent is None:
            return
        # Also if the node itself is gone: the snapshot may have been written between the two.
        if parent.children is not None and path in parent.children:
            del parent.children[path]
        parent.pzxid = max(parent.pzxid, zxid)
        node = self.nodes.pop(path, None)
        if node is None:
            return
        if is_session(node.owner):
            self.ephemerals.get(node.owner, {}).pop(path, None)
        limited = governed_by(LIMITS, path)
        if limited is not None:
            self.quotas.remove(limited)
        self._count(path, -1, -data_length(node.data))

    def _count(self, path: bytes, more: int, size: int) -> None:
        """Count a change of a node for the nearest quota above it, if it has one."""
        quota = self.quotas.governor(path) if self.quotas.size else None
        statistics = None if quota is None else self.nodes.get(quota.statistics_path)
        if quota is not None and statistics is not None and quota.read_statistics(statistics.data):
            statistics.data = quota.add(more, size)

    def _count_anew(self, governed: bytes) -> None:
        """Count a node and everything below it into the statistics of its quota."""
        statistics = self.nodes.get(QUOTA + governed + STATISTICS)
        if statistics is None:
            return
        count = size = 0
        waiting = [governed]
        while waiting:
            path = waiting.pop()
            node = self.nodes.get(path)
            if node is not None:
                count += 1
                size += data_length(node.data)
                waiting.extend(() if node.children is None else node.children)
        statistics.data = statistics_text(count, size)

    def _own(self, path: bytes, owner: int) -> None:
        if is_session(owner):
            self.ephemerals.setdefault(owner, {})[path] = None
            self.last_session = max(self.last_session, owner)


def _add_child(parent: Node, path: bytes) -> None:
    if parent.children is None:
        parent.children = Children(None)
    parent.children[path] = None


def _raise_created(parent: Node, created: int, zxid: int) -> None:
    if created == UNKNOWN_CVERSION:
        created = int(parent.created) + 1
    if created > parent.created:
        parent.created = created
        parent.pzxid = zxid


def is_ttl(owner: int) -> bool:
    return TTL_BASE < owner <= TTL_BASE + TTL_MS_MAX


def is_session(owner: int) -> bool:
    return owner not in (0, CONTAINER) and not is_ttl(owner)


def ttl_of_3_5_3(owner: int) -> int | None:
    """Return the owner as later versions write it, if it is a TTL of 3.5.3."""
    ttl_ms = owner - CONTAINER
    return TTL_BASE + ttl_ms if 0 < ttl_ms <= TTL_MS_MAX else None


def tree_digest(nodes: dict[bytes, Node]) -> int:
    """Return the digest that Apache (3.6 and later) writes beside snapshots and transactions.

    It is a sum, modulo 2**64, with the CRC-32 of every node's path, data and stat, but for what is
    below `/zookeeper`. That ours is the same shows that the replay gave what Apache had. It does
    not cover ACLs.
    """
    total = 0
    for path, node in nodes.items():
        if path == b"/" or path.startswith(ZOOKEEPER + b"/"):
            continue
        zxids, times = (node.czxid, node.mzxid, node.pzxid), (node.ctime, node.mtime)
        versions = (node.version, node.created, node.aversion)
        stat = _DIGEST_STAT.pack(*zxids, *times, *versions, node.owner)
        total += crc32(stat, crc32(node.data or b"", crc32(path)))
    return (total + _SIGN) % (1 << 64) - _SIGN
