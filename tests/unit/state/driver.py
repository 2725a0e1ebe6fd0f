"""Drives a state machine with its watches, as a server would, for tests.

world = World()
bob = world.open()
bob.create(b"/a", b"data")
bob.told
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from librt.strings import BytesWriter

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ALL, ANYONE, Identity
from paddock.protocol.jute import Reader, write_strings
from paddock.protocol.records import MultiHeader, ReplyHeader, Stat, WatcherEvent
from paddock.protocol.replies import Create2Response, CreateResponse, GetDataResponse, IntResponse
from paddock.protocol.requests import (
    AddWatchRequest,
    CreateRequest,
    CreateTTLRequest,
    PathRequest,
    SetACLRequest,
    SetDataRequest,
    VersionRequest,
    WatchedRequest,
    WatchesRequest,
)
from paddock.state.access import NOBODY, Identities
from paddock.state.entry import ATTACH, EXPIRE, EXTENDED_TYPES, REAP, RULES, Entry
from paddock.state.kept_replies import KeptReplies
from paddock.state.machine import (
    Outcome,
    StateMachine,
    attach_body,
    reap_body,
    session_body,
)
from paddock.state.operation_counts import OperationCounts
from paddock.state.queries import Queries
from paddock.state.watcher import Watcher
from paddock.state.watches import Watches

OPEN: list[ACL | None] = [ACL(ALL, ANYONE)]
PASSWORD = b"p" * 16


class Record(Protocol):
    def write(self, writer: BytesWriter) -> None: ...


def encode(record: Record) -> bytes:
    writer = BytesWriter()
    record.write(writer)
    return writer.getvalue()


def multi_body(steps: Iterable[tuple[int, Record]]) -> bytes:
    writer = BytesWriter()
    for operation, record in steps:
        MultiHeader(operation, False, -1).write(writer)
        record.write(writer)
    MultiHeader(-1, True, -1).write(writer)
    return writer.getvalue()


def multi_results(body: bytes) -> list[tuple[int, int, object]]:
    """Read the answer to a transaction: operation, error and what came of it, for each."""
    reader = Reader(body)
    found: list[tuple[int, int, object]] = []
    while not (header := MultiHeader.read(reader)).done:
        record: object = None
        if header.operation == opcodes.ERROR:
            record = IntResponse.read(reader).value
        elif header.operation == opcodes.CREATE:
            record = CreateResponse.read(reader).path
        elif header.operation == opcodes.CREATE2:
            record = Create2Response.read(reader).path
        elif header.operation == opcodes.SET_DATA:
            record = Stat.read(reader).version
        found.append((header.operation, header.error, record))
    assert (header.operation, header.error) == (-1, -1)
    assert reader.rest() == b""
    return found


def sentence(outcome: Outcome) -> str:
    """Return the notice to the operator, or an empty string."""
    return "" if outcome.notice is None else outcome.notice.sentence()


def set_watches_body(zxid: int, *lists: list[bytes]) -> bytes:
    writer = BytesWriter()
    writer.write(zxid.to_bytes(8, "big", signed=True))
    for paths in lists:
        write_strings(writer, paths)
    return writer.getvalue()


def read_event(frame: bytes) -> tuple[int, bytes, int]:
    """Read an event: its type, its path, and the zxid of its header."""
    reader = Reader(frame, 4)
    header = ReplyHeader.read(reader)
    assert (header.xid, header.error) == (-1, 0)
    event = WatcherEvent.read(reader)
    assert reader.rest() == b""
    return event.kind, event.path, header.zxid


class Connection(Watcher):
    """One client on one connection."""

    def __init__(self, world: World, session: int, generation: int) -> None:
        super().__init__()
        self.world = world
        self.session = session
        self.generation = generation
        # The number of the last request.
        self.xid = 0
        # Events, in the order in which they were told.
        self.told: list[tuple[int, bytes]] = []
        # The same with the zxid of each.
        self.events: list[tuple[int, bytes, int]] = []

    def notify(self, event: bytes) -> None:
        kind, path, zxid = read_event(event)
        self.told.append((kind, path))
        self.events.append((kind, path, zxid))

    def be(self, *identities: Identity) -> None:
        self.identities = self.identities.adding(*identities)

    def send(self, operation: int, body: bytes) -> Outcome:
        self.xid += 1
        return self.world.apply(
            operation,
            body,
            self.session,
            self.generation,
            self.xid,
            identities=self.identities,
        )

    def ask(self, operation: int, body: bytes) -> tuple[int, bytes]:
        return self.world.queries.answer(operation, body, 0, len(body), self, self.identities)

    def create(
        self,
        path: bytes,
        data: bytes | None = b"",
        flags: int = 0,
        acls: list[ACL | None] | None = OPEN,
        operation: int = opcodes.CREATE,
    ) -> Outcome:
        return self.send(operation, encode(CreateRequest(path, data, acls, flags)))

    def create_ttl(self, path: bytes, flags: int, ttl_ms: int) -> Outcome:
        request = CreateTTLRequest(path, b"", OPEN, flags, ttl_ms)
        return self.send(opcodes.CREATE_TTL, encode(request))

    def delete(self, path: bytes | None, version: int = -1) -> Outcome:
        return self.send(opcodes.DELETE, encode(VersionRequest(path, version)))

    def set(self, path: bytes | None, data: bytes | None, version: int = -1) -> Outcome:
        return self.send(opcodes.SET_DATA, encode(SetDataRequest(path, data, version)))

    def set_acl(self, path: bytes, acls: list[ACL | None] | None, version: int = -1) -> Outcome:
        return self.send(opcodes.SET_ACL, encode(SetACLRequest(path, acls, version)))

    def check(self, path: bytes, version: int) -> Outcome:
        return self.send(opcodes.CHECK, encode(VersionRequest(path, version)))

    def multi(self, *steps: tuple[int, Record]) -> Outcome:
        return self.send(opcodes.MULTI, multi_body(steps))

    def close(self) -> Outcome:
        return self.send(opcodes.CLOSE_SESSION, b"")

    def get(self, path: bytes, watch: bool = False) -> GetDataResponse:
        error, body = self.ask(opcodes.GET_DATA, encode(WatchedRequest(path, watch)))
        assert error == OK, error
        return GetDataResponse.read(Reader(body))

    def exists(self, path: bytes, watch: bool = False) -> int:
        return self.ask(opcodes.EXISTS, encode(WatchedRequest(path, watch)))[0]

    def children(self, path: bytes, watch: bool = False) -> list[bytes]:
        error, body = self.ask(opcodes.GET_CHILDREN, encode(WatchedRequest(path, watch)))
        assert error == OK, error
        return sorted(Reader(body).strings())

    def add_watch(self, path: bytes, mode: int) -> int:
        return self.ask(opcodes.ADD_WATCH, encode(AddWatchRequest(path, mode)))[0]

    def remove_watches(self, path: bytes | None, kind: int) -> int:
        return self.ask(opcodes.REMOVE_WATCHES, encode(WatchesRequest(path, kind)))[0]

    def check_watches(self, path: bytes | None, kind: int) -> int:
        return self.ask(opcodes.CHECK_WATCHES, encode(WatchesRequest(path, kind)))[0]

    def sync(self, path: bytes | None) -> tuple[int, bytes]:
        return self.ask(opcodes.SYNC, encode(PathRequest(path)))


class World:
    """One machine, its watches, and a clock that goes on by one with each entry."""

    def __init__(self, machine: StateMachine | None = None) -> None:
        self.machine = StateMachine() if machine is None else machine
        self.watches = Watches()
        self.counts = OperationCounts()
        self.queries = Queries(self.machine, self.watches, self.counts)
        self.time_ms = 1000
        self.flags = EXTENDED_TYPES
        self.rules = RULES
        # Everything that was applied, for those who want to apply it again.
        self.entries: list[Entry] = []

    def apply(
        self,
        operation: int,
        body: bytes,
        session: int = 0,
        generation: int = 0,
        xid: int = 0,
        *,
        identities: Identities = NOBODY,
    ) -> Outcome:
        self.time_ms += 1
        entry = Entry(
            operation,
            body,
            session,
            generation,
            xid,
            time_ms=self.time_ms,
            flags=self.flags,
            identities=identities,
            rules=self.rules,
        )
        self.entries.append(entry)
        outcome = self.machine.apply(entry)
        self.watches.publish(outcome.changes)
        return outcome

    def open(self, id: int = 0, timeout_ms: int = 30_000, *, is_exact: bool = False) -> Connection:
        id = id or self.machine.sessions.last_id + 1
        self.apply(opcodes.CREATE_SESSION, session_body(timeout_ms, PASSWORD, is_exact), id)
        return Connection(self, id, 1)

    def attach(
        self,
        session: int,
        timeout_ms: int = 30_000,
        password: bytes = PASSWORD,
        last_zxid_seen: int = 0,
    ) -> tuple[Outcome, Connection]:
        outcome = self.apply(ATTACH, attach_body(timeout_ms, password, last_zxid_seen), session)
        found = self.machine.sessions.by_id.get(session)
        return outcome, Connection(self, session, found.generation if found else 0)

    def expire(self, session: int, generation: int) -> Outcome:
        return self.apply(EXPIRE, b"", session, generation)

    def reap(self, path: bytes, czxid: int, mzxid: int) -> Outcome:
        return self.apply(REAP, reap_body(path, czxid, mzxid))

    def kept(self, session: int) -> KeptReplies:
        """Return what an exact session keeps."""
        kept = self.machine.sessions.by_id[session].kept
        assert kept is not None
        return kept

    def stat(self, path: bytes) -> Stat:
        return Stat.read(Reader(self.machine.tree.nodes[path].stat()))
