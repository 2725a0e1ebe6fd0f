"""A server without sockets and disks: its log answers when told to, its clients are fakes."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from paddock.log.interface import Listener, Log, Record
from paddock.protocol.jute import Reader
from paddock.protocol.opcodes import CREATE_SESSION
from paddock.protocol.records import ConnectRequest, ConnectResponse, ReplyHeader
from paddock.server.config.config import ServerConfig
from paddock.server.connections.connection import Connection
from paddock.server.connections.core import Core
from paddock.server.connections.request_handler import RequestHandler
from paddock.server.connections.send_buffer import ConnectionWatcher
from paddock.server.journal.journal import Journal
from paddock.server.replication.proposer import Proposer
from paddock.server.replication.replica import Replica
from paddock.server.sessions.tracker import Liveness
from paddock.server.statistics import Statistics
from paddock.state.access import Identities
from paddock.state.entry import ATTACH, Entry
from paddock.state.machine import StateMachine
from paddock.state.watches import Watches
from paddock.storage.replay import Replay
from paddock.testing.clock import run_virtually
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.support.records import Code, Request

MIB = 1 << 20


class HeldLog:
    """A log that decides nothing on its own: the test says what becomes of a batch."""

    def __init__(self) -> None:
        self.last_index = 0
        self.torn = None
        self.proposals: list[bytes] = []
        # The number of the batch under way.
        self.number: int | None = None
        self.listener: Listener | None = None

    server = b""
    in_flight_max = 1
    is_shared = False

    def start(self, listener: Listener, after: int = 0) -> None:
        self.listener = listener

    def propose(self, number: int, payload: bytes) -> None:
        assert self.number is None
        self.number = number
        self.proposals.append(payload)

    def settle(self, outcome: Durability = Durability.DURABLE) -> None:
        """Tell what became of the batch under way."""
        assert self.listener is not None
        assert self.number is not None
        number, self.number = self.number, None
        match outcome:
            case Durability.DURABLE:
                self.last_index += 1
                payload = self.proposals[-1]
                self.listener.committed(Record(self.last_index, payload, self.server, number))
            case Durability.NOT_WRITTEN:
                self.listener.refused(number, "as the test wants it")
            case Durability.UNKNOWN:
                self.listener.unknown("as the test wants it")

    def records(self, after: int) -> Iterator[Record]:
        return iter(())

    def recover(self) -> None:
        pass

    def purge(self, below: int) -> None:
        pass

    def leave_loop(self) -> None:
        pass

    def close(self) -> None:
        pass


class FakeTransport(asyncio.Transport):
    """Collects what is written."""

    def __init__(
        self,
        *,
        tls: bool = False,
        own_socket: socket.socket | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        # Of TLS it has only that it is there.
        extra = {"ssl_object": object()} if tls else {}
        super().__init__({"peername": (address, 4711), "socket": own_socket, **extra})
        self.written = b""
        self.writes = 0
        self.is_reading_now = True
        self.is_open = True
        # What the peer has not taken yet.
        self.waiting_bytes = 0
        # Called with each write, after it was taken down.
        self.on_write: Callable[[], None] | None = None

    def write(self, data: Any) -> None:
        self.written += bytes(data)
        self.writes += 1
        if self.on_write is not None:
            self.on_write()

    def pause_reading(self) -> None:
        self.is_reading_now = False

    def resume_reading(self) -> None:
        self.is_reading_now = True

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False

    def abort(self) -> None:
        self.is_open = False

    def frames(self) -> list[bytes]:
        """Take every frame that has been written whole."""
        frames = []
        while len(self.written) >= 4:
            (length,) = struct.unpack_from(">i", self.written)
            if len(self.written) < 4 + length:
                break
            frames.append(self.written[4 : 4 + length])
            self.written = self.written[4 + length :]
        return frames


class FakeClient:
    """A client of a harness, byte for byte."""

    def __init__(
        self, harness: Assembly, *, tls: bool = False, own_socket: socket.socket | None = None
    ) -> None:
        self.transport = FakeTransport(tls=tls, own_socket=own_socket)
        self.connection = Connection(harness.service)
        self.connection.connection_made(self.transport)
        self._harness = harness
        self.session = 0
        self.password = b""
        self.rest = b""

    @property
    def handler(self) -> RequestHandler:
        return self.connection.handler

    @property
    def watcher(self) -> ConnectionWatcher:
        return self.handler.watcher

    async def attach(self, session: int = 0, password: bytes = b"") -> ConnectResponse:
        """Shake hands, with the log settling what it takes."""
        self.send_handshake(session, password)
        await self._harness.settle()
        return self.take_handshake()

    def send_handshake(
        self,
        session: int = 0,
        password: bytes = b"",
        zxid: int = 0,
        timeout_ms: int = 6000,
        read_only: bool | None = False,
        version: int = 0,
    ) -> None:
        from librt.strings import BytesWriter

        writer = BytesWriter()
        ConnectRequest(version, zxid, timeout_ms, session, password, read_only).write(writer)
        self.receive(framed(writer.getvalue()))

    def take_handshake(self) -> ConnectResponse:
        (frame,) = self.transport.frames()
        reader = Reader(frame)
        reply = ConnectResponse.read(reader)
        self.session, self.password = reply.session_id, reply.password or b""
        # What is behind it.
        self.rest = reader.rest()
        return reply

    def receive(self, data: bytes, *, is_alone: bool = True) -> None:
        """Let the connection receive bytes, as if it were the only one: it is answered at once."""
        self._harness.service.turns.last_reader = self.handler if is_alone else None
        self.connection.data_received(data)

    def send(self, *requests: Request) -> None:
        """Let it receive requests in one read, numbered from 1 on."""
        self.receive(b"".join(encoded(xid, one) for xid, one in enumerate(requests, 1)))

    def replies(self) -> list[tuple[int, int, bytes]]:
        """Take what was answered: xid, error and body of each."""
        taken = []
        for frame in self.transport.frames():
            reader = Reader(frame)
            header = ReplyHeader.read(reader)
            taken.append((header.xid, header.error, reader.rest()))
        return taken


class Assembly:
    """The heart of a server on some log."""

    def __init__(
        self, log: Log, monotonic: Callable[[], float] | None, settings: dict[str, Any]
    ) -> None:
        self.wall_ms = 1_000_000
        self.machine = StateMachine()
        clock = lambda: self.wall_ms  # noqa: E731
        config = ServerConfig(**settings)
        self.watches = Watches(
            config.max_watches_per_session, config.max_watch_bytes_per_session, config.max_watches
        )
        self.replica = Replica(Replay(self.machine, 0), self.watches, Statistics(), monotonic)
        self.replica.follow(log)
        self.proposer = Proposer(
            self.replica, log, clock, config.max_requests, config.max_request_bytes
        )
        self.service = Core(
            config,
            self.replica,
            self.proposer,
            clock,
            lambda count: bytes(range(count)),
            monotonic,
        )

    async def settle(self) -> None:
        """Settle every batch, until nothing is under way."""
        raise NotImplementedError

    async def client(
        self, *, tls: bool = False, own_socket: socket.socket | None = None
    ) -> FakeClient:
        """Return a client with a session; `own_socket` gets what is written past the transport."""
        client = FakeClient(self, tls=tls, own_socket=own_socket)
        await client.attach()
        return client

    def liveness_of(self, client: FakeClient) -> Liveness:
        """Return the liveness of a client's session, which must exist."""
        liveness = self.service.tracker.get(client.session)
        assert liveness is not None
        return liveness


class Harness(Assembly):
    """The heart of a server, beating by hand."""

    def __init__(self, monotonic: Callable[[], float] | None = None, /, **settings: Any) -> None:
        self.log = HeldLog()
        super().__init__(self.log, monotonic, settings)

    async def settle(self, outcome: Durability = Durability.DURABLE) -> None:
        """Settle every batch, until nothing is under way."""
        await turn()
        while self.proposer.outstanding():
            if self.log.number is not None:
                self.log.settle(outcome)
            await turn()
        await turn()


class RecordedEvents(Journal):
    """The events of a harness: kind, reason and details of each."""

    def __init__(self, harness: Assembly) -> None:
        self.taken: list[tuple[str, str, dict[str, object]]] = []
        #: Who was named, with the kind of the event: of each that names somebody.
        self.identities: list[tuple[str, Identities]] = []
        harness.replica.journal = self

    def add(
        self,
        kind: str,
        *,
        session: int = 0,
        address: str = "",
        identities: Identities | None = None,
        reason: str = "",
        **details: object,
    ) -> None:
        about = {"session": session, "address": address, **details}
        self.taken.append((kind, reason, {name: one for name, one in about.items() if one}))
        if identities is not None:
            self.identities.append((kind, identities))

    def take(self) -> list[tuple[str, str]]:
        """Take the kinds and reasons since the last call."""
        taken, self.taken = self.taken, []
        return [(kind, reason) for kind, reason, _ in taken]

    def last(self, kind: str) -> dict[str, object]:
        """Return the details of the last event of a kind."""
        return [details for one, _, details in self.taken if one == kind][-1]


class SlowHarness(Harness):
    """A server for which every entry takes a part of a slice, but none of a handshake."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds
        super().__init__(lambda: self.now)
        self.replica.on_entry = lambda entry, _outcome: self.take_time(entry)

    def take_time(self, entry: Entry) -> None:
        if entry.operation not in (CREATE_SESSION, ATTACH):
            self.now += self.seconds


async def turn() -> None:
    """Let the loop run what is ready, and what that makes ready."""
    for _ in range(4):
        await asyncio.sleep(0)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def encoded(xid: int, request: Request) -> bytes:
    return framed(struct.pack(">ii", xid, request.op) + request.body)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it in virtual time."""
    run_virtually(scenario())


def reads_from(client: FakeClient) -> bool:
    """Tell whether the server reads from a client now."""
    return client.transport.is_reading_now


def numbers(client: FakeClient) -> list[int]:
    """Return the xids of the replies since the last call."""
    return [xid for xid, _, _ in client.replies()]


def errors(client: FakeClient) -> list[int]:
    """Return the error codes of the replies since the last call."""
    return [error for _, error, _ in client.replies()]


async def with_node(harness: Harness, path: str, data: bytes) -> FakeClient:
    """Return a client that has created a node."""
    client = await harness.client()
    client.send(rq.create(path, data))
    await harness.settle()
    assert errors(client) == [Code.OK]
    return client
