"""Everything that is answered from memory: reads, and the setting and removing of watches.

A query never changes the state. It is answered at one point of the log, whichever the caller has
chosen, and a watch it sets stands from that same point on.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_be

from paddock.errors import (
    BAD_ARGUMENTS,
    MARSHALLING_ERROR,
    NO_AUTH,
    NO_NODE,
    NO_WATCHER,
    OK,
    QUOTA_EXCEEDED,
    SYSTEM_ERROR,
    UNIMPLEMENTED,
)
from paddock.protocol import events, opcodes
from paddock.protocol.acl import ADMIN, READ, encode_acls
from paddock.protocol.jute import DecodeError, Reader, write_buffer, write_strings
from paddock.protocol.replies import ClientInfo, WhoAmIResponse
from paddock.protocol.requests import (
    AddWatchRequest,
    PathRequest,
    SetWatchesRequest,
    WatchesRequest,
)
from paddock.state import multi
from paddock.state.access import Identities, user_name, without_secrets
from paddock.state.machine import StateMachine
from paddock.state.refusal import Refused
from paddock.state.tree import Node
from paddock.state.watches import (
    ALL_MODES,
    ONE_SHOT,
    PERSISTENT,
    RECURSIVE,
    Watcher,
    Watches,
    WatchTable,
)

_STAT_BYTES: Final = 68
# A small multi-read may name a large node many thousand times. What no longer fits into the reply
# is refused, one by one.
_MULTI_READ_BYTES_MAX: Final = 16 << 20
# The modes of addWatch.
_ADD_PERSISTENT: Final = 0
_ADD_RECURSIVE: Final = 1
# What removeWatches and checkWatches ask for. The last two are 3.9's.
_CHILDREN: Final = 1
_DATA: Final = 2
_ANY: Final = 3
_PERSISTENT: Final = 4
_RECURSIVE: Final = 5


class Queries:
    """Answers queries on a state, for watchers of one server."""

    def __init__(self, machine: StateMachine, watches: Watches) -> None:
        self.machine = machine
        self.watches = watches

    def answer(
        self, operation: int, body: bytes, watcher: Watcher, identities: Identities, session: int
    ) -> tuple[int, bytes]:
        """Answer a query with a result code and the body of the reply.

        `identities` are those that the watcher had when it asked; it may have more by now.
        """
        try:
            if operation == opcodes.GET_DATA:
                return OK, self._get_data(body, watcher, identities)
            if operation == opcodes.EXISTS:
                return OK, self._exists(body, watcher, identities)
            if operation == opcodes.GET_CHILDREN:
                return OK, self._get_children(body, watcher, identities).child_list()
            if operation == opcodes.GET_CHILDREN2:
                node = self._get_children(body, watcher, identities)
                return OK, node.child_list() + _stat(node)
            return OK, self._answer_rarer(operation, body, watcher, identities, session)
        except Refused as refusal:
            return refusal.code, b""
        except DecodeError:
            return MARSHALLING_ERROR, b""

    def _answer_rarer(
        self, operation: int, body: bytes, watcher: Watcher, identities: Identities, session: int
    ) -> bytes:
        reader = Reader(body)
        if operation == opcodes.SYNC:
            return _buffer(PathRequest.read(reader).path)
        if operation == opcodes.GET_ACL:
            return self._get_acl(reader.string(), identities)
        if operation == opcodes.MULTI_READ:
            return self._multi_read(body, identities)
        if operation == opcodes.GET_EPHEMERALS:
            return self._get_ephemerals(PathRequest.read(reader).path, session)
        if operation == opcodes.GET_ALL_CHILDREN_NUMBER:
            return self._count_descendants(reader.string(), identities)
        if operation == opcodes.WHO_AM_I:
            return _who_am_i(identities)
        if operation == opcodes.SET_WATCHES:
            self._set_watches(SetWatchesRequest.read_first(reader), watcher)
            return b""
        if operation == opcodes.SET_WATCHES2:
            self._set_watches(SetWatchesRequest.read(reader), watcher)
            return b""
        if operation == opcodes.ADD_WATCH:
            return self._add_watch(AddWatchRequest.read(reader), watcher)
        if operation == opcodes.CHECK_WATCHES:
            request = WatchesRequest.read(reader)
            return self._check_watches(request.path, request.kind, watcher)
        if operation == opcodes.REMOVE_WATCHES:
            request = WatchesRequest.read(reader)
            return self._remove_watches(request.path, request.kind, watcher)
        raise Refused(UNIMPLEMENTED)

    def _get_data(self, body: bytes, watcher: Watcher, identities: Identities) -> bytes:
        reader = Reader(body)
        path = reader.string()
        watch = reader.boolean()
        node = self._readable(path, identities)
        if watch:
            self._watch(self.watches.data, path, watcher)
        return node.data_and_stat()

    def _exists(self, body: bytes, watcher: Watcher, identities: Identities) -> bytes:
        """Answer exists. A node that is there needs READ; one that is not can be waited for."""
        reader = Reader(body)
        path = reader.string()
        watch = reader.boolean()
        node = self.machine.tree.nodes.get(path)
        if node is None:
            # No node has such a name, and no watch may stand on it.
            if b"\0" in path:
                raise Refused(BAD_ARGUMENTS)
            if watch:
                self._watch(self.watches.data, path, watcher)
            raise Refused(NO_NODE)
        acl = node.acl
        if not acl.anyone & READ and not acl.permits(READ, identities):
            raise Refused(NO_AUTH)
        if watch:
            self._watch(self.watches.data, path, watcher)
        return _stat(node)

    def _get_children(self, body: bytes, watcher: Watcher, identities: Identities) -> Node:
        reader = Reader(body)
        path = reader.string()
        watch = reader.boolean()
        node = self._readable(path, identities)
        if watch:
            self._watch(self.watches.child, path, watcher)
        return node

    def _watch(self, table: WatchTable, path: bytes, watcher: Watcher) -> None:
        if not self.watches.has_room(watcher, 1, len(path)) and not table.contains(
            path, watcher, ONE_SHOT
        ):
            raise Refused(QUOTA_EXCEEDED)
        table.add(path, watcher, ONE_SHOT)

    def _readable(self, path: bytes, identities: Identities) -> Node:
        node = self.machine.tree.nodes.get(path)
        if node is None:
            raise Refused(NO_NODE)
        acl = node.acl
        if not acl.anyone & READ and not acl.permits(READ, identities):
            raise Refused(NO_AUTH)
        return node

    def _get_acl(self, path: bytes, identities: Identities) -> bytes:
        node = self.machine.tree.nodes.get(path)
        if node is None:
            raise Refused(NO_NODE)
        acl = node.acl
        if not acl.permits(READ | ADMIN, identities):
            raise Refused(NO_AUTH)
        if acl.permits(ADMIN, identities):
            return acl.wire + node.stat()
        return encode_acls(without_secrets(acl.entries)) + node.stat()

    def _multi_read(self, body: bytes, identities: Identities) -> bytes:
        writer = BytesWriter()
        for operation, path in multi.read_reads(body):
            try:
                node = self._readable(path, identities)
            except Refused as refusal:
                multi.write_error(writer, refusal.code)
                continue
            answer = node.data_and_stat() if operation == opcodes.GET_DATA else node.child_list()
            if len(writer) + len(answer) > _MULTI_READ_BYTES_MAX:
                multi.write_error(writer, SYSTEM_ERROR)
                continue
            multi.write_header(writer, operation, False, OK)
            writer.write(answer)
        multi.write_header(writer, -1, True, -1)
        return writer.getvalue()

    def _get_ephemerals(self, prefix: bytes | None, session: int) -> bytes:
        mine = list(self.machine.tree.ephemerals.get(session, ()))
        if prefix is not None and prefix.strip() not in (b"", b"/"):
            mine = [path for path in mine if path.startswith(prefix)]
        writer = BytesWriter()
        write_strings(writer, mine)
        return writer.getvalue()

    def _count_descendants(self, path: bytes, identities: Identities) -> bytes:
        self._readable(path, identities)
        writer = BytesWriter()
        # Upstream counts what starts with the path and a slash, so the root's other name has one
        # descendant more: the root.
        count = self.machine.tree.descendants(path or b"/") + (0 if path else 1)
        write_i32_be(writer, count)
        return writer.getvalue()

    def _add_watch(self, request: AddWatchRequest, watcher: Watcher) -> bytes:
        path, watches = request.path, self.watches
        if request.mode == _ADD_PERSISTENT:
            if not watches.data.contains(path, watcher, PERSISTENT):
                self._check_room([path, path], watcher)
            watches.add_persistent(path, watcher)
        elif request.mode == _ADD_RECURSIVE:
            if not watches.data.contains(path, watcher, RECURSIVE):
                self._check_room([path], watcher)
            watches.add_recursive(path, watcher)
        else:
            raise Refused(MARSHALLING_ERROR)
        writer = BytesWriter()
        write_i32_be(writer, OK)
        return writer.getvalue()

    def _set_watches(self, request: SetWatchesRequest, watcher: Watcher) -> None:
        """Set watches again after a reconnect; what changed since then fires at once.

        Such an event has no zxid, since it may stand for several changes.
        """
        if watcher.is_leaving:
            return
        persistent, recursive = request.persistent, request.recursive
        one_shot = request.data + request.exists + request.child
        self._check_room(one_shot + persistent + persistent + recursive, watcher)
        nodes = self.machine.tree.nodes
        for path in request.data:
            node = nodes.get(path)
            if node is None:
                _tell_gone(path, watcher)
            elif node.mzxid > request.relative_zxid:
                _tell(events.NODE_DATA_CHANGED, path, node, watcher)
            else:
                self.watches.data.add(path, watcher, ONE_SHOT)
        for path in request.exists:
            node = nodes.get(path)
            if node is None:
                self.watches.data.add(path, watcher, ONE_SHOT)
            else:
                _tell(events.NODE_CREATED, path, node, watcher)
        for path in request.child:
            node = nodes.get(path)
            if node is None:
                _tell_gone(path, watcher)
            elif node.pzxid > request.relative_zxid:
                _tell(events.NODE_CHILDREN_CHANGED, path, node, watcher)
            else:
                self.watches.child.add(path, watcher, ONE_SHOT)
        for path in persistent:
            self.watches.add_persistent(path, watcher)
        for path in recursive:
            self.watches.add_recursive(path, watcher)

    def _check_room(self, paths: list[bytes], watcher: Watcher) -> None:
        """Refuse to set watches of which not all might fit."""
        if not self.watches.has_room(watcher, len(paths), sum(len(path) for path in paths)):
            raise Refused(QUOTA_EXCEEDED)

    def _check_watches(self, path: bytes | None, kind: int, watcher: Watcher) -> bytes:
        for table, modes in self._meant(kind):
            if path is not None and table.contains(path, watcher, modes):
                return b""
        raise Refused(NO_WATCHER)

    def _remove_watches(self, path: bytes | None, kind: int, watcher: Watcher) -> bytes:
        removed = False
        for table, modes in self._meant(kind):
            if path is not None and table.remove(path, watcher, modes):
                removed = True
        if not removed:
            raise Refused(NO_WATCHER)
        return b""

    def _meant(self, kind: int) -> list[tuple[WatchTable, int]]:
        """Return the tables and modes that a kind means; raises Refused if it is none."""
        data, child = self.watches.data, self.watches.child
        if kind == _CHILDREN:
            return [(child, ONE_SHOT)]
        if kind == _DATA:
            return [(data, ONE_SHOT)]
        if kind == _ANY:
            return [(child, ALL_MODES), (data, ALL_MODES)]
        if kind == _PERSISTENT:
            return [(child, PERSISTENT), (data, PERSISTENT)]
        if kind == _RECURSIVE:
            return [(data, RECURSIVE)]
        raise Refused(MARSHALLING_ERROR)


def _stat(node: Node) -> bytes:
    """Return the stat alone, which must not make the node keep a copy of its data."""
    wire = node.wire
    return node.stat() if wire is None else wire[-_STAT_BYTES:]


def _tell_gone(path: bytes, watcher: Watcher) -> None:
    watcher.notify(events.notification(events.NODE_DELETED, path, events.NO_ZXID))


def _tell(kind: int, path: bytes, node: Node, watcher: Watcher) -> None:
    if node.acl.permits(READ, watcher.identities):
        watcher.notify(events.notification(kind, path, events.NO_ZXID))


def _who_am_i(identities: Identities) -> bytes:
    writer = BytesWriter()
    clients = [ClientInfo(one.scheme, user_name(one)) for one in identities.entries]
    WhoAmIResponse(clients).write(writer)
    return writer.getvalue()


def _buffer(value: bytes | None) -> bytes:
    writer = BytesWriter()
    write_buffer(writer, value)
    return writer.getvalue()
