"""A machine and the reference model that are given the same to do, and must do the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from paddock.errors import OK, RUNTIME_INCONSISTENCY
from paddock.protocol import opcodes, operations
from paddock.protocol.exact import KeptReply
from paddock.protocol.jute import Reader
from paddock.protocol.records import MultiHeader
from paddock.protocol.replies import (
    GetChildren2Response,
    IntResponse,
    StringsResponse,
)
from paddock.state.access import Identities
from paddock.state.entry import ENFORCE_QUOTA, EXTENDED_TYPES, Entry
from paddock.state.machine import Outcome, StateMachine
from paddock.state.node import CONTAINER, TTL_BASE
from paddock.state.quota import Fault
from paddock.testing.model import Answer, Caller, Model, ModelNode, ReadRequest
from tests.property.actions import (
    ADDRESSES,
    SLOTS,
    Action,
    Attach,
    Authenticate,
    Close,
    Expire,
    Multi,
    Open,
    Read,
    Reap,
    Write,
)
from tests.property.dump import dump
from tests.unit.state.driver import PASSWORD, Connection, World, encode, multi_body

UNDECODABLE = b"\x00\x00"

_REPLIES: dict[int, Any] = {
    row.number: row.reply.read for row in operations.TABLE if row.reply is not None
}
# In a result of a transaction these have no body.
_BARE = (opcodes.DELETE, opcodes.CHECK)


class Client:
    """One client, in both worlds."""

    def __init__(self, slot: int) -> None:
        self.address = ADDRESSES[slot]
        # No session has this id, until a session is opened.
        self.session = 10_000 + slot
        self.connection: Connection | None = None
        self.caller = Caller(self.session, 1, (self.address,))


class Pair:
    """The machine and the model."""

    def __init__(self, *, extended_types: bool = True, enforce_quota: bool = True) -> None:
        self.world = World()
        self.world.flags = EXTENDED_TYPES if extended_types else 0
        self.world.flags |= ENFORCE_QUOTA if enforce_quota else 0
        self.model = Model(extended_types=extended_types, enforce_quota=enforce_quota)
        self._sessions = 0
        self._clients = [Client(slot) for slot in range(SLOTS)]
        for client in self._clients:
            self._connect(client, 1)

    def run(self, action: Action) -> None:
        """Do it in both, and compare what came of it."""
        world, model = self.world, self.model
        match action:
            case Open(slot):
                client = self._clients[slot]
                if client.session not in model.sessions:
                    self._sessions += 1
                    client.session = self._sessions
                    # Slot 0 stays with ordinary sessions.
                    is_exact = slot > 0
                    world.open(client.session, 30_000, is_exact=is_exact)
                    model.open_session(client.session, PASSWORD, 30_000, is_exact=is_exact)
                    self._connect(client, 1)
            case Attach(slot, timeout_ms):
                client = self._clients[slot]
                outcome, _ = world.attach(client.session, timeout_ms)
                answer = model.attach(client.session, timeout_ms)
                assert (outcome.error, outcome.zxid) == (answer.error, answer.zxid)
                if answer.error == OK:
                    self._connect(client, model.sessions[client.session].generation)
            case Close(slot, stale):
                connection, caller = self._speak(slot, stale)
                self._compare(opcodes.CLOSE_SESSION, connection.close(), model.close(caller))
            case Expire(slot, behind):
                client = self._clients[slot]
                generation = client.caller.generation - behind
                outcome = world.expire(client.session, generation)
                answer = model.expire(client.session, generation)
                assert (outcome.error, outcome.zxid) == (answer.error, answer.zxid)
            case Authenticate(slot, identity):
                connection, caller = self._speak(slot, False)
                connection.be(identity)
                if identity not in caller.identities:
                    caller.identities += (identity,)
            case Write(slot, operation, request, stale):
                connection, caller = self._speak(slot, stale)
                body = UNDECODABLE if request is None else encode(request)
                outcome = connection.send(operation, body)
                answer = model.write(caller, operation, request, world.time_ms)
                self._compare(operation, outcome, answer)
            case Multi(slot, steps, stale):
                connection, caller = self._speak(slot, stale)
                outcome = connection.multi(*steps)
                answer = model.multi(caller, steps, world.time_ms)
                self._compare(opcodes.MULTI, outcome, answer)
            case Read(slot, operation, request):
                connection, caller = self._speak(slot, False)
                error, reply = connection.ask(operation, _read_body(request))
                answer = model.read(caller, operation, request)
                assert (error, _decode(operation, error, reply)) == (
                    answer.error,
                    _normal(answer.reply),
                )
            case Reap(path, czxid_offset, mzxid_offset):
                node = model.nodes.get(path)
                czxid = (node.czxid if node else 0) - czxid_offset
                mzxid = (node.mzxid if node else 0) - mzxid_offset
                outcome = world.reap(path, czxid, mzxid)
                answer = model.reap(path, czxid, mzxid)
                assert (outcome.error, outcome.zxid) == (answer.error, answer.zxid)
        assert world.machine.zxid == model.zxid
        for client in self._clients:
            assert client.connection is not None
            assert client.connection.events == client.caller.events

    def compare(self) -> None:
        """Compare the whole state."""
        plain = dump(self.world.machine)
        model = self.model
        assert plain["nodes"] == {path: self._node(path) for path in model.nodes}
        assert plain["sessions"] == {
            id: (session.generation, session.timeout_ms, session.password)
            for id, session in model.sessions.items()
        }
        self._compare_kept(plain["kept"])
        assert plain["zxid"] == model.zxid
        watches = self.world.watches
        for table, expected in (
            (watches.data, model.watches.data),
            (watches.child, model.watches.child),
        ):
            assert table.size == len({(path, caller) for path, caller, _mode in expected})
        for client in self._clients:
            assert client.connection is not None
            standing = [*model.watches.data, *model.watches.child]
            mine = [path for path, caller, _mode in standing if caller is client.caller]
            assert client.connection.watch_count == len(mine)
            assert client.connection.watch_bytes == sum(len(path) for path in mine)

    def _compare_kept(self, kept: dict[int, tuple[int, int, list[bytes]]]) -> None:
        """Compare what exact sessions keep; they may keep more than they must."""
        sessions = self.model.sessions
        assert kept.keys() == {id for id, session in sessions.items() if session.kept is not None}
        for id, (generation, confirmed, chunks) in kept.items():
            expected = sessions[id].kept
            assert expected is not None
            assert generation == expected.generation
            assert confirmed <= expected.confirmed
            reader = Reader(b"".join(chunks))
            replies = []
            while reader.position < len(reader.data):
                replies.append(KeptReply.read(reader))
            must = expected.answers
            assert all(confirmed < one.xid for one in replies)
            for reply, (xid, operation, answer) in zip(
                replies[len(replies) - len(must) :], must, strict=True
            ):
                error = _stopped_by(answer.reply) if operation == opcodes.MULTI else OK
                error = answer.error if answer.error != OK else error
                assert (reply.xid, reply.zxid, reply.error) == (xid, answer.zxid, error)
                if reply.failed >= 0:
                    told = _normal(answer.reply)
                    assert isinstance(told, list)
                    assert _decode(operation, OK, reply.refusal()) == told[: reply.failed + 1]
                    continue
                assert reply.body is not None
                body = _decode(operation, answer.error, reply.body)
                assert body == _normal(answer.reply)

    def _connect(self, client: Client, generation: int) -> None:
        """Reconnect a client: it keeps its session, not its watches."""
        if client.connection is not None:
            self.world.watches.remove_some(client.connection, 1 << 30)
            self.model.forget(client.caller)
        client.connection = Connection(self.world, client.session, generation)
        client.connection.identities = Identities((client.address,))
        client.caller = Caller(client.session, generation, (client.address,))

    def _speak(self, slot: int, stale: bool) -> tuple[Connection, Caller]:
        client = self._clients[slot]
        assert client.connection is not None
        client.caller.xid = client.connection.xid + 1
        if not stale:
            return client.connection, client.caller
        connection = Connection(self.world, client.session, client.connection.generation - 1)
        connection.identities = client.connection.identities
        caller = replace(client.caller, generation=client.caller.generation - 1)
        return connection, caller

    def _compare(self, operation: int, outcome: Outcome, answer: Answer) -> None:
        assert not isinstance(outcome.notice, Fault)
        got = outcome.error, outcome.zxid, _decode(operation, outcome.error, outcome.body)
        assert got == (answer.error, answer.zxid, _normal(answer.reply))
        if answer.error != OK:
            assert outcome.changes == []

    def _node(self, path: bytes) -> dict[str, Any]:
        node: ModelNode = self.model.nodes[path]
        owner = node.owner
        if node.container:
            owner = CONTAINER
        elif node.ttl_ms:
            owner = TTL_BASE + node.ttl_ms
        return {
            "data": node.data,
            "acl": tuple(node.acls),
            "czxid": node.czxid,
            "mzxid": node.mzxid,
            "pzxid": node.pzxid,
            "ctime": node.ctime,
            "mtime": node.mtime,
            "version": node.version,
            "aversion": node.aversion,
            "created": node.created,
            "owner": owner,
            "children": sorted(self.model.children(path)),
        }


def log_of(history: list[Action]) -> list[Entry]:
    """Return the log entries of these actions."""
    pair = Pair()
    for action in history:
        pair.run(action)
    return pair.world.entries


def replay(log: list[Entry]) -> StateMachine:
    machine = StateMachine()
    for entry in log:
        machine.apply(entry)
    return machine


def _read_body(request: ReadRequest) -> bytes:
    if request is None:
        return b""
    if isinstance(request, list):
        return multi_body(request)
    return encode(request)


def _decode(operation: int, error: int, body: bytes) -> object:
    if error != OK:
        assert body == b""
        return None
    if operation in (opcodes.MULTI, opcodes.MULTI_READ):
        return _decode_results(body)
    read = _REPLIES.get(operation)
    reader = Reader(body)
    reply = None if read is None else _normal(read(reader))
    assert reader.rest() == b""
    return reply


def _decode_results(body: bytes) -> list[object]:
    reader = Reader(body)
    results: list[object] = []
    while not (header := MultiHeader.read(reader)).done:
        if header.operation == opcodes.ERROR:
            record: object = IntResponse.read(reader)
        elif header.operation in _BARE:
            record = None
        else:
            record = _normal(_REPLIES[header.operation](reader))
        results.append((header.operation, header.error, record))
    assert (header.operation, header.error, reader.rest()) == (-1, -1, b"")
    return results


def _stopped_by(reply: object) -> int:
    """Return the code of the operation that a transaction failed with, or OK."""
    assert reply is None or isinstance(reply, list)
    codes = [error for operation, error, _ in reply or () if operation == opcodes.ERROR]
    return next((code for code in codes if code not in (OK, RUNTIME_INCONSISTENCY)), OK)


def _normal(reply: object) -> object:
    """Return a reply with its unordered lists sorted."""
    match reply:
        case StringsResponse(values):
            return StringsResponse(sorted(values))
        case GetChildren2Response(children, stat):
            return GetChildren2Response(sorted(children), stat)
        case list():
            return [(operation, error, _normal(record)) for operation, error, record in reply]
        case _:
            return reply
