"""The stage of the hot paths: a server and a client in a deterministic environment.

There is no clock, network, disk or thread. Time stands still. A server's connections have a
transport that stores the output, and its log is in memory. A client's server has its replies
encoded in advance, so they cost nothing during the run.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from contextvars import Context
from pathlib import Path
from typing import Any, Final, Protocol, TypeVarTuple

from librt.strings import BytesWriter

from bench.servers import BenchError
from paddock.log.file.disk import Disk
from paddock.log.memory import MemoryLog
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.protocol.records import (
    NOTIFICATION_XID,
    ConnectRequest,
    ConnectResponse,
    ReplyHeader,
    Stat,
)
from paddock.protocol.requests import WatchedRequest
from paddock.server.config.config import ServerConfig
from paddock.server.connections.connection import Connection
from paddock.server.connections.core import Core
from paddock.server.replication.proposer import Proposer
from paddock.server.replication.replica import Replica
from paddock.server.statistics import Statistics
from paddock.state.machine import StateMachine
from paddock.state.watches import Watches
from paddock.storage.replay import Replay

Arguments = TypeVarTuple("Arguments")

# What every node holds.
DATA: Final = b"x" * 100
SESSION_TIMEOUT_MS: Final = 30_000

_WALL_CLOCK_MS: Final = 1_000_000
_REPLY_HEADER: Final = struct.Struct(">iqi")


class Record(Protocol):
    """A record of the protocol that can be encoded."""

    def write(self, writer: BytesWriter) -> None: ...


class StillLoop(asyncio.SelectorEventLoop):
    """An event loop without time, in which a client connects to a canned server."""

    canned: CannedServer | None = None

    def time(self) -> float:
        return 0.0

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Call it soon: there is no other thread, so no wake-up by a socket is needed."""
        return self.call_soon(callback, *args, context=context)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.Protocol], *_: Any, **__: Any
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        assert self.canned is not None, "the client was not to connect again"
        transport, self.canned = self.canned, None
        protocol = protocol_factory()
        transport.connect(protocol)
        return transport, protocol


class Taken(asyncio.Transport):
    """The transport of a server's connection; it accepts and stores all output."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 4711)})
        self.pieces: list[bytes] = []
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.pieces.append(data)

    def pause_reading(self) -> None:
        """Do nothing: input comes only when it is allowed."""

    def resume_reading(self) -> None:
        """Do nothing: no input waits."""

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def replies(self) -> list[tuple[int, int]]:
        """Take the xid and the result of every reply so far."""
        found = []
        data, self.pieces = b"".join(self.pieces), []
        position = 0
        while position < len(data):
            (length,) = struct.unpack_from(">i", data, position)
            header = ReplyHeader.read(Reader(data[position + 4 : position + 4 + length]))
            found.append((header.xid, header.error))
            position += 4 + length
        return found


class KeptDisk(Disk):
    """A disk that keeps in memory what is written to it, one file after the other."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def take(self) -> bytes:
        """Take the last file."""
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def create(self, path: Path) -> int:
        return 0

    def write_parts(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        self._parts += parts

    def sync(self, file: int) -> None:
        """Do nothing: it is memory."""

    def sync_folder(self, folder: Path) -> None:
        """Do nothing, too."""

    def rename(self, old: Path, new: Path) -> None:
        """Do nothing: the file has no name."""

    def close(self, file: int) -> None:
        """Do nothing: it stays until it is taken."""


class Peer:
    """A client of the server, byte for byte."""

    def __init__(self, heart: Heart) -> None:
        self.transport = Taken()
        self.connection = Connection(heart.service)
        self.connection.connection_made(self.transport)

    def check(self, replies: int, events: int = 0) -> None:
        """Check that so many replies came, without an error; drop them. Raises BenchError."""
        if self.transport.is_closed:
            raise BenchError("the server closed the connection")
        found = self.transport.replies()
        told = sum(xid == NOTIFICATION_XID for xid, _ in found)
        errors = [error for _, error in found if error]
        if errors or told != events or len(found) - told != replies:
            raise BenchError(
                f"{len(found) - told} replies of {replies}, "
                f"{told} events of {events}; bad: {errors}"
            )


class Heart:
    """A server without sockets and disk, assembled as in `paddock.server.server`."""

    def __init__(self) -> None:
        config = ServerConfig(max_connections_per_address=0)
        machine = StateMachine()
        watches = Watches(config.max_watches_per_session, config.max_watch_bytes_per_session)
        log = MemoryLog(keep=False)
        replica = Replica(Replay(machine, 0), watches, Statistics())
        replica.follow(log)
        self.proposer = Proposer(
            replica,
            log,
            lambda: _WALL_CLOCK_MS,
            config.max_requests,
            config.max_request_bytes,
        )
        self.service = Core(
            config,
            replica,
            self.proposer,
            lambda: _WALL_CLOCK_MS,
            lambda count: bytes(range(count)),
        )

    async def settle(self) -> None:
        """Let the loop run until every write is answered."""
        await asyncio.sleep(0)
        while self.proposer.outstanding():  # noqa: ASYNC110 - an event would cost more than a turn
            await asyncio.sleep(0)

    async def peer(self) -> Peer:
        """Return a client with a session."""
        peer = Peer(self)
        shake = ConnectRequest(0, 0, SESSION_TIMEOUT_MS, 0, bytes(16), False)
        peer.connection.data_received(framed(encoded(shake)))
        await self.settle()
        (frame,) = peer.transport.pieces
        if not ConnectResponse.read(Reader(frame[4:])).session_id:
            raise BenchError("the server gave no session")
        peer.transport.pieces.clear()
        return peer

    async def ask(self, peer: Peer, requests: Sequence[bytes]) -> None:
        """Send a request, and wait for its reply."""
        peer.connection.data_received(b"".join(requests))
        await self.settle()
        peer.check(len(requests))


class CannedServer(asyncio.Transport):
    """The transport of a client; its server has canned replies to gets of one path."""

    def __init__(self, gets: int) -> None:
        super().__init__()
        self._protocol: asyncio.Protocol | None = None
        self._loop = asyncio.get_running_loop()
        body = framed(DATA) + encoded(Stat(1, 1, 0, 0, 0, 0, 0, 0, len(DATA), 0, 1))
        self._replies = b"".join(
            framed(_REPLY_HEADER.pack(xid, 1, 0) + body) for xid in range(1, gets + 1)
        )
        self._reply_bytes = len(self._replies) // gets
        # The bytes of one request; None before the handshake.
        self._request_bytes: int | None = None
        self._is_open = True

    def connect(self, protocol: asyncio.Protocol) -> None:
        self._protocol = protocol
        protocol.connection_made(self)

    def serve_gets(self, path: str) -> None:
        """From now on, answer only gets of this path."""
        get = request(opcodes.GET_DATA, WatchedRequest(path.encode(), False))
        self._request_bytes = len(get)

    def serve_end(self) -> None:
        """From now on, answer only the end of the session."""
        self._request_bytes = None

    def write(self, data: Any) -> None:
        assert self._protocol is not None
        (xid,) = struct.unpack_from(">i", data, 4)
        if self._request_bytes is not None:
            count = len(data) // self._request_bytes
            begin = (xid - 1) * self._reply_bytes
            reply = self._replies[begin : begin + count * self._reply_bytes]
        elif xid == 0:
            # A handshake has the protocol version where requests have their xid.
            granted = ConnectResponse(0, SESSION_TIMEOUT_MS, 7, bytes(16), False)
            reply = framed(encoded(granted))
        else:
            reply = framed(_REPLY_HEADER.pack(xid, 1, 0))
        self._loop.call_soon(self._protocol.data_received, reply)

    def is_closing(self) -> bool:
        return not self._is_open

    def close(self) -> None:
        assert self._protocol is not None
        if self._is_open:
            self._is_open = False
            self._loop.call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()


def request(operation: int, record: Record) -> bytes:
    """Return the bytes of a request."""
    # The same xid each time: the server only echoes it.
    return framed(struct.pack(">ii", 1, operation) + encoded(record))


def encoded(record: Record) -> bytes:
    writer = BytesWriter()
    record.write(writer)
    return writer.getvalue()


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload
