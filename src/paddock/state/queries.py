"""Queries: reads, and adding and removing watches. They are answered from memory.

A query never changes the state. It is answered at one point of the log, which the caller chooses,
and a watch that it adds is active from that point on.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_be, write_i32_be, write_i64_be
from mypy_extensions import i64

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
from paddock.protocol import opcodes, paths
from paddock.protocol.acl import ADMIN, READ
from paddock.protocol.jute import DecodeError, Reader, write_strings
from paddock.protocol.requests import (
    AddWatchRequest,
    OldSetWatchesRequest,
    PathRequest,
    SetWatchesRequest,
    WatchesRequest,
)
from paddock.state import multi
from paddock.state.access import Identities
from paddock.state.entry import Refused
from paddock.state.machine import StateMachine
from paddock.state.node import Node, data_length
from paddock.state.operation_counts import OperationCounts
from paddock.state.watch_setting import WatchSetting
from paddock.state.watcher import ALL_MODES, ONE_SHOT, PERSISTENT, RECURSIVE, Watcher
from paddock.state.watches import Watches, WatchTable

_STAT_BYTES: Final = 68
_LENGTH_BYTES: Final = 4
# The length of a frame, its xid and its operation, before the request.
_FRAME_HEADER_BYTES: Final = 12
# A longer request is left to those who know what is heavy.
_SHORT_BYTES: Final = 1 << 12
# The xid, the zxid and the error of a reply, before its body.
_REPLY_HEADER_BYTES: Final = 16
# Data from this size on is not copied into an answer.
LARGE_BYTES: Final = 1 << 14
# Data up to this size is cached with a stat.
SMALL_BYTES: Final = 1 << 10
# A small multi-read may name a large node many thousand times, and is answered in one go. Its
# reads over these limits of the reply, of reads and of names to encode are refused, one by one.
MULTI_READ_BYTES_MAX: Final = 16 << 20
MULTI_READS_MAX: Final = 10_000
MULTI_READ_NAMES_MAX: Final = 300_000
_NO_LIMIT: Final = 1 << 62
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

    def __init__(self, machine: StateMachine, watches: Watches, counts: OperationCounts) -> None:
        self.machine = machine
        self.watches = watches
        self._counts = counts
        # Reads the usual requests, one after the other: a new one for each takes longer.
        self._reader = Reader(b"")
        # A part of the last answer that is large and was not copied: it is to be sent behind the
        # first `large_at` bytes of the answer. The caller takes it away.
        self.large: bytes | None = None
        self.large_at = 0

    def answer(
        self,
        operation: int,
        data: bytes,
        start: i64,
        end: i64,
        watcher: Watcher,
        identities: Identities,
    ) -> tuple[int, bytes]:
        """Answer a query with a result code and the body of the reply.

        The request is what `data` has from `start` to `end`: the usual ones are read where they
        are, not copied.
        `identities` are those that the watcher had when it asked; it may have more by now.
        """
        reader = self._reader
        reader.data = data
        reader.position = start
        reader.end = end
        try:
            if operation == opcodes.GET_DATA:
                self._counts.get_data += 1
                return OK, self._get_data(reader, watcher, identities)
            if operation == opcodes.EXISTS:
                self._counts.exists += 1
                return OK, self._exists(reader, watcher, identities)
            if operation == opcodes.GET_CHILDREN:
                self._counts.get_children += 1
                node = self._get_children(reader, watcher, identities)
                return OK, self._list(node, b"")
            if operation == opcodes.GET_CHILDREN2:
                self._counts.get_children2 += 1
                node = self._get_children(reader, watcher, identities)
                return OK, self._list(node, self._stat(node))
            self._counts.add(operation)
            return OK, self._answer_rarer(operation, data[start:end], watcher, identities)
        except Refused as refusal:
            return refusal.code, b""
        except DecodeError:
            return MARSHALLING_ERROR, b""

    def answer_plain_gets(
        self,
        frames: bytes,
        position: i64,
        end: i64,
        count_max: i64,
        identities: Identities,
        replies: BytesWriter,
        size_max: i64,
    ) -> tuple[i64, i64]:
        """Answer the plain gets from `position` on; return their count and where they end.

        Plain is a get that wants no watch and is answered, with little data. It stops before the
        first request that is anything else, which is `answer`'s, and behind a reply with which
        there are more than `size_max` bytes. Most gets are plain, and many come in a row: by
        `answer`, each took a quarter more instructions.
        """
        nodes, answers = self.machine.tree.nodes, self.machine.tree.answers
        last: int = self.machine.zxid
        zxid: i64 = last
        count: i64 = 0
        while position < end and count < count_max:
            start = position + _FRAME_HEADER_BYTES + _LENGTH_BYTES
            frame_length: int = read_i32_be(frames, position)
            after = position + _LENGTH_BYTES + frame_length
            if start >= after or frame_length > _SHORT_BYTES:
                break
            if read_i32_be(frames, position + 8) != opcodes.GET_DATA:
                break
            path_length: int = read_i32_be(frames, start - _LENGTH_BYTES)
            path_end = start + path_length
            # Behind the path comes a byte, which is not 0 where a watch is wanted.
            if path_length < 0 or path_end >= after or frames[path_end]:
                break
            node = nodes.get(frames[start:path_end])
            if node is None:
                break
            # As `_require_read` does; to call a function for it takes 3 % of a get. What has to be
            # indexed first, and may be long, is a request of its own.
            acl = node.acl
            if not acl.anyone & READ and not (acl.is_indexed() and acl.permits(READ, identities)):
                break
            wire = node.wire
            if wire is None:
                if data_length(node.data) >= LARGE_BYTES:
                    break
                wire = answers.data_and_stat(node)
            if len(wire) >= LARGE_BYTES:
                break
            write_i32_be(replies, _REPLY_HEADER_BYTES + len(wire))
            write_i32_be(replies, read_i32_be(frames, position + _LENGTH_BYTES))
            write_i64_be(replies, zxid)
            write_i32_be(replies, OK)
            replies.write(wire)
            position = after
            count += 1
            if len(replies) > size_max:
                break
        self._counts.get_data += count
        return count, position

    def _answer_rarer(
        self, operation: int, body: bytes, watcher: Watcher, identities: Identities
    ) -> bytes:
        reader = Reader(body)
        if operation == opcodes.SYNC:
            # With its path.
            reader.skip()
            return body[: reader.position]
        if operation == opcodes.GET_ACL:
            return self._get_acl(reader.string(), identities)
        if operation == opcodes.MULTI_READ:
            return self._multi_read(body, identities)
        if operation == opcodes.GET_EPHEMERALS:
            return self._get_ephemerals(PathRequest.read(reader).path, watcher.session)
        if operation == opcodes.GET_ALL_CHILDREN_NUMBER:
            return self._count_descendants(reader.string(), identities)
        if operation == opcodes.WHO_AM_I:
            return identities.who_am_i()
        if operation in (opcodes.SET_WATCHES, opcodes.SET_WATCHES2):
            self.watch_setting(operation, body, watcher).step(_NO_LIMIT)
            return b""
        if operation == opcodes.ADD_WATCH:
            return self._add_watch(AddWatchRequest.read(reader), watcher)
        if operation == opcodes.CHECK_WATCHES:
            return self._check_watches(WatchesRequest.read(reader), watcher)
        if operation == opcodes.REMOVE_WATCHES:
            return self._remove_watches(WatchesRequest.read(reader), watcher)
        raise Refused(UNIMPLEMENTED)

    def _get_data(self, reader: Reader, watcher: Watcher, identities: Identities) -> bytes:
        path = reader.string()
        watch = reader.boolean()
        node = self._readable(path, identities)
        if watch:
            self._watch(self.watches.data, path, watcher)
        wire = node.wire
        if wire is not None:
            return wire
        data = node.data
        if data is None or len(data) < LARGE_BYTES:
            return self.machine.tree.answers.data_and_stat(node)
        self.large = data
        self.large_at = _LENGTH_BYTES
        return len(data).to_bytes(_LENGTH_BYTES, "big") + node.stat()

    def _exists(self, reader: Reader, watcher: Watcher, identities: Identities) -> bytes:
        """Answer exists: an existing node needs READ; a missing one can be watched."""
        path = reader.string()
        watch = reader.boolean()
        node = self.machine.tree.nodes.get(path)
        if node is None:
            # No node has such a name, and no watch may stand on it.
            if paths.NUL in path:
                raise Refused(BAD_ARGUMENTS)
            if watch:
                self._watch(self.watches.data, path, watcher)
            raise Refused(NO_NODE)
        _require_read(node, identities)
        if watch:
            self._watch(self.watches.data, path, watcher)
        return self._stat(node)

    def _get_children(self, reader: Reader, watcher: Watcher, identities: Identities) -> Node:
        path = reader.string()
        watch = reader.boolean()
        node = self._readable(path, identities)
        if watch:
            self._watch(self.watches.child, path, watcher)
        return node

    def _list(self, node: Node, stat: bytes) -> bytes:
        return self._behind(self.machine.tree.answers.child_list(node), stat)

    def _behind(self, wire: bytes, stat: bytes) -> bytes:
        """Answer with cached bytes and a stat behind them."""
        if len(wire) < LARGE_BYTES:
            return wire + stat
        self.large = wire
        self.large_at = 0
        return stat

    def _stat(self, node: Node) -> bytes:
        """Return the stat alone, which must not make the node keep a copy of large data."""
        wire = node.wire
        if wire is None:
            data = node.data
            if data is not None and len(data) >= SMALL_BYTES:
                return node.stat()
            wire = self.machine.tree.answers.data_and_stat(node)
        return wire[-_STAT_BYTES:]

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
        _require_read(node, identities)
        return node

    def _get_acl(self, path: bytes, identities: Identities) -> bytes:
        node = self.machine.tree.nodes.get(path)
        if node is None:
            raise Refused(NO_NODE)
        acl = node.acl
        if not acl.permits(READ | ADMIN, identities):
            raise Refused(NO_AUTH)
        wire = acl.wire if acl.permits(ADMIN, identities) else acl.masked()
        return self._behind(wire, node.stat())

    def _multi_read(self, body: bytes, identities: Identities) -> bytes:
        writer = BytesWriter()
        tree = self.machine.tree
        # The length of the shortest list that did not fit: none is encoded in vain twice.
        too_many = _NO_LIMIT
        names_left = MULTI_READ_NAMES_MAX
        for number, (operation, path) in enumerate(multi.read_reads(body)):
            if number >= MULTI_READS_MAX:
                multi.write_error(writer, SYSTEM_ERROR)
                continue
            try:
                node = self._readable(path, identities)
            except Refused as refusal:
                multi.write_error(writer, refusal.code)
                continue
            room = MULTI_READ_BYTES_MAX - len(writer)
            if operation == opcodes.GET_DATA:
                if _STAT_BYTES + _LENGTH_BYTES + data_length(node.data) > room:
                    multi.write_error(writer, SYSTEM_ERROR)
                else:
                    multi.write_header(writer, operation, False, OK)
                    node.write_data_and_stat(writer)
                continue
            names = None
            if node.child_count() < too_many and names_left > 0:
                if node.children is not None and node.children.wire is None:
                    names_left -= node.child_count()
                names = tree.answers.child_list(node)
            if names is None or len(names) > room:
                too_many = min(too_many, node.child_count())
                multi.write_error(writer, SYSTEM_ERROR)
            else:
                multi.write_header(writer, operation, False, OK)
                writer.write(names)
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
        # Upstream counts what starts with the path and a slash, so the root's other name has one
        # descendant more: the root.
        return _int32(self.machine.tree.descendants(path or b"/") + (0 if path else 1))

    def _add_watch(self, request: AddWatchRequest, watcher: Watcher) -> bytes:
        path, watches = request.path, self.watches
        if request.mode == _ADD_PERSISTENT:
            has_room = watches.has_room(watcher, 2, 2 * len(path))
            if not has_room and not watches.data.contains(path, watcher, PERSISTENT):
                raise Refused(QUOTA_EXCEEDED)
            watches.add_persistent(path, watcher)
        elif request.mode == _ADD_RECURSIVE:
            has_room = watches.has_room(watcher, 1, len(path))
            if not has_room and not watches.data.contains(path, watcher, RECURSIVE):
                raise Refused(QUOTA_EXCEEDED)
            watches.add_recursive(path, watcher)
        else:
            raise Refused(MARSHALLING_ERROR)
        return _int32(OK)

    def watch_setting(self, operation: int, body: bytes, watcher: Watcher) -> WatchSetting:
        """Return the watches of setWatches, to be set in steps. Raises Refused, DecodeError."""
        reader = Reader(body)
        request: SetWatchesRequest
        if operation == opcodes.SET_WATCHES:
            request = OldSetWatchesRequest.read(reader)
        else:
            request = SetWatchesRequest.read(reader)
        setting = WatchSetting(request, self.machine, self.watches, watcher)
        if not setting.reserve():
            raise Refused(QUOTA_EXCEEDED)
        return setting

    def _check_watches(self, request: WatchesRequest, watcher: Watcher) -> bytes:
        path = request.path
        for table, modes in self._meant(request.kind):
            if path is not None and table.contains(path, watcher, modes):
                return b""
        raise Refused(NO_WATCHER)

    def _remove_watches(self, request: WatchesRequest, watcher: Watcher) -> bytes:
        self._check_watches(request, watcher)
        for table, modes in self._meant(request.kind):
            table.remove(request.path or b"", watcher, modes)
        return b""

    def _meant(self, kind: int) -> list[tuple[WatchTable, int]]:
        """Return the tables and modes of a kind; raises Refused for an unknown one."""
        data, child = self.watches.data, self.watches.child
        kinds = {
            _CHILDREN: [(child, ONE_SHOT)],
            _DATA: [(data, ONE_SHOT)],
            _ANY: [(child, ALL_MODES), (data, ALL_MODES)],
            _PERSISTENT: [(child, PERSISTENT), (data, PERSISTENT)],
            _RECURSIVE: [(data, RECURSIVE)],
        }
        if kind not in kinds:
            raise Refused(MARSHALLING_ERROR)
        return kinds[kind]


def _require_read(node: Node, identities: Identities) -> None:
    acl = node.acl
    if not acl.anyone & READ and not acl.permits(READ, identities):
        raise Refused(NO_AUTH)


def _int32(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)
