"""Snapshots: the whole state at one point of the log, taken while the server goes on.

A snapshot begins between two entries. From then on the tree calls it before a node changes, so that
it writes the image that the node had at that point. Unchanged nodes are written in turn; nodes
created after the point are skipped. A node holds the number of the last snapshot that has it.

The format is a sequence of records, in chunks of any size: one header, all sessions, then nodes
and ACLs, each ACL before the first node that has it, and one record that ends it. Nodes come in
no order; a node's children are found from their paths. What an exact session keeps is a record of
its own, somewhere behind the sessions: it may be large, so it is written in its turn, or before it
changes, as nodes are.

A state that servers share has its roster behind the header, and owners with its sessions. It is
only taken when the roster holds nothing back, and what one record of the log has released is
applied. The bytes of any other state are the same as before there were rosters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be, write_i64_be

from paddock.errors import PaddockError
from paddock.protocol.acl import encode_acls, read_whole_acls
from paddock.protocol.jute import DecodeError, Reader, write_buffer
from paddock.protocol.paths import SLASH
from paddock.state.access import NodeACL
from paddock.state.kept_replies import KeptReplies
from paddock.state.machine import StateMachine
from paddock.state.node import Node
from paddock.state.roster import Roster
from paddock.state.sessions import Session
from paddock.state.tree import Tree

FORMAT: Final = 1

_HEADER: Final = 1
_SESSION: Final = 2
_ACL: Final = 3
_NODE: Final = 4
_END: Final = 5
# An ACL whose checksum is not that of its bytes: see `paddock.state.acl_resolution`.
_FORMER_ACL: Final = 6
# Of a state that servers share: its roster, and a session with its owner.
_ROSTER: Final = 7
_OWNED_SESSION: Final = 8
# What an exact session keeps; without it a session is not exact.
_KEPT_REPLIES: Final = 9

# What follows the data of a node: see `Snapshot.save`.
_NUMBERS_BYTES: Final = 64

# How much is written in one step: the longest that the server is held up by it, and its memory.
_NODES_A_STEP: Final = 500
_STEP_BYTES: Final = 1 << 20
_COPIED_BYTES_MAX: Final = 1 << 10
# How much may wait to be taken while one entry after the other, or one alone, changes large nodes.
BACKLOG_BYTES_MAX: Final = 4 << 20


class SnapshotError(PaddockError):
    """The bytes are not a snapshot that this version can read."""


class Snapshot:
    """One snapshot being taken of a live state machine.

    `spill` gets the backlog, in parts, when it exceeds a limit, also in the middle of an entry; it
    must not raise. Large data is not copied: a small entry may delete a lot of it.
    """

    def __init__(
        self, machine: StateMachine, spill: Callable[[list[bytes]], None] | None = None
    ) -> None:
        tree = machine.tree
        assert tree.images is None, "one snapshot at a time"
        self._tree = tree
        self._writer = BytesWriter()
        # What waits before what the writer has, and its bytes.
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._spill = spill
        self._nodes = 0
        self._acls = 0
        self._digest = machine.digest()
        # What is to be walked. No entry moves from one to another, and nodes that are in others
        # were created after the point.
        self._dicts = tree.nodes.dicts()
        # What exact sessions keep, as far as it is not written.
        self._sessions = machine.sessions
        self._kept: dict[int, KeptReplies] = {}
        writer = self._writer
        writer.append(_HEADER)
        writer.append(FORMAT)
        write_i64_be(writer, machine.zxid)
        write_i64_be(writer, machine.time_ms)
        write_i64_be(writer, machine.sessions.last_id)
        roster = machine.roster
        if roster is not None:
            writer.append(_ROSTER)
            roster.write(writer)
        for session in machine.sessions.by_id.values():
            writer.append(_SESSION if roster is None else _OWNED_SESSION)
            if roster is not None:
                write_i64_be(writer, session.owner)
            write_i64_be(writer, session.id)
            write_i64_be(writer, session.generation)
            write_i32_be(writer, session.timeout_ms)
            write_buffer(writer, session.password)
            if session.kept is not None:
                self._kept[session.id] = session.kept
        # Last: what fails before leaves the tree alone.
        tree.epoch += 1
        tree.images = self
        if self._kept:
            machine.sessions.images = self

    def backlog(self) -> int:
        """Return the bytes that wait to be taken."""
        return self._parts_bytes + len(self._writer)

    def take(self) -> bytes:
        """Take the backlog; it follows what was taken before."""
        return b"".join(self._take_parts())

    def _take_parts(self) -> list[bytes]:
        self._add_part(b"")
        parts, self._parts = self._parts, []
        self._parts_bytes = 0
        return parts

    def _add_part(self, data: bytes) -> None:
        """Put data behind what the writer has, as it is."""
        written = self._writer.getvalue()
        # It keeps its memory.
        self._writer.truncate(0)
        self._parts += [written, data]
        self._parts_bytes += len(written) + len(data)

    def chunks(self, nodes_a_chunk: int = _NODES_A_STEP) -> Iterator[bytes]:
        """Iterate over the snapshot in pieces; entries may be applied between two pieces."""
        for _ in self.steps(nodes_a_chunk):
            yield self.take()

    def steps(self, nodes_a_step: int = _NODES_A_STEP) -> Iterator[None]:
        """Write the snapshot in steps; entries may be applied, and what waits taken, after each."""
        for session, kept in list(self._kept.items()):
            self.save_replies(session, kept)
            if self.backlog() >= _STEP_BYTES:
                yield
        epoch = self._tree.epoch
        looked = 0
        while self._dicts:
            nodes = self._dicts.pop()
            # One that was deleted since has its image, and thereby this epoch, as has a new one. To
            # look each path up again took a tenth of the time.
            for path, node in zip(list(nodes), list(nodes.values()), strict=True):
                if path and node.epoch != epoch:
                    self.save(path, node)
                looked += 1
                if looked % nodes_a_step == 0 or self.backlog() >= _STEP_BYTES:
                    yield
        self._writer.append(_END)
        write_i64_be(self._writer, self._nodes)
        write_i64_be(self._writer, self._digest)
        self.abandon()
        yield

    def save_replies(self, session: int, kept: KeptReplies) -> None:
        """Write what an exact session keeps, before it changes or when its turn has come."""
        if self._kept.pop(session, None) is None:
            return
        writer = self._writer
        writer.append(_KEPT_REPLIES)
        write_i64_be(writer, session)
        write_i64_be(writer, kept.generation)
        write_i32_be(writer, kept.confirmed)
        chunks = kept.chunks()
        write_i32_be(writer, len(chunks))
        for chunk in chunks:
            write_buffer(writer, chunk)
        if not self._kept:
            self._sessions.images = None
        self._spill_backlog()

    def abandon(self) -> None:
        """Detach from the tree; an unfinished snapshot must be abandoned."""
        if self._tree.images is self:
            self._tree.images = None
        if self._sessions.images is self:
            self._sessions.images = None

    def save(self, path: bytes, node: Node) -> None:
        """Write the image of a node that is about to change, or whose turn has come."""
        node.epoch = self._tree.epoch
        acl = node.acl
        writer = self._writer
        if acl.epoch != self._tree.epoch:
            self._acls += 1
            acl.epoch = self._tree.epoch
            acl.number = self._acls
            writer.append(_FORMER_ACL if acl.is_former else _ACL)
            write_i32_be(writer, acl.number)
            if acl.is_former:
                write_i64_be(writer, acl.crc)
            writer.write(acl.wire)
        self._nodes += 1
        writer.append(_NODE)
        write_buffer(writer, path)
        data = node.data
        if data is None or len(data) < _COPIED_BYTES_MAX:
            write_buffer(writer, data)
        else:
            write_i32_be(writer, len(data))
            self._add_part(data)
            writer = self._writer
        write_i32_be(writer, acl.number)
        write_i64_be(writer, node.czxid)
        write_i64_be(writer, node.mzxid)
        write_i64_be(writer, node.pzxid)
        write_i64_be(writer, node.ctime)
        write_i64_be(writer, node.mtime)
        write_i32_be(writer, node.version)
        write_i32_be(writer, node.created)
        write_i32_be(writer, node.aversion)
        write_i64_be(writer, node.owner)
        self._spill_backlog()

    def _spill_backlog(self) -> None:
        if self._spill is not None and self.backlog() > BACKLOG_BYTES_MAX:
            self._spill(self._take_parts())


def restore(chunks: Iterable[bytes]) -> StateMachine:
    """Build the state that a snapshot holds. Raises SnapshotError."""
    machine = StateMachine()
    tree = Tree()
    acls: dict[int, NodeACL] = {}
    rest = b""
    finished = False
    for chunk in chunks:
        reader = Reader(rest + chunk if rest else chunk)
        # A record may be cut by the end of a chunk; then it is read again with the next one.
        whole = 0
        try:
            while reader.position < len(reader.data):
                if finished:
                    raise SnapshotError("there is something behind the end of the snapshot")
                finished = _read_record(reader, machine, tree, acls)
                whole = int(reader.position)
        except DecodeError:
            pass
        rest = reader.data[whole:]
    if not finished or rest:
        raise SnapshotError("the snapshot ends in the middle of a record")
    return machine


def read_stamp(chunks: Iterable[bytes]) -> tuple[int, int]:
    """Return the zxid and the time of the state that a snapshot holds. Raises SnapshotError."""
    machine = StateMachine()
    for chunk in chunks:
        try:
            _read_record(Reader(chunk), machine, machine.tree, {})
        except DecodeError as error:
            raise SnapshotError("the snapshot ends in its first record") from error
        break
    return machine.zxid, machine.time_ms


def _read_record(
    reader: Reader, machine: StateMachine, tree: Tree, acls: dict[int, NodeACL]
) -> bool:
    """Read one record; return whether it was the last."""
    kind = reader.byte()
    if kind == _NODE:
        _read_node(reader, tree, acls)
    elif kind in (_ACL, _FORMER_ACL):
        number = reader.int32()
        former_crc = reader.int64() if kind == _FORMER_ACL else -1
        entries = tuple(read_whole_acls(reader))
        # In the tree's table from the first node on that has it.
        acls[number] = NodeACL(entries, encode_acls(entries), former_crc)
    elif kind in (_SESSION, _OWNED_SESSION):
        owner = reader.int64() if kind == _OWNED_SESSION else 0
        id, generation, timeout_ms = reader.int64(), reader.int64(), reader.int32()
        machine.sessions.by_id[id] = Session(id, reader.string(), timeout_ms, generation, owner)
    elif kind == _KEPT_REPLIES:
        _read_kept(reader, machine)
    elif kind == _ROSTER:
        machine.roster = Roster.read(reader)
    elif kind == _HEADER:
        written = reader.byte()
        if written != FORMAT:
            raise SnapshotError(
                f"the snapshot has format {written}, and this version reads {FORMAT}"
            )
        machine.zxid = reader.int64()
        machine.time_ms = reader.int64()
        machine.sessions.last_id = reader.int64()
    elif kind == _END:
        _finish(machine, tree, reader.int64(), reader.int64())
        return True
    else:
        raise SnapshotError(f"unknown record of kind {kind} in the snapshot")
    return False


def _read_node(reader: Reader, tree: Tree, acls: dict[int, NodeACL]) -> None:
    """Read a node, and plant it."""
    path = reader.string()
    if not path or path[0] != SLASH:
        raise SnapshotError(f"the snapshot has {path[:100]!r}, which is no path")
    content = reader.buffer()
    # The rest are numbers, at places that are known: read one by one they took 0.5 µs.
    data = reader.data
    start = reader.position
    if start + _NUMBERS_BYTES > len(data):
        raise DecodeError("truncated node")
    reader.position = start + _NUMBERS_BYTES
    number = read_i32_be(data, start)
    acl = acls.get(number)
    if acl is None:
        raise SnapshotError(f"a node of the snapshot has ACL {number}, which is not there")
    czxid = read_i64_be(data, start + 4)
    ctime = read_i64_be(data, start + 28)
    node = Node(content, acl, czxid, ctime, read_i64_be(data, start + 56))
    node.mzxid = read_i64_be(data, start + 12)
    node.pzxid = read_i64_be(data, start + 20)
    node.mtime = read_i64_be(data, start + 36)
    node.version = read_i32_be(data, start + 44)
    node.created = read_i32_be(data, start + 48)
    node.aversion = read_i32_be(data, start + 52)
    tree.acls.retain(acl)
    tree.plant(path, node)


def _read_kept(reader: Reader, machine: StateMachine) -> None:
    """Read what an exact session keeps."""
    id, generation, confirmed = reader.int64(), reader.int64(), reader.int32()
    chunks = [reader.string() for _ in range(reader.int32())]
    session = machine.sessions.by_id.get(id)
    if session is None or session.kept is not None:
        raise SnapshotError(f"the snapshot has replies of session 0x{id:x}, which is not there")
    session.kept = KeptReplies()
    if not session.kept.adopt(generation, confirmed, chunks):
        raise SnapshotError(f"the snapshot has malformed replies of session 0x{id:x}")
    machine.sessions.kept_bytes += session.kept.excess()


def _finish(machine: StateMachine, tree: Tree, count: int, digest: int) -> None:
    # The root has two names.
    found = len(tree.nodes) - 1
    if found != count or b"/" not in tree.nodes:
        raise SnapshotError(f"the snapshot should have {count} nodes and has {max(found, 0)}")
    orphan = tree.link()
    if orphan is not None:
        raise SnapshotError(f"the snapshot has {orphan!r} and nothing above it")
    if tree.digest() != digest:
        raise SnapshotError("the digest of the snapshot's nodes is not the one written with it")
    machine.adopt(tree)
    if machine.roster is not None:
        # The sessions are there now.
        machine.adopt_roster(machine.roster)
