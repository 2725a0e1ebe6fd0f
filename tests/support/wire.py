"""A small blocking ZooKeeper client on a plain socket, for tests.

It shows what travels and in which order: requests can be pipelined, replies and events come out of
`read` as they arrived, and every socket operation has a deadline. It keeps no watches, sends no
pings of its own and never reconnects.

    client = connect(server.address)
    client.call(requests.create("/a")).path
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from tests.support import requests
from tests.support.records import (
    INT,
    LONG,
    REPLY_HEADER,
    ConnectReply,
    Event,
    Op,
    Reader,
    Reply,
    Request,
)

Address = tuple[str, int]

DEADLINE_S = 60.0
SESSION_TIMEOUT_MS = 30_000
NO_PASSWORD = bytes(16)
NOTIFICATION_XID = -1

_HEADER = struct.Struct(">ii")


class ConnectionClosedError(Exception):
    """The server closed the connection where the test expected a frame."""


class Connection:
    """Frames over one socket."""

    def __init__(
        self,
        address: Address,
        deadline_s: float = DEADLINE_S,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.deadline_s = deadline_s
        self._socket = socket.create_connection(address, timeout=deadline_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            try:
                self._socket = tls.wrap_socket(self._socket, server_hostname=address[0])
            except BaseException:
                self._socket.close()
                raise
        self._buffer = bytearray()

    @property
    def port(self) -> int:
        """Our end's port."""
        number = self._socket.getsockname()[1]
        assert isinstance(number, int)
        return number

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Drop the connection without a word; the session lives on."""
        self._socket.close()

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_frame(self, payload: bytes) -> None:
        self._socket.sendall(INT.pack(len(payload)) + payload)

    def read_frame(self, deadline_s: float | None = None) -> bytes:
        """Return the next frame's payload; raises TimeoutError or ConnectionClosedError."""
        limit = time.monotonic() + (self.deadline_s if deadline_s is None else deadline_s)
        self._fill(4, limit)
        (length,) = INT.unpack_from(self._buffer)
        self._fill(4 + length, limit)
        payload = bytes(self._buffer[4 : 4 + length])
        del self._buffer[: 4 + length]
        return payload

    def wait_closed(self) -> bytes:
        """Wait until the server closes the connection; return what it still sent."""
        limit = time.monotonic() + self.deadline_s
        try:
            while True:
                self._fill(len(self._buffer) + 1, limit)
        except ConnectionClosedError:
            return bytes(self._buffer)

    def _fill(self, size: int, limit: float) -> None:
        while len(self._buffer) < size:
            left = limit - time.monotonic()
            if left <= 0:
                raise TimeoutError("nothing came from the server in time")
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(65536)
            except (ConnectionError, ssl.SSLError) as error:
                raise ConnectionClosedError from error
            if not data:
                raise ConnectionClosedError
            self._buffer += data


def connect_body(
    *,
    timeout_ms: int = SESSION_TIMEOUT_MS,
    session_id: int = 0,
    password: bytes | None = NO_PASSWORD,
    last_zxid: int = 0,
    read_only: bool | None = False,
    protocol: int = 0,
) -> bytes:
    """The client's half of the handshake; `read_only=None` is an old client without that byte."""
    body = INT.pack(protocol) + LONG.pack(last_zxid) + INT.pack(timeout_ms)
    body += LONG.pack(session_id) + requests.buffer(password)
    return body if read_only is None else body + requests.flag(read_only)


def decode_connect(payload: bytes) -> ConnectReply:
    reader = Reader(payload)
    protocol, timeout_ms, session_id = reader.integer(), reader.integer(), reader.long()
    password = reader.buffer()
    assert password is not None
    rest = reader.rest()
    read_only = bool(rest[0]) if rest else None
    assert len(rest) <= 1
    return ConnectReply(protocol, timeout_ms, session_id, password, read_only, len(payload))


class Client(Connection):
    """A session's connection: requests out, replies and events in."""

    def __init__(
        self,
        address: Address,
        body: bytes,
        deadline_s: float = DEADLINE_S,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(address, deadline_s, tls)
        self.handshake = ConnectReply(0, 0, 0, b"", None, 0)
        #: Events that came while `call` or `replies` waited; taken by `drain` and `next_event`.
        self.events: list[Event] = []
        self._pending: dict[int, list[int]] = {}
        self._next_xid = 1
        try:
            self.send_frame(body)
            self.handshake = decode_connect(self.read_frame())
        except BaseException:
            self.disconnect()
            raise

    @property
    def session_id(self) -> int:
        return self.handshake.session_id

    @property
    def password(self) -> bytes:
        return self.handshake.password

    def encode(self, request: Request) -> bytes:
        """Return the request's frame and remember its xid; the caller sends it."""
        xid = request.xid
        if xid is None:
            xid = self._next_xid
            self._next_xid += 1
        self._pending.setdefault(xid, []).append(request.op)
        payload = _HEADER.pack(xid, request.op) + request.body
        return INT.pack(len(payload)) + payload

    def send(self, *many: Request) -> None:
        """Send requests in one write, without waiting."""
        self.send_bytes(b"".join(self.encode(request) for request in many))

    def read(self, deadline_s: float | None = None) -> Reply | Event:
        """Return the next reply or event, in arrival order."""
        payload = self.read_frame(deadline_s)
        xid, zxid, err = REPLY_HEADER.unpack_from(payload)
        body = payload[REPLY_HEADER.size :]
        if xid == NOTIFICATION_XID:
            assert err == 0
            reader = Reader(body)
            event = Event(reader.integer(), state=reader.integer(), path=reader.string(), zxid=zxid)
            reader.end()
            return event
        waiting = self._pending.get(xid)
        assert waiting, f"a reply to nothing: xid {xid}"
        return Reply(xid, zxid, err, waiting.pop(0), body)

    def reply(self) -> Reply:
        """Return the next reply; events before it go to `events`."""
        while True:
            message = self.read()
            if isinstance(message, Reply):
                return message
            self.events.append(message)

    def call(self, request: Request) -> Reply:
        """Send one request and return its reply; events before it go to `events`."""
        self.send(request)
        return self.reply()

    def calls(self, *many: Request) -> list[Reply]:
        """Pipeline requests and return their replies, in arrival order."""
        self.send(*many)
        return [self.reply() for _ in many]

    def messages(self, *many: Request) -> list[Reply | Event]:
        """Pipeline requests; return all that arrives up to the last reply, in order."""
        self.send(*many)
        left = len(many)
        arrived: list[Reply | Event] = []
        while left:
            message = self.read()
            arrived.append(message)
            left -= isinstance(message, Reply)
        return arrived

    def drain(self) -> list[Event]:
        """Return every event sent so far: a later request is answered after them."""
        reply = self.call(requests.exists("/"))
        assert (reply.op, reply.err) == (Op.EXISTS, 0)
        events, self.events = self.events, []
        return events

    def next_event(self, deadline_s: float | None = None) -> Event:
        """Wait for an event while nothing is asked."""
        if self.events:
            return self.events.pop(0)
        message = self.read(deadline_s)
        assert isinstance(message, Event), f"{message} instead of an event"
        return message

    def close(self) -> None:
        """Close the session and wait until the server has closed the connection."""
        assert self.call(requests.close_session()).err == 0
        self.wait_closed()
        self.disconnect()


def connect(
    address: Address,
    *,
    timeout_ms: int = SESSION_TIMEOUT_MS,
    session_id: int = 0,
    password: bytes | None = NO_PASSWORD,
    last_zxid: int = 0,
    read_only: bool | None = False,
    deadline_s: float = DEADLINE_S,
    tls: ssl.SSLContext | None = None,
) -> Client:
    """Shake hands; the caller looks at `client.handshake` for the outcome."""
    body = connect_body(
        timeout_ms=timeout_ms,
        session_id=session_id,
        password=password,
        last_zxid=last_zxid,
        read_only=read_only,
    )
    return Client(address, body, deadline_s, tls)


def reattach(
    address: Address, client: Client, last_zxid: int = 0, *, read_only: bool = False
) -> Client:
    """Continue the session of another client on a new connection."""
    return connect(
        address,
        timeout_ms=client.handshake.timeout_ms,
        session_id=client.session_id,
        password=client.password,
        last_zxid=last_zxid,
        read_only=read_only,
    )


def four_letter_word(address: Address, word: str, deadline_s: float = DEADLINE_S) -> str:
    """Send a four-letter word and return all the server says before it closes."""
    with socket.create_connection(address, timeout=deadline_s) as connection:
        connection.sendall(word.encode())
        chunks: list[bytes] = []
        while chunk := connection.recv(65536):
            chunks.append(chunk)
    return b"".join(chunks).decode()


def events(*pairs: tuple[int, str]) -> list[Event]:
    """Shorthand for the events a test expects."""
    return [Event(kind, path) for kind, path in pairs]


def errors(replies: Iterable[Reply]) -> list[int]:
    return [reply.err for reply in replies]
