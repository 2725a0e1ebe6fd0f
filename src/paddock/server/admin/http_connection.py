"""HTTP connections of the admin server, and their limits.

A request is answered before the next one is read. A request body is not waited for, except by
`read_body`. Limits: the number of connections, the size of a request's head, the time in which a
request must arrive, and how much waits to be sent.

At the limit a new connection replaces another one: of the address with the most connections, the
one that has waited longest for a request, or, if all are being answered, the one whose answer began
first. A connection for which all data are sent or replaced stays.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from email.utils import formatdate
from itertools import chain
from typing import IO, Final, TypeAlias, cast

import h11

from paddock.server.admin.rate_limits import Tasks
from paddock.server.connections.paced_writer import PacedWriter

JSON: Final = "application/json"
HTML: Final = "text/html;charset=utf-8"
TEXT: Final = "text/plain;charset=utf-8"
BYTES: Final = "application/octet-stream"

_CONNECTIONS_MAX: Final = 100
_HEAD_BYTES_MAX: Final = 16 << 10

Headers: TypeAlias = list[tuple[str, str]]
CLOSE: Final = ("Connection", "close")


class ConnectionPool:
    """The connections of one admin server, and the tasks that work for them."""

    def __init__(self, idle_timeout: float, wall_clock_ms: Callable[[], int]) -> None:
        # Seconds in which a whole request must arrive, and part of an answer be read.
        self.idle_timeout = idle_timeout
        self.wall_clock_ms = wall_clock_ms
        # In the order in which each began to wait for a request, or to be answered.
        self.connections: dict[HttpConnection, None] = {}
        self.tasks = Tasks()

    def admit(self, new: HttpConnection) -> None:
        """Add a connection; at the limit, abort another one."""
        if len(self.connections) >= _CONNECTIONS_MAX:
            (busiest, _), *_ = Counter(one.address for one in self.connections).most_common(1)
            candidates = [one for one in self.connections if one.address == busiest]
            candidates = [one for one in candidates if not one.is_at_work] or candidates
            victim = next((one for one in candidates if not one.is_answering), candidates[0])
            del self.connections[victim]
            victim.abort()
        self.connections[new] = None

    def renew(self, connection: HttpConnection) -> None:
        """Move a connection to the end of the order."""
        if connection in self.connections:
            del self.connections[connection]
            self.connections[connection] = None

    async def close(self) -> None:
        for connection in list(self.connections):
            connection.abort()
        await self.tasks.end()


class HttpConnection(asyncio.Protocol):
    """One HTTP connection; `handle` answers a request, now or by a task that it attaches."""

    def __init__(
        self, pool: ConnectionPool, handle: Callable[[HttpConnection, h11.Request], None]
    ) -> None:
        self._pool = pool
        self._handle = handle
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        # Whether the request was HEAD: the answer has no body.
        self._is_head = False
        # The answer being sent.
        self._writer: PacedWriter | None = None
        # Aborts a connection on which no whole request arrives.
        self._deadline: asyncio.TimerHandle | None = None
        # The peer's address, without its port.
        self.address = ""
        # How its requests come: http or https.
        self.scheme = "http"
        # The task that will answer, and what wakes it when more of the body arrives.
        self._task: asyncio.Task[None] | None = None
        self._more = asyncio.Event()
        # The file that the answer is read from; closed when it has been sent, or cannot be.
        self.file: IO[bytes] | None = None
        # Whether the last answer was sent, and what arrives is discarded.
        self._is_draining = False

    @property
    def is_answering(self) -> bool:
        return self._writer is not None or self._task is not None

    @property
    def is_at_work(self) -> bool:
        """Whether all data are being sent or replaced."""
        return self.file is not None or self._task is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        if transport.get_extra_info("ssl_object") is not None:
            self.scheme = "https"
        self._pool.admit(self)
        self._start_deadline()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._pool.connections.pop(self, None)
        self._cancel_deadline()
        self._close_file()
        if self._writer is not None:
            self._writer.stop()
        if self._task is not None and self._task in self._pool.tasks:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_draining:
            return
        try:
            self._http.receive_data(data)
        except h11.RemoteProtocolError:
            # Data after the end of the stream.
            self.abort()
            return
        if self._task is not None:
            # The task reads it before more is received.
            self._pause_reading()
            self._more.set()
        elif self._writer is None:
            self._next_request()

    def eof_received(self) -> bool:
        if self._task is not None:
            self._http.receive_data(b"")
            self._more.set()
        # The peer may still wait for the answer.
        return self.is_answering

    def pause_writing(self) -> None:
        if self._writer is not None:
            self._writer.pause()

    def resume_writing(self) -> None:
        if self._writer is not None:
            self._writer.resume()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def attach(self, task: asyncio.Task[None]) -> None:
        """Let a task answer the request."""
        self._cancel_deadline()
        self._pause_reading()
        self._pool.renew(self)
        self._task = task

    def send_continue(self) -> None:
        """Ask for the body, if the peer waits to be asked."""
        if self._http.they_are_waiting_for_100_continue and self._transport is not None:
            response = h11.InformationalResponse(status_code=100, headers=[])
            self._transport.write(self._http.send(response) or b"")

    async def read_body(self) -> bytes | None:
        """Return the next piece of the body, None at its end.

        Raises TimeoutError if nothing arrives, h11.RemoteProtocolError if the end is missing.
        """
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if event is not h11.NEED_DATA:
                return None
            self._more.clear()
            if self._transport is not None:
                self._transport.resume_reading()
            async with asyncio.timeout(self._pool.idle_timeout):
                await self._more.wait()

    def close_headers(self) -> Headers:
        """Return the header that closes the connection, if the request has a body.

        Without a body, the end of the request follows at once. A body is not waited for.
        """
        return [] if isinstance(self._http.next_event(), h11.EndOfMessage) else [CLOSE]

    def respond_text(self, status: int, text: str, headers: Headers | None = None) -> None:
        """Answer with one line of text."""
        headers = [*(headers or []), *self.close_headers()]
        self.respond(status, TEXT, iter([f"{text}\n".encode()]), headers)

    def respond(
        self,
        status: int,
        content_type: str,
        pieces: Iterator[bytes],
        headers: Headers | None = None,
        *,
        size: int | None = None,
        bytes_min: int = 1,
    ) -> None:
        """Answer the request, with a body of `size` bytes if that is known.

        Without `headers`, the connection closes if the request has a body. A peer that reads less
        than `bytes_min` in the idle timeout is disconnected.
        """
        self._task = None
        if self._transport is None:
            self._close_file()
            return
        extra = self.close_headers() if headers is None else headers
        self._cancel_deadline()
        self._pool.renew(self)
        # One answer at a time: backpressure holds the next requests at the peer.
        self._pause_reading()
        first, second = next(pieces, b""), next(pieces, None)
        if size is None and second is None:
            size = len(first)
        if size is not None:
            extra = [*extra, ("Content-Length", str(size))]
        headers = [
            ("Date", formatdate(self._pool.wall_clock_ms() / 1000, usegmt=True)),
            ("Content-Type", content_type),
            ("Cache-Control", "no-store"),
            *extra,
        ]
        body = chain([first], [] if second is None else [second], pieces)
        self._writer = PacedWriter(
            self._transport,
            self._encoded(
                h11.Response(status_code=status, headers=headers),
                iter([]) if self._is_head else body,
            ),
            self._pool.idle_timeout,
            self._done,
            bytes_min=bytes_min,
        )
        self._writer.start()

    def _next_request(self) -> None:
        """Answer the next request, if it has arrived."""
        try:
            request = self._http.next_event()
            if isinstance(request, h11.Request):
                self._is_head = request.method == b"HEAD"
                self._handle(self, request)
        except h11.RemoteProtocolError as error:
            if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                self.abort()
                return
            self._is_head = False
            self.respond(error.error_status_hint, TEXT, iter([f"{error}\n".encode()]), [CLOSE])

    def _encoded(self, response: h11.Response, body: Iterator[bytes]) -> Iterator[bytes]:
        yield self._http.send(response) or b""
        for piece in body:
            # An empty piece only lets other callbacks run.
            yield (self._http.send(h11.Data(piece)) or b"") if piece else b""
        yield self._http.send(h11.EndOfMessage()) or b""

    def _done(self) -> None:
        self._writer = None
        self._close_file()
        assert self._transport is not None
        self._start_deadline()
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self._transport.resume_reading()
            # The next request may have arrived already.
            self._next_request()
        elif self._http.their_state is h11.SEND_BODY and self._transport.can_write_eof():
            # A peer that still sends would not get the answer, if we closed now.
            self._is_draining = True
            self._transport.write_eof()
            self._transport.resume_reading()
        else:
            self._transport.close()

    def _pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _close_file(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    def _start_deadline(self) -> None:
        """Start the timeout for a whole request; single bytes do not extend it."""
        self._cancel_deadline()
        self._pool.renew(self)
        self._deadline = asyncio.get_running_loop().call_later(self._pool.idle_timeout, self.abort)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
