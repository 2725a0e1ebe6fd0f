"""The messages of a connection, decoded in passing: requests, their replies, and events.

Bytes in, messages out; nothing here knows of sockets. A reply has no operation on the wire, so a
conversation remembers the requests and finds the one that it answers by its xid. The handshake
counts as a request, too: `create_session`.
"""

from __future__ import annotations

import itertools
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from paddock.errors import OK, SESSION_EXPIRED, error_from_code
from paddock.protocol import events, opcodes, operations
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import (
    NOTIFICATION_XID,
    ConnectRequest,
    ConnectResponse,
    MultiHeader,
    ReplyHeader,
    RequestHeader,
    WatcherEvent,
)

_WITHOUT_PATH: Final = frozenset(
    {row.number for row in operations.TABLE if not hasattr(row.request, "path")}
)
_EVENTS: Final = {
    events.NODE_CREATED: "created",
    events.NODE_DELETED: "deleted",
    events.NODE_DATA_CHANGED: "changed",
    events.NODE_CHILDREN_CHANGED: "children changed",
}


@dataclass(frozen=True, slots=True, eq=False)
class SeenRequest:
    """A request of a client."""

    # Counted over all connections, from 1. Pings have 0: how many there are depends on time.
    number: int
    # Which connection it came on, counted from 1.
    connection: int
    xid: int
    operation: int
    # The path; several in a transaction; none where a request has none or cannot be understood.
    paths: tuple[str, ...]
    # The frame without its length.
    payload: bytes = field(repr=False)
    # The session that its connection has; in a handshake the one that is asked for, or 0.
    session_id: int = 0

    @property
    def name(self) -> str:
        """The operation as a word, such as `create`."""
        return operations.name_of(self.operation)

    def __str__(self) -> str:
        return " ".join([f"request {self.number}:", self.name, *self.paths])


@dataclass(frozen=True, slots=True, eq=False)
class SeenReply:
    """The answer of a server to a request."""

    request: SeenRequest
    zxid: int
    error: int
    # The frame without its length.
    payload: bytes = field(repr=False)

    def __str__(self) -> str:
        outcome = "done"
        if self.error != OK:
            path = self.request.paths[0] if len(self.request.paths) == 1 else None
            outcome = str(error_from_code(self.error, self.request.name, path))
        elif self.request.operation == opcodes.CREATE_SESSION:
            outcome = f"session 0x{ConnectResponse.read(Reader(self.payload)).session_id:x}"
        return f"reply to {self.request.number}: {outcome}"


@dataclass(frozen=True, slots=True, eq=False)
class SeenEvent:
    """An event of a client's watch."""

    connection: int
    kind: int
    path: str

    def __str__(self) -> str:
        return f"event: {_EVENTS.get(self.kind, self.kind)} {self.path}".rstrip()


Seen = SeenRequest | SeenReply | SeenEvent


class History:
    """The messages of all connections, in order; or the last of them."""

    def __init__(self, messages_max: int | None = None) -> None:
        self.messages: deque[Seen] = deque(maxlen=messages_max)
        # The passwords of all sessions that were granted.
        self.sessions: dict[int, bytes] = {}
        self.numbers = itertools.count(1)


class Conversation:
    """One connection."""

    def __init__(self, connection: int, history: History) -> None:
        self._connection = connection
        self._history = history
        # Requests without a reply, by xid; pings share one.
        self._open: dict[int, deque[SeenRequest]] = {}
        # The handshake, as long as it has no answer.
        self._handshake: SeenRequest | None = None
        self._has_begun = False
        # The session that was asked for, then the one that was granted; 0 while there is none.
        self.session_id = 0

    def is_answered_but(self, request: SeenRequest) -> bool:
        """Return whether every other request has its reply."""
        if self._handshake is not None:
            return self._handshake is request
        return all(one is request for waiting in self._open.values() for one in waiting)

    def request(self, payload: bytes) -> SeenRequest:
        """Take a frame from the client."""
        if not self._has_begun:
            self._has_begun = True
            with suppress(DecodeError):
                self.session_id = ConnectRequest.read(Reader(payload)).session_id
            self._handshake = self._seen(0, opcodes.CREATE_SESSION, (), payload)
            return self._handshake
        reader = Reader(payload)
        try:
            header = RequestHeader.read(reader)
        except DecodeError:
            return self._seen(0, opcodes.ERROR, (), payload)
        request = self._seen(
            header.xid, header.operation, _paths(header.operation, reader), payload
        )
        self._open.setdefault(header.xid, deque()).append(request)
        return request

    def answer(self, payload: bytes) -> SeenReply | SeenEvent | None:
        """Take a frame from the server; None if it answers nothing that was asked."""
        reader = Reader(payload)
        try:
            message = self._answer(reader)
        except DecodeError:
            return None
        if message is not None:
            self._history.messages.append(message)
        return message

    def _answer(self, reader: Reader) -> SeenReply | SeenEvent | None:
        payload = reader.data
        if self._handshake is not None:
            request, self._handshake = self._handshake, None
            granted = ConnectResponse.read(reader)
            self.session_id = granted.session_id
            if granted.session_id:
                self._history.sessions[granted.session_id] = granted.password or b""
            return SeenReply(request, 0, OK if granted.session_id else SESSION_EXPIRED, payload)
        header = ReplyHeader.read(reader)
        if header.xid == NOTIFICATION_XID:
            event = WatcherEvent.read(reader)
            return SeenEvent(self._connection, event.kind, event.path.decode(errors="replace"))
        waiting = self._open.get(header.xid)
        if not waiting:
            return None
        request = waiting.popleft()
        if not waiting:
            del self._open[header.xid]
        return SeenReply(request, header.zxid, header.error, payload)

    def _seen(
        self, xid: int, operation: int, paths: tuple[str, ...], payload: bytes
    ) -> SeenRequest:
        number = 0 if operation == opcodes.PING else next(self._history.numbers)
        request = SeenRequest(
            number, self._connection, xid, operation, paths, payload, self.session_id
        )
        self._history.messages.append(request)
        return request


def _paths(operation: int, reader: Reader) -> tuple[str, ...]:
    paths: list[bytes | None] = []
    # The server will say what is wrong with one that cannot be decoded.
    with suppress(DecodeError):
        if operation in (opcodes.MULTI, opcodes.MULTI_READ):
            while not (header := MultiHeader.read(reader)).done:
                row = operations.BY_NUMBER.get(header.operation)
                if row is None or row.request is None:
                    break
                paths.append(getattr(row.request.read(reader), "path", None))
        elif operation not in _WITHOUT_PATH:
            paths.append(reader.buffer())
    return tuple(path.decode(errors="replace") for path in paths if path is not None)
