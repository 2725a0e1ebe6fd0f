"""The reference model: what ZooKeeper does, written down as plainly as it can be.

The server has a journal, shared ACLs, kept encodings and a digest; this has dictionaries. There is
no cache here, nothing is counted that can be looked up, and a transaction that fails is undone by
going back to a copy of everything. It is slow and it is meant to be read: where the two disagree,
one of them is wrong, and here it is easy to see what was meant.

It shares the records of the protocol with the server and nothing else.

>>> model = Model()
>>> _ = model.open_session(1, b"secret", 30_000)
>>> caller = Caller(session=1)
>>> request = CreateRequest(b"/a", b"data", [ACL(ALL, ANYONE)], flags=0)
>>> model.write(caller, opcodes.CREATE, request, time_ms=5).reply
CreateResponse(path=b'/a')
"""

from __future__ import annotations

import copy
import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from paddock import errors
from paddock.protocol import events, opcodes
from paddock.protocol.acl import (
    ACL,
    ADMIN,
    ALL,
    ANYONE,
    CREATE,
    DELETE,
    NOT_UNDERSTOOD,
    READ,
    WRITE,
    Identity,
)
from paddock.protocol.records import Stat
from paddock.protocol.replies import (
    ClientInfo,
    Create2Response,
    CreateResponse,
    GetACLResponse,
    GetChildren2Response,
    GetDataResponse,
    IntResponse,
    StringsResponse,
    WhoAmIResponse,
)
from paddock.protocol.requests import (
    AddWatchRequest,
    CreateRequest,
    CreateTTLRequest,
    PathRequest,
    ReconfigRequest,
    SetACLRequest,
    SetDataRequest,
    SetWatchesRequest,
    VersionRequest,
    WatchedRequest,
    WatchesRequest,
)

WriteRequest: TypeAlias = (
    CreateRequest
    | CreateTTLRequest
    | VersionRequest
    | SetDataRequest
    | SetACLRequest
    | PathRequest
    | ReconfigRequest
)
ReadRequest: TypeAlias = (
    WatchedRequest
    | PathRequest
    | SetWatchesRequest
    | AddWatchRequest
    | WatchesRequest
    | list[tuple[int, WatchedRequest]]
    | None
)
Result: TypeAlias = tuple[int, int, object]
"""One result of a transaction: operation (-1 for an error), error, and the record or None."""

ALWAYS_THERE: Final = (b"/", b"/zookeeper", b"/zookeeper/config", b"/zookeeper/quota")
QUOTA: Final = b"/zookeeper/quota"
LIMITS: Final = b"/zookeeper_limits"
STATISTICS: Final = b"/zookeeper_stats"
TTL_MS_MAX: Final = 0xFF_FFFF_FFFF

_SEQUENTIAL: Final = (2, 3, 6)
_EPHEMERAL: Final = (1, 3)
_TTL: Final = (5, 6)
_CONTAINER: Final = 4


@dataclass
class ModelNode:
    """Everything that is known about one node."""

    data: bytes | None
    acls: list[ACL]
    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int
    version: int = 0
    aversion: int = 0
    # Children ever created here, as a 32-bit counter.
    created: int = 0
    # The session that it lives as long as, or 0.
    owner: int = 0
    container: bool = False
    ttl_ms: int = 0


@dataclass
class ModelSession:
    """A session that is not over."""

    password: bytes
    timeout_ms: int
    generation: int = 1


@dataclass(eq=False)
class Caller:
    """One connection: whose it is, who is behind it, and what it was told."""

    session: int
    generation: int = 1
    identities: tuple[Identity, ...] = ()
    events: list[tuple[int, bytes]] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """What a request came to. `reply` is the record that the wire would have, or None."""

    error: int
    zxid: int
    reply: object = None


class No(Exception):  # noqa: N818
    """The request is refused with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


Watchers: TypeAlias = dict[tuple[bytes, Caller], str]
"""The watches of one kind: "once", "persistent" or "recursive" at a path for a caller."""


class Model:
    """ZooKeeper's state and watches."""

    def __init__(self, *, extended_types: bool = True, enforce_quota: bool = False) -> None:
        self.extended_types = extended_types
        self.enforce_quota = enforce_quota
        self.zxid = 0
        self.nodes: dict[bytes, ModelNode] = {}
        for path in ALWAYS_THERE:
            permissions = READ if path == b"/zookeeper/config" else ALL
            self.nodes[path] = ModelNode(b"", [ACL(permissions, ANYONE)], 0, 0, 0, 0, 0)
        self.nodes[b"/zookeeper/config"].aversion = -1
        self.sessions: dict[int, ModelSession] = {}
        self.data_watches: Watchers = {}
        self.child_watches: Watchers = {}

    # What the service decides on its own.

    def open_session(self, id: int, password: bytes, timeout_ms: int) -> Answer:
        """Begin a session, in its first generation."""
        self.zxid += 1
        self.sessions[id] = ModelSession(password, timeout_ms)
        return Answer(errors.OK, self.zxid)

    def attach(self, id: int, timeout_ms: int) -> Answer:
        """Give a session to another connection: what the older ones still send is refused."""
        session = self.sessions.get(id)
        if session is None:
            return Answer(errors.SESSION_EXPIRED, self.zxid)
        session.generation += 1
        session.timeout_ms = timeout_ms
        return Answer(errors.OK, self.zxid)

    def expire(self, id: int, generation: int) -> Answer:
        """End a session, unless it was attached again since that was decided."""
        session = self.sessions.get(id)
        if session is None or session.generation != generation:
            return Answer(errors.SESSION_MOVED, self.zxid)
        self.zxid += 1
        self._end(id)
        return Answer(errors.OK, self.zxid)

    def reap(self, path: bytes, czxid: int, mzxid: int) -> Answer:
        """Delete a container or TTL node, unless anything about it has changed since."""
        node = self.nodes.get(path)
        if (
            node is not None
            and (node.container or node.ttl_ms)
            and not self.children(path)
            and (node.czxid, node.mzxid) == (czxid, mzxid)
        ):
            self.zxid += 1
            self._delete(path)
        return Answer(errors.OK, self.zxid)

    # What clients ask for.

    def write(
        self, caller: Caller, operation: int, request: WriteRequest | None, time_ms: int
    ) -> Answer:
        """Carry out a write, which takes a zxid in any case. None stands for undecodable bytes."""
        if operation == opcodes.RECONFIG and request is None and self._alive(caller) == errors.OK:
            return Answer(errors.MARSHALLING_ERROR, self.zxid)
        self.zxid += 1
        try:
            if (code := self._alive(caller)) != errors.OK:
                raise No(code)
            reply = self._write(caller, operation, request, time_ms)
        except No as no:
            return Answer(no.code, self.zxid)
        return Answer(errors.OK, self.zxid, reply)

    def multi(self, caller: Caller, steps: list[tuple[int, WriteRequest]], time_ms: int) -> Answer:
        """Carry out all steps or none. The reply is a list of results."""
        self.zxid += 1
        if (code := self._alive(caller)) != errors.OK:
            return Answer(code, self.zxid)
        if any(self._cannot_be_a_step(request) for _operation, request in steps):
            return Answer(errors.MARSHALLING_ERROR, self.zxid)
        before = {path: copy.copy(node) for path, node in self.nodes.items()}
        watches_before = dict(self.data_watches), dict(self.child_watches)
        told: list[tuple[Caller, int]] = [
            (watcher, len(watcher.events))
            for _path, watcher in [*self.data_watches, *self.child_watches]
        ]
        results: list[Result] = []
        for number, (operation, request) in enumerate(steps):
            try:
                results.append(self._step(caller, operation, request, time_ms))
            except No as no:
                self.nodes = before
                self.data_watches, self.child_watches = watches_before
                for watcher, count in told:
                    del watcher.events[count:]
                if no.code == errors.MARSHALLING_ERROR:
                    return Answer(no.code, self.zxid)
                codes = [errors.OK] * number + [no.code]
                codes += [errors.RUNTIME_INCONSISTENCY] * (len(steps) - len(codes))
                return Answer(
                    errors.OK, self.zxid, [(-1, code, IntResponse(code)) for code in codes]
                )
        return Answer(errors.OK, self.zxid, results)

    def close(self, caller: Caller) -> Answer:
        """End the caller's session."""
        self.zxid += 1
        if (code := self._alive(caller)) != errors.OK:
            return Answer(code, self.zxid)
        self._end(caller.session)
        return Answer(errors.OK, self.zxid)

    def read(self, caller: Caller, operation: int, request: ReadRequest) -> Answer:
        """Answer a query, and set or remove the watches it asks for."""
        try:
            return Answer(errors.OK, self.zxid, self._read(caller, operation, request))
        except No as no:
            return Answer(no.code, self.zxid)

    def forget(self, caller: Caller) -> None:
        """Drop the watches of a connection that is gone."""
        for table in (self.data_watches, self.child_watches):
            for key in [key for key in table if key[1] is caller]:
                del table[key]

    # Looking.

    def children(self, path: bytes) -> list[bytes]:
        """Give the names of a node's children."""
        prefix = b"/" if path == b"/" else path + b"/"
        return [
            other[len(prefix) :]
            for other in self.nodes
            if other.startswith(prefix) and other != b"/" and b"/" not in other[len(prefix) :]
        ]

    def stat(self, path: bytes) -> Stat:
        """Give the stat of a node that is there."""
        node = self.nodes[path]
        children = len(self.children(path))
        return Stat(
            czxid=node.czxid,
            mzxid=node.mzxid,
            ctime=node.ctime,
            mtime=node.mtime,
            version=node.version,
            cversion=_int32(2 * node.created - children),
            aversion=node.aversion,
            ephemeral_owner=node.owner,
            data_length=len(node.data or b""),
            num_children=children,
            pzxid=node.pzxid,
        )

    # Writing.

    def _alive(self, caller: Caller) -> int:
        session = self.sessions.get(caller.session)
        if session is None:
            return errors.SESSION_EXPIRED
        if session.generation != caller.generation:
            return errors.SESSION_MOVED
        return errors.OK

    def _write(
        self, caller: Caller, operation: int, request: WriteRequest | None, time_ms: int
    ) -> object:
        match request:
            case CreateRequest() | CreateTTLRequest():
                ttl_ms = request.ttl_ms if isinstance(request, CreateTTLRequest) else -1
                flags = request.flags
                if not 0 <= flags <= 6:
                    raise No(errors.BAD_ARGUMENTS)
                if flags in _TTL and not self.extended_types:
                    raise No(errors.UNIMPLEMENTED)
                if flags in _TTL and not 1 <= ttl_ms <= TTL_MS_MAX:
                    raise No(errors.BAD_ARGUMENTS)
                if flags not in _TTL and (ttl_ms >= 0 or operation == opcodes.CREATE_TTL):
                    raise No(errors.BAD_ARGUMENTS)
                kind = _kind_of(operation, flags)
                path = self._create(caller, request, kind, ttl_ms, time_ms)
                if operation == opcodes.CREATE:
                    return CreateResponse(path)
                return Create2Response(path, self.stat(path))
            case VersionRequest() if operation == opcodes.DELETE:
                self._delete_checked(caller, request)
                return None
            case VersionRequest():
                return self.stat(self._check(caller, request))
            case SetDataRequest():
                return self.stat(self._set_data(caller, request, time_ms))
            case SetACLRequest():
                return self.stat(self._set_acl(caller, request))
            case PathRequest():
                self._delete_container(caller, request.path)
                return None
            case ReconfigRequest():
                raise No(errors.RECONFIG_DISABLED)
            case None:
                raise No(errors.MARSHALLING_ERROR)

    def _cannot_be_a_step(self, request: WriteRequest) -> bool:
        match request:
            case CreateRequest() | CreateTTLRequest():
                return False
            case VersionRequest() | SetDataRequest():
                return request.path is None
            case _:
                return True

    def _step(self, caller: Caller, operation: int, request: WriteRequest, time_ms: int) -> Result:
        match request:
            case CreateRequest() | CreateTTLRequest():
                # In a transaction the flags alone say what it becomes.
                flags = request.flags
                ttl_ms = request.ttl_ms if isinstance(request, CreateTTLRequest) else -1
                if flags in _TTL and isinstance(request, CreateRequest):
                    raise No(errors.MARSHALLING_ERROR)
                if not 0 <= flags <= 6:
                    raise No(errors.BAD_ARGUMENTS)
                if flags in _TTL and not self.extended_types:
                    raise No(errors.UNIMPLEMENTED)
                if flags in _TTL and not 1 <= ttl_ms <= TTL_MS_MAX:
                    raise No(errors.BAD_ARGUMENTS)
                kind = {_CONTAINER: "container", 5: "ttl", 6: "ttl"}.get(flags, "")
                path = self._create(caller, request, kind or _kind_of(0, flags), ttl_ms, time_ms)
                if kind:
                    return opcodes.CREATE2, errors.OK, Create2Response(path, self.stat(path))
                return opcodes.CREATE, errors.OK, CreateResponse(path)
            case SetDataRequest():
                stat = self.stat(self._set_data(caller, request, time_ms))
                return opcodes.SET_DATA, errors.OK, stat
            case VersionRequest() if operation == opcodes.DELETE:
                self._delete_checked(caller, request)
                return opcodes.DELETE, errors.OK, None
            case VersionRequest():
                self._check(caller, request)
                return opcodes.CHECK, errors.OK, None
            case _:
                raise AssertionError(request)

    def _create(
        self,
        caller: Caller,
        request: CreateRequest | CreateTTLRequest,
        kind: str,
        ttl_ms: int,
        time_ms: int,
    ) -> bytes:
        path = request.path
        if b"/" not in path or b"\0" in path:
            raise No(errors.BAD_ARGUMENTS)
        acls = self._storable(request.acls, caller.identities)
        above = path.rpartition(b"/")[0] or b"/"
        parent = self._node(above)
        self._need(caller, parent, CREATE)
        if request.flags in _SEQUENTIAL:
            path += f"{parent.created:010d}".encode()
        if not is_valid_path(path):
            raise No(errors.BAD_ARGUMENTS)
        if path in self.nodes:
            raise No(errors.NODE_EXISTS)
        if parent.owner:
            raise No(errors.NO_CHILDREN_FOR_EPHEMERALS)
        self._keep_quota(path, 1, len(request.data or b""))
        zxid = self.zxid
        node = ModelNode(request.data, acls, zxid, zxid, zxid, time_ms, time_ms)
        node.owner = caller.session if kind == "ephemeral" else 0
        node.container = kind == "container"
        node.ttl_ms = ttl_ms if kind == "ttl" else 0
        self.nodes[path] = node
        if path.startswith(QUOTA + b"/") and path.endswith(STATISTICS):
            self._count_anew(path)
        self._count(path, 1, len(node.data or b""))
        parent.created = _int32(parent.created + 1)
        parent.pzxid = zxid
        self._tell(self.data_watches, events.NODE_CREATED, path, node)
        self._tell(self.child_watches, events.NODE_CHILDREN_CHANGED, above, parent)
        return path

    def _delete_checked(self, caller: Caller, request: VersionRequest) -> None:
        path, parent = self._deletable(request.path)
        self._need(caller, parent, DELETE)
        node = self._node(path)
        _match(request.version, node.version)
        if self.children(path):
            raise No(errors.NOT_EMPTY)
        self._delete(path)

    def _delete_container(self, caller: Caller, path: bytes | None) -> None:
        path, parent = self._deletable(path)
        self._need(caller, parent, DELETE)
        node = self._node(path)
        if self.children(path):
            raise No(errors.NOT_EMPTY)
        if node.owner:
            raise No(errors.BAD_VERSION)
        self._delete(path)

    def _deletable(self, path: bytes | None) -> tuple[bytes, ModelNode]:
        if path is None:
            raise No(errors.MARSHALLING_ERROR)
        if b"/" not in path or b"\0" in path or path in ALWAYS_THERE:
            raise No(errors.BAD_ARGUMENTS)
        return path, self._node(path.rpartition(b"/")[0] or b"/")

    def _delete(self, path: bytes) -> None:
        node = self.nodes.pop(path)
        self._count(path, -1, -len(node.data or b""))
        above = path.rpartition(b"/")[0] or b"/"
        parent = self.nodes[above]
        parent.pzxid = self.zxid
        told = self._tell(self.data_watches, events.NODE_DELETED, path, node)
        self._tell(self.child_watches, events.NODE_DELETED, path, node, told)
        self._tell(self.child_watches, events.NODE_CHILDREN_CHANGED, above, parent)

    def _set_data(self, caller: Caller, request: SetDataRequest, time_ms: int) -> bytes:
        path = _whole(request.path)
        node = self._node(path)
        self._need(caller, node, WRITE)
        growth = len(request.data or b"") - len(node.data or b"")
        self._keep_quota(path, 0, growth)
        _match(request.version, node.version)
        node.data = request.data
        self._count(path, 0, growth)
        node.version = _int32(node.version + 1)
        node.mzxid = self.zxid
        node.mtime = time_ms
        self._tell(self.data_watches, events.NODE_DATA_CHANGED, path, node)
        return path

    def _set_acl(self, caller: Caller, request: SetACLRequest) -> bytes:
        path = _whole(request.path)
        acls = self._storable(request.acls, caller.identities)
        node = self._node(path)
        self._need(caller, node, ADMIN)
        _match(request.version, node.aversion)
        node.acls = acls
        node.aversion = _int32(node.aversion + 1)
        return path

    def _check(self, caller: Caller, request: VersionRequest) -> bytes:
        path = _whole(request.path)
        node = self._node(path)
        self._need(caller, node, READ)
        _match(request.version, node.version)
        return path

    def _end(self, id: int) -> None:
        for path in sorted(path for path, node in self.nodes.items() if node.owner == id):
            self._delete(path)
        del self.sessions[id]

    def _count_anew(self, path: bytes) -> None:
        """Begin the statistics of a quota with what is at and below its node now."""
        governed = path[len(QUOTA) : -len(STATISTICS)]
        mine = [
            node
            for other, node in self.nodes.items()
            if other == governed or other.startswith(governed + b"/")
        ]
        size = sum(len(node.data or b"") for node in mine)
        self.nodes[path].data = b"count=%d,bytes=%d" % (len(mine), size)

    def _quota_of(self, path: bytes) -> bytes:
        """Give the nearest node with limits, from a node upwards; nothing if there is none."""
        while path and QUOTA + path + LIMITS not in self.nodes:
            path = path.rpartition(b"/")[0]
        return path

    def _keep_quota(self, path: bytes, nodes: int, size: int) -> None:
        """Refuse what would go over a hard limit, if limits and statistics can be understood."""
        governed = self._quota_of(path)
        if not self.enforce_quota or not governed:
            return
        limits = numbers_of(self.nodes[QUOTA + governed + LIMITS].data)
        statistics = self.nodes.get(QUOTA + governed + STATISTICS)
        counts = None if statistics is None else numbers_of(statistics.data)
        if limits is None or counts is None:
            return
        for change, counter, limit_name in (
            (nodes, "count", "countHardLimit"),
            (size, "bytes", "byteHardLimit"),
        ):
            limit = limits.get(limit_name, -1)
            if change and limit >= 0 and counts.get(counter, -1) + change > limit:
                raise No(errors.QUOTA_EXCEEDED)

    def _count(self, path: bytes, nodes: int, size: int) -> None:
        """Keep the statistics of the nearest quota, if what is written there can be understood."""
        governed = self._quota_of(path)
        node = self.nodes.get(QUOTA + governed + STATISTICS) if governed else None
        counts = None if node is None else numbers_of(node.data)
        if node is None or counts is None:
            return
        count, total = counts.pop("count", -1) + nodes, counts.pop("bytes", -1) + size
        text = f"count={count},bytes={total}"
        if counts:
            text += "=;" + ";".join(f"{name}={counts[name]}" for name in sorted(counts))
        node.data = text.encode()

    def _node(self, path: bytes) -> ModelNode:
        # The empty path is another name of the root.
        node = self.nodes.get(path or b"/")
        if node is None:
            raise No(errors.NO_NODE)
        return node

    # Access.

    def _need(self, caller: Caller, node: ModelNode, permission: int) -> None:
        if not permitted(node.acls, permission, caller.identities):
            raise No(errors.NO_AUTH)

    def _storable(
        self, acls: list[ACL | None] | None, identities: tuple[Identity, ...]
    ) -> list[ACL]:
        stored: list[ACL] = []
        seen: list[ACL] = []
        for acl in acls or []:
            if acl is None:
                raise No(errors.INVALID_ACL)
            if acl is NOT_UNDERSTOOD:
                raise No(errors.MARSHALLING_ERROR)
            if acl in seen:
                continue
            seen.append(acl)
            scheme, id = acl.identity.scheme, acl.identity.id
            if scheme == "auth":
                mine = [one for one in identities if one.scheme not in ("ip", "super")]
                stored += [ACL(acl.permissions, one) for one in mine]
                valid = bool(mine)
            else:
                stored.append(acl)
                valid = (
                    (scheme == "world" and id == "anyone")
                    or (scheme == "digest" and id.rstrip(":").count(":") == 1)
                    or (scheme == "ip" and _network(id) is not None)
                )
            if not valid:
                raise No(errors.INVALID_ACL)
        if not stored:
            raise No(errors.INVALID_ACL)
        return stored

    # Reading.

    def _read(self, caller: Caller, operation: int, request: ReadRequest) -> object:
        match request:
            case list():
                return [self._read_step(caller, step, one.path) for step, one in request]
            case WatchedRequest(path, watch):
                return self._read_watched(caller, operation, path, watch)
            case SetWatchesRequest():
                self._set_watches(caller, request)
                return None
            case AddWatchRequest(path, mode):
                if mode not in (0, 1):
                    raise No(errors.MARSHALLING_ERROR)
                for table in (self.data_watches, self.child_watches):
                    table[path, caller] = "recursive" if mode else "persistent"
                return IntResponse(errors.OK)
            case WatchesRequest(path_or_none, kind):
                self._look_for_watches(caller, operation, path_or_none, kind)
                return None
            case PathRequest(path_or_none):
                return self._read_path(caller, operation, path_or_none)
            case None:
                if operation != opcodes.WHO_AM_I:
                    raise No(errors.MARSHALLING_ERROR)
                return WhoAmIResponse(
                    [
                        ClientInfo(one.scheme, one.id.partition(":")[0])
                        if one.scheme == "digest"
                        else ClientInfo(one.scheme, one.id)
                        for one in caller.identities
                    ]
                )

    def _read_watched(self, caller: Caller, operation: int, path: bytes, watch: bool) -> object:
        if operation == opcodes.EXISTS:
            if b"\0" in path:
                raise No(errors.BAD_ARGUMENTS)
            if watch:
                self.data_watches[path, caller] = "once"
            self._node(path)
            return self.stat(path or b"/")
        node = self._node(path)
        self._need(caller, node, READ)
        if watch:
            table = self.data_watches if operation == opcodes.GET_DATA else self.child_watches
            table[path, caller] = "once"
        here = path or b"/"
        if operation == opcodes.GET_DATA:
            return GetDataResponse(node.data, self.stat(here))
        if operation == opcodes.GET_CHILDREN:
            return StringsResponse(self.children(here))
        return GetChildren2Response(self.children(here), self.stat(here))

    def _read_step(self, caller: Caller, operation: int, path: bytes) -> Result:
        try:
            return operation, errors.OK, self._read_watched(caller, operation, path, False)
        except No as no:
            return -1, no.code, IntResponse(no.code)

    def _read_path(self, caller: Caller, operation: int, path: bytes | None) -> object:
        if operation == opcodes.SYNC:
            return PathRequest(path)
        if operation == opcodes.GET_EPHEMERALS:
            mine = [one for one, node in self.nodes.items() if node.owner == caller.session]
            if path is not None and path.strip() not in (b"", b"/"):
                mine = [one for one in mine if one.startswith(path)]
            return StringsResponse(mine)
        if path is None:
            raise No(errors.MARSHALLING_ERROR)
        node = self._node(path)
        if operation == opcodes.GET_ACL:
            self._need(caller, node, READ | ADMIN)
            open_to_see = permitted(node.acls, ADMIN, caller.identities)
            shown = node.acls if open_to_see else [_masked(acl) for acl in node.acls]
            return GetACLResponse(shown, self.stat(path or b"/"))
        self._need(caller, node, READ)
        prefix = path.rstrip(b"/") + b"/"
        below = [one for one in self.nodes if one.startswith(prefix)]
        # The root is below its other name, though not below itself.
        return IntResponse(len(below) - (1 if path == b"/" else 0))

    # Watches.

    def _tell(
        self,
        table: Watchers,
        kind: int,
        path: bytes,
        node: ModelNode,
        told: frozenset[Caller] = frozenset(),
    ) -> frozenset[Caller]:
        concerned: set[Caller] = set()
        for (watched, caller), mode in list(table.items()):
            if mode == "recursive":
                # Nothing is below the root's other name.
                prefix = b"/" if watched == b"/" else watched + b"/"
                below = watched != b"" and path.startswith(prefix)
                if kind != events.NODE_CHILDREN_CHANGED and (path == watched or below):
                    concerned.add(caller)
            elif path == watched:
                concerned.add(caller)
                if mode == "once":
                    del table[watched, caller]
        for caller in concerned - told:
            if permitted(node.acls, READ, caller.identities):
                caller.events.append((kind, path))
        return frozenset(concerned)

    def _set_watches(self, caller: Caller, request: SetWatchesRequest) -> None:
        since = request.relative_zxid

        def tell(kind: int, path: bytes) -> None:
            node = self.nodes.get(path or b"/")
            if node is None or permitted(node.acls, READ, caller.identities):
                caller.events.append((kind, path))

        for path in request.data:
            node = self.nodes.get(path or b"/")
            if node is None:
                tell(events.NODE_DELETED, path)
            elif node.mzxid > since:
                tell(events.NODE_DATA_CHANGED, path)
            else:
                self.data_watches[path, caller] = "once"
        for path in request.exists:
            if (path or b"/") in self.nodes:
                tell(events.NODE_CREATED, path)
            else:
                self.data_watches[path, caller] = "once"
        for path in request.child:
            node = self.nodes.get(path or b"/")
            if node is None:
                tell(events.NODE_DELETED, path)
            elif node.pzxid > since:
                tell(events.NODE_CHILDREN_CHANGED, path)
            else:
                self.child_watches[path, caller] = "once"
        for paths, mode in ((request.persistent, "persistent"), (request.recursive, "recursive")):
            for path in paths:
                self.data_watches[path, caller] = mode
                self.child_watches[path, caller] = mode

    def _look_for_watches(
        self, caller: Caller, operation: int, path: bytes | None, kind: int
    ) -> None:
        if kind not in (1, 2, 3) or (path is None and operation == opcodes.CHECK_WATCHES):
            raise No(errors.MARSHALLING_ERROR)
        tables = {1: [self.child_watches], 2: [self.data_watches]}.get(
            kind, [self.child_watches, self.data_watches]
        )
        found = [table for table in tables if path is not None and (path, caller) in table]
        if not found:
            raise No(errors.NO_WATCHER)
        if operation == opcodes.REMOVE_WATCHES and path is not None:
            for table in found:
                del table[path, caller]


def is_valid_path(path: bytes) -> bool:
    """Tell whether a node may have this path, character by character."""
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return False
    if text == "/":
        return True
    if not text.startswith("/"):
        return False
    if any(name in ("", ".", "..") for name in text[1:].split("/")):
        return False
    for character in text:
        number = ord(character)
        if number <= 0x1F or 0x7F <= number <= 0x9F:
            return False
        if 0xD800 <= number <= 0xF8FF or number >= 0xFFF0:
            return False
    return True


def numbers_of(data: bytes | None) -> dict[str, int] | None:
    """Read `name=number` pairs between commas and semicolons; None if it is anything else."""
    if data is None:
        return None
    text = re.sub("[,;]+$", "", data.decode(errors="replace"))
    numbers: dict[str, int] = {}
    for pair in re.split("[,;]+", text) if text else []:
        # What stands behind a second `=` does not matter; `name==` is -1.
        match = re.fullmatch(r"([^=]*)=([+-]?\d+|)(=.*)?", pair, re.DOTALL)
        if match is None or not pair.rstrip("=").partition("=")[2]:
            return None
        number = int(match[2] or "-1")
        if not -(1 << 63) <= number < 1 << 63:
            return None
        numbers[match[1]] = number
    return numbers


def permitted(acls: list[ACL], permission: int, identities: tuple[Identity, ...]) -> bool:
    """Tell whether an ACL grants any of these permissions to any of these identities."""
    if Identity("super", "") in identities:
        return True
    for acl in acls:
        if not acl.permissions & permission:
            continue
        if acl.identity == ANYONE:
            return True
        for one in identities:
            if one == acl.identity:
                return True
            if one.scheme == acl.identity.scheme == "ip":
                network = _network(acl.identity.id)
                address = ipaddress.ip_address(one.id)
                if network is not None and address in network:
                    return True
    return False


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _kind_of(operation: int, flags: int) -> str:
    if operation == opcodes.CREATE_CONTAINER:
        return "container"
    if operation == opcodes.CREATE_TTL:
        return "ttl"
    return "ephemeral" if flags in _EPHEMERAL else "persistent"


def _whole(path: bytes | None) -> bytes:
    if path is None or not is_valid_path(path):
        raise No(errors.BAD_ARGUMENTS)
    return path


def _match(expected: int, current: int) -> None:
    if expected not in (-1, current):
        raise No(errors.BAD_VERSION)


def _masked(acl: ACL) -> ACL:
    if acl.identity.scheme != "digest":
        return acl
    return ACL(acl.permissions, Identity("digest", acl.identity.id.partition(":")[0] + ":x"))


def _int32(number: int) -> int:
    number &= 0xFFFF_FFFF
    return number - 0x1_0000_0000 if number > 0x7FFF_FFFF else number
