"""The reference model itself: the effect of each request and each decision of the service.

>>> model = Model()
>>> _ = model.open_session(1, b"secret", 30_000)
>>> caller = Caller(session=1)
>>> request = CreateRequest(b"/a", b"data", [ACL(ALL, ANYONE)], flags=0)
>>> model.write(caller, opcodes.CREATE, request, time_ms=5).reply
CreateResponse(path=b'/a')
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec

from paddock import errors
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ADMIN, ALL, ANYONE, CREATE, DELETE, READ, WRITE
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
from paddock.testing.model import quota
from paddock.testing.model.parts import (
    Answer,
    Caller,
    KeptAnswers,
    ModelNode,
    ModelSession,
    No,
    ReadRequest,
    Result,
    WriteRequest,
    is_valid_path,
    masked,
    permitted,
    storable,
)
from paddock.testing.model.watches import ModelWatches

ALWAYS_THERE: Final = (b"/", b"/zookeeper", b"/zookeeper/config", b"/zookeeper/quota")
TTL_MS_MAX: Final = 0xFF_FFFF_FFFF

_SEQUENTIAL: Final = (2, 3, 6)
_EPHEMERAL: Final = (1, 3)
_TTL: Final = (5, 6)
_CONTAINER: Final = 4

P = ParamSpec("P")


def _answering(
    method: Callable[Concatenate[Model, P], object],
) -> Callable[Concatenate[Model, P], Answer]:
    """Make an Answer of what a method returns, or of the No that it raises."""

    @wraps(method)
    def answer(self: Model, /, *arguments: P.args, **named: P.kwargs) -> Answer:
        try:
            reply = method(self, *arguments, **named)
        except No as no:
            return Answer(no.code, self.zxid)
        return Answer(errors.OK, self.zxid, reply)

    return answer


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
        self.watches = ModelWatches()

    # Decisions of the service.

    @_answering
    def open_session(
        self, id: int, password: bytes, timeout_ms: int, *, is_exact: bool = False
    ) -> None:
        """Begin a session, in its first generation."""
        self.zxid += 1
        kept = KeptAnswers() if is_exact else None
        self.sessions[id] = ModelSession(password, timeout_ms, kept=kept)

    @_answering
    def attach(self, id: int, timeout_ms: int) -> None:
        """Attach a session to another connection: requests of the older ones are refused."""
        session = self.sessions.get(id)
        if session is None:
            raise No(errors.SESSION_EXPIRED)
        session.generation += 1
        session.timeout_ms = timeout_ms

    @_answering
    def expire(self, id: int, generation: int) -> None:
        """End a session, unless it was attached again since that was decided."""
        session = self.sessions.get(id)
        if session is None or session.generation != generation:
            raise No(errors.SESSION_MOVED)
        self.zxid += 1
        self._end(id)

    @_answering
    def reap(self, path: bytes, czxid: int, mzxid: int) -> None:
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

    # Requests of clients.

    def write(
        self, caller: Caller, operation: int, request: WriteRequest | None, time_ms: int
    ) -> Answer:
        """Carry out a write, which takes a zxid even if it fails. None: undecodable bytes.

        Only a reconfiguration that cannot be decoded takes none.
        """
        answer = self._write_one(caller, operation, request, time_ms)
        return self._keep(caller, operation, answer)

    def multi(self, caller: Caller, steps: list[tuple[int, WriteRequest]], time_ms: int) -> Answer:
        """Carry out all steps or none. The reply is a list of results."""
        return self._keep(caller, opcodes.MULTI, self._write_all(caller, steps, time_ms))

    @_answering
    def _write_one(
        self, caller: Caller, operation: int, request: WriteRequest | None, time_ms: int
    ) -> object:
        self._begin_write(caller)
        if operation == opcodes.RECONFIG and request is None:
            self.zxid -= 1
        return self._write(caller, operation, request, time_ms)

    @_answering
    def _write_all(
        self, caller: Caller, steps: list[tuple[int, WriteRequest]], time_ms: int
    ) -> list[Result]:
        self._begin_write(caller)
        if any(self._cannot_be_a_step(request) for _operation, request in steps):
            raise No(errors.MARSHALLING_ERROR)
        before = {path: copy.copy(node) for path, node in self.nodes.items()}
        watches_before = self.watches.moment()
        results: list[Result] = []
        try:
            for operation, request in steps:
                results.append(self._step(caller, operation, request, time_ms))
        except No as no:
            self.nodes = before
            self.watches.go_back(watches_before)
            if no.code == errors.MARSHALLING_ERROR:
                raise
            codes = [errors.OK] * len(results) + [no.code]
            codes += [errors.RUNTIME_INCONSISTENCY] * (len(steps) - len(codes))
            return [(-1, code, IntResponse(code)) for code in codes]
        return results

    @_answering
    def close(self, caller: Caller) -> None:
        """End the caller's session."""
        self._begin_write(caller)
        self._end(caller.session)

    @_answering
    def read(self, caller: Caller, operation: int, request: ReadRequest) -> object:
        """Answer a query, and set or remove the watches it asks for."""
        return self._read(caller, operation, request)

    def forget(self, caller: Caller) -> None:
        """Drop the watches of a connection that is gone."""
        self.watches.forget(caller)

    # Looking.

    def children(self, path: bytes) -> list[bytes]:
        """Return the names of a node's children."""
        prefix = b"/" if path == b"/" else path + b"/"
        return [
            other[len(prefix) :]
            for other in self.nodes
            if other.startswith(prefix) and other != b"/" and b"/" not in other[len(prefix) :]
        ]

    def stat(self, path: bytes) -> Stat:
        """Return the stat of a node that is there."""
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

    def _keep(self, caller: Caller, operation: int, answer: Answer) -> Answer:
        """Keep the answer to a write, if it was applied and its session is exact."""
        session = self.sessions.get(caller.session)
        if session is None or session.generation != caller.generation or session.kept is None:
            return answer
        session.kept.add(caller.generation, caller.xid, operation, answer)
        return answer

    def _begin_write(self, caller: Caller) -> None:
        """Take a zxid, and check the session."""
        self.zxid += 1
        session = self.sessions.get(caller.session)
        if session is None:
            raise No(errors.SESSION_EXPIRED)
        if session.generation != caller.generation:
            raise No(errors.SESSION_MOVED)

    def _write(
        self, caller: Caller, operation: int, request: WriteRequest | None, time_ms: int
    ) -> object:
        match request:
            case CreateRequest() | CreateTTLRequest():
                flags, ttl_ms = request.flags, self._ttl_of(request)
                if flags not in _TTL and (ttl_ms >= 0 or operation == opcodes.CREATE_TTL):
                    raise No(errors.BAD_ARGUMENTS)
                path = self._create(caller, request, _kind_of(operation, flags), ttl_ms, time_ms)
                if operation == opcodes.CREATE:
                    return CreateResponse(path)
                return Create2Response(path, self.stat(path))
            case VersionRequest() if operation == opcodes.DELETE:
                self._delete_checked(caller, request.path, request.version)
                return None
            case VersionRequest():
                return self.stat(self._check(caller, request))
            case SetDataRequest():
                return self.stat(self._set_data(caller, request, time_ms))
            case SetACLRequest():
                return self.stat(self._set_acl(caller, request))
            case PathRequest():
                self._delete_checked(caller, request.path, None)
                return None
            case ReconfigRequest():
                raise No(errors.RECONFIG_DISABLED)
            case None:
                raise No(errors.MARSHALLING_ERROR)

    def _cannot_be_a_step(self, request: WriteRequest) -> bool:
        if isinstance(request, VersionRequest | SetDataRequest):
            return request.path is None
        return not isinstance(request, CreateRequest | CreateTTLRequest)

    def _step(self, caller: Caller, operation: int, request: WriteRequest, time_ms: int) -> Result:
        if not isinstance(request, CreateRequest | CreateTTLRequest):
            reply = self._write(caller, operation, request, time_ms)
            return operation, errors.OK, None if operation == opcodes.CHECK else reply
        # In a transaction the flags alone say which node it becomes.
        flags = request.flags
        if flags in _TTL and isinstance(request, CreateRequest):
            raise No(errors.MARSHALLING_ERROR)
        ttl_ms = self._ttl_of(request)
        kind = {_CONTAINER: "container", 5: "ttl", 6: "ttl"}.get(flags, "")
        path = self._create(caller, request, kind or _kind_of(0, flags), ttl_ms, time_ms)
        if kind or operation == opcodes.CREATE2:
            return opcodes.CREATE2, errors.OK, Create2Response(path, self.stat(path))
        return opcodes.CREATE, errors.OK, CreateResponse(path)

    def _ttl_of(self, request: CreateRequest | CreateTTLRequest) -> int:
        """Return the TTL, or -1; raises No for flags that there are not, or not with this TTL."""
        flags = request.flags
        ttl_ms = request.ttl_ms if isinstance(request, CreateTTLRequest) else -1
        if flags in _TTL and not self.extended_types:
            raise No(errors.UNIMPLEMENTED)
        if not 0 <= flags <= 6 or (flags in _TTL and not 1 <= ttl_ms <= TTL_MS_MAX):
            raise No(errors.BAD_ARGUMENTS)
        return ttl_ms

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
        acls = storable(request.acls, caller.identities)
        above = path.rpartition(b"/")[0] or b"/"
        parent = self._node_for(caller, CREATE, above)
        if request.flags in _SEQUENTIAL:
            path += f"{parent.created:010d}".encode()
        if not is_valid_path(path):
            raise No(errors.BAD_ARGUMENTS)
        if path in self.nodes:
            raise No(errors.NODE_EXISTS)
        if parent.owner:
            raise No(errors.NO_CHILDREN_FOR_EPHEMERALS)
        if self.enforce_quota:
            quota.keep_limits(self.nodes, path, more=1, growth=len(request.data or b""))
        zxid = self.zxid
        self.nodes[path] = node = ModelNode(
            request.data,
            acls,
            zxid,
            zxid,
            zxid,
            time_ms,
            time_ms,
            owner=caller.session if kind == "ephemeral" else 0,
            container=kind == "container",
            ttl_ms=ttl_ms if kind == "ttl" else 0,
        )
        if quota.is_statistics(path):
            quota.count_anew(self.nodes, path)
        quota.count(self.nodes, path, more=1, growth=len(node.data or b""))
        parent.created = _int32(parent.created + 1)
        parent.pzxid = zxid
        self.watches.created(path, node, above, parent, zxid)
        return path

    def _delete_checked(self, caller: Caller, path: bytes | None, version: int | None) -> None:
        """Delete a node of this version; None stands for a container, as a reaper asks for it."""
        if path is None:
            raise No(errors.MARSHALLING_ERROR)
        if b"/" not in path or b"\0" in path or path in ALWAYS_THERE:
            raise No(errors.BAD_ARGUMENTS)
        self._node_for(caller, DELETE, path.rpartition(b"/")[0])
        node = self._node(path)
        if version is not None:
            _match(version, node.version)
        if self.children(path):
            raise No(errors.NOT_EMPTY)
        if version is None and node.owner:
            raise No(errors.BAD_VERSION)
        self._delete(path)

    def _delete(self, path: bytes) -> None:
        node = self.nodes.pop(path)
        quota.count(self.nodes, path, more=-1, growth=-len(node.data or b""))
        above = path.rpartition(b"/")[0] or b"/"
        parent = self.nodes[above]
        parent.pzxid = self.zxid
        self.watches.deleted(path, node, above, parent, self.zxid)

    def _set_data(self, caller: Caller, request: SetDataRequest, time_ms: int) -> bytes:
        path = _whole(request.path)
        node = self._node_for(caller, WRITE, path)
        growth = len(request.data or b"") - len(node.data or b"")
        if self.enforce_quota:
            quota.keep_limits(self.nodes, path, more=0, growth=growth)
        _match(request.version, node.version)
        node.data = request.data
        quota.count(self.nodes, path, more=0, growth=growth)
        node.version = _int32(node.version + 1)
        node.mzxid = self.zxid
        node.mtime = time_ms
        self.watches.changed(path, node, self.zxid)
        return path

    def _set_acl(self, caller: Caller, request: SetACLRequest) -> bytes:
        path = _whole(request.path)
        acls = storable(request.acls, caller.identities)
        node = self._node_for(caller, ADMIN, path)
        _match(request.version, node.aversion)
        node.acls = acls
        node.aversion = _int32(node.aversion + 1)
        return path

    def _check(self, caller: Caller, request: VersionRequest) -> bytes:
        path = _whole(request.path)
        _match(request.version, self._node_for(caller, READ, path).version)
        return path

    def _end(self, id: int) -> None:
        for path in sorted(path for path, node in self.nodes.items() if node.owner == id):
            self._delete(path)
        del self.sessions[id]

    def _node(self, path: bytes) -> ModelNode:
        # The empty path is another name of the root.
        node = self.nodes.get(path or b"/")
        if node is None:
            raise No(errors.NO_NODE)
        return node

    def _node_for(self, caller: Caller, permission: int, path: bytes) -> ModelNode:
        node = self._node(path)
        if not permitted(node.acls, permission, caller.identities):
            raise No(errors.NO_AUTH)
        return node

    # Reading.

    def _read(self, caller: Caller, operation: int, request: ReadRequest) -> object:
        match request:
            case list():
                return [self._read_step(caller, step, one.path) for step, one in request]
            case WatchedRequest(path, watch):
                return self._read_watched(caller, operation, path, watch)
            case SetWatchesRequest():
                self.watches.set_again(caller, request, self.nodes)
                return None
            case AddWatchRequest(path, mode):
                if mode not in (0, 1):
                    raise No(errors.MARSHALLING_ERROR)
                self.watches.add(caller, path, "recursive" if mode else "persistent")
                return IntResponse(errors.OK)
            case WatchesRequest(path_or_none, kind):
                self.watches.look_for(caller, operation, path_or_none, kind)
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
            if (path or b"/") in self.nodes:
                self._node_for(caller, READ, path)
            if watch:
                self.watches.data.add((path, caller, "once"))
            self._node(path)
            return self.stat(path or b"/")
        node = self._node_for(caller, READ, path)
        if watch:
            table = self.watches.data if operation == opcodes.GET_DATA else self.watches.child
            table.add((path, caller, "once"))
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
        if operation == opcodes.GET_ACL:
            node = self._node_for(caller, READ | ADMIN, path)
            open_to_see = permitted(node.acls, ADMIN, caller.identities)
            shown = node.acls if open_to_see else [masked(acl) for acl in node.acls]
            return GetACLResponse(shown, self.stat(path or b"/"))
        self._node_for(caller, READ, path)
        below = [one for one in self.nodes if one.startswith(path.rstrip(b"/") + b"/")]
        # The root is below its other name, though not below itself.
        return IntResponse(len(below) - (1 if path == b"/" else 0))


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


def _int32(number: int) -> int:
    number &= 0xFFFF_FFFF
    return number - 0x1_0000_0000 if number > 0x7FFF_FFFF else number
