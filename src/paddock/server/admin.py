"""The admin server: the commands over HTTP, on a port of its own.

    GET /commands             a page of links
    GET /commands/monitor     {"version" : …, "command" : "monitor", "error" : null}

It is for people and tools near the server: plain HTTP, GET and HEAD only, and not for the pages of
other sites (`paddock.server.admin_origin`). Everything is bounded, so that it never disturbs the
service: the number of connections, the size of a request's head, the time in which a request must
have come as a whole, and what waits to be sent.

When there are as many connections as allowed, a new one takes the place of another: of the address
that has the most connections the one that has waited longest for a request, or, if all of that
address are being answered, the one that was answered first. So neither slow requests nor slow
readers keep others out, and a request that comes in one piece has its answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

from paddock.server.admin_origin import AdminHosts, why_refused
from paddock.server.commands import Commands
from paddock.server.ports import address_of, explained, start_listening
from paddock.server.stream import Stream

logger: Final = logging.getLogger(__name__)

_CONNECTIONS_MAX: Final = 100
_HEAD_BYTES_MAX: Final = 16 << 10
_ARGUMENTS_MAX: Final = 16

# How what is said of its port begins.
_WHO: Final = "the admin server"

_JSON: Final = "application/json"
_HTML: Final = "text/html;charset=utf-8"
_TEXT: Final = "text/plain;charset=utf-8"


class AdminServer:
    """Has a port once `bind` has been called, and listens for HTTP once `start` has been."""

    def __init__(
        self,
        url: str,
        idle_timeout: float,
        wall_clock_ms: Callable[[], int],
        hosts: AdminHosts,
    ) -> None:
        # Where the commands are, without a slash at the end.
        self.url = url.rstrip("/")
        self.hosts = hosts
        # Seconds in which a whole request must come, and something of an answer be taken.
        self.idle_timeout = idle_timeout
        # Known from the start on, before anybody can connect.
        self.commands: Commands | None = None
        self.wall_clock_ms = wall_clock_ms
        # In the order in which each began to wait for a request, or to be answered.
        self.connections: dict[AdminConnection, None] = {}
        self._listener: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        assert self._listener is not None, "the admin server has no port"
        return address_of(self._listener.sockets)

    async def bind(self, host: str, port: int) -> None:
        """Take the port, without accepting anybody yet. Raises PortError."""
        loop = asyncio.get_running_loop()
        with explained(host, port, _WHO):
            self._listener = await loop.create_server(
                lambda: AdminConnection(self), host, port, start_serving=False
            )

    async def start(self, commands: Commands) -> None:
        """Answer with these commands from now on. Raises PortError."""
        assert self._listener is not None, "the admin server has no port"
        self.commands = commands
        with explained(*self.address, _WHO):
            await start_listening(self._listener)
        logger.info("admin server on http://%s:%d%s", *self.address, self.url)

    def admit(self, new: AdminConnection) -> None:
        """Take one more connection in, and make room for it."""
        if len(self.connections) >= _CONNECTIONS_MAX:
            counts = Counter(one.address for one in self.connections)
            (busiest, _), *_ = counts.most_common(1)
            mine = [one for one in self.connections if one.address == busiest]
            victim = next((one for one in mine if not one.is_answering), mine[0])
            del self.connections[victim]
            victim.abort()
        self.connections[new] = None

    def begin_anew(self, connection: AdminConnection) -> None:
        """Count a connection as the one that began to wait, or to be answered, last."""
        if connection in self.connections:
            del self.connections[connection]
            self.connections[connection] = None

    def close(self) -> None:
        """Close the port and every connection."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in list(self.connections):
            connection.abort()


class AdminConnection(asyncio.Protocol):
    """One HTTP connection: a request is answered before the next one is looked at."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        # The answer on its way.
        self._stream: Stream | None = None
        # Ends a connection on which no whole request comes.
        self._deadline: asyncio.TimerHandle | None = None
        # Where the peer is, without its port.
        self.address = ""

    @property
    def is_answering(self) -> bool:
        """Whether a request is being answered, and none waited for."""
        return self._stream is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        self._server.admit(self)
        self._expect_request()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._server.connections.pop(self, None)
        self._forget_deadline()
        if self._stream is not None:
            self._stream.stop()

    def data_received(self, data: bytes) -> None:
        try:
            self._http.receive_data(data)
        except h11.RemoteProtocolError:
            # It had said that there was nothing more to come.
            self.abort()
            return
        if self._stream is None:
            self._look()

    def eof_received(self) -> bool:
        # Whoever has said all may still wait for the answer.
        return self._stream is not None

    def pause_writing(self) -> None:
        if self._stream is not None:
            self._stream.pause()

    def resume_writing(self) -> None:
        if self._stream is not None:
            self._stream.resume()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _look(self) -> None:
        """Answer the next request, if it is there as a whole."""
        try:
            request = self._http.next_event()
            if isinstance(request, h11.Request):
                # Without a body, its end follows at once. With one we answer all the same, and
                # then close: nobody waits for what means nothing here.
                has_body = not isinstance(self._http.next_event(), h11.EndOfMessage)
                self._answer(request, has_body)
        except h11.RemoteProtocolError as error:
            self._refuse(error)

    def _answer(self, request: h11.Request, has_body: bool) -> None:
        method, target = request.method.decode("ascii"), request.target.decode("ascii")
        url = self._server.url
        extra = [("Connection", "close")] if has_body else []
        try:
            parts = urlsplit(target)
        except ValueError:
            self._send(400, _TEXT, iter([b"This is no URL.\n"]), extra)
            return
        path, query = unquote(parts.path), parts.query
        changes = self._commands().changes(path.removeprefix(f"{url}/"))
        refusal = why_refused(request.headers, self._server.hosts, changes=changes)
        if refusal is not None:
            self._send(403, _TEXT, iter([f"{refusal}\n".encode()]), extra)
        elif method not in ("GET", "HEAD"):
            extra.append(("Allow", "GET, HEAD"))
            self._send(405, _TEXT, iter([b"Only GET and HEAD are served here.\n"]), extra)
        elif path in (url, f"{url}/"):
            self._send(200, _HTML, iter([self._links()]), extra)
        elif path.startswith(f"{url}/"):
            try:
                pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_ARGUMENTS_MAX)
            except ValueError:
                self._send(400, _TEXT, iter([b"Too many arguments.\n"]), extra)
                return
            # Of an argument that is given twice the first one counts, as upstream.
            pieces = self._commands().run(path[len(url) + 1 :], dict(reversed(pairs)))
            self._send(200, _JSON, pieces, extra, is_head=method == "HEAD")
        else:
            self._send(404, _TEXT, iter([b"There is nothing here.\n"]), extra)

    def _links(self) -> bytes:
        url = self._server.url
        names = self._commands().names
        return "".join(f'<a href="{url}/{one}">{one}</a>\n<br/>\n' for one in names).encode()

    def _commands(self) -> Commands:
        commands = self._server.commands
        assert commands is not None, "the admin server has not been started"
        return commands

    def _refuse(self, error: h11.RemoteProtocolError) -> None:
        """Answer what is no HTTP, or too much of it, and close."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.abort()
            return
        status = error.error_status_hint
        self._send(status, _TEXT, iter([f"{error}\n".encode()]), [("Connection", "close")])

    def _send(
        self,
        status: int,
        kind: str,
        pieces: Iterator[bytes],
        extra: list[tuple[str, str]],
        *,
        is_head: bool = False,
    ) -> None:
        assert self._transport is not None
        self._forget_deadline()
        self._server.begin_anew(self)
        # One answer at a time: what else the peer sends waits at its end.
        self._transport.pause_reading()
        first, second = next(pieces, b""), next(pieces, None)
        headers = [
            ("Date", formatdate(self._server.wall_clock_ms() / 1000, usegmt=True)),
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            *extra,
        ]
        if second is None:
            headers.append(("Content-Length", str(len(first))))
        response = h11.Response(status_code=status, headers=headers)
        body = iter([]) if is_head else _all_pieces(first, second, pieces)
        encoded = self._encoded(response, body)
        self._stream = Stream(self._transport, encoded, self._server.idle_timeout, self._done)
        self._stream.start()

    def _encoded(self, response: h11.Response, body: Iterator[bytes]) -> Iterator[bytes]:
        yield self._http.send(response) or b""
        for piece in body:
            # An empty piece is a pause in which others get their turn.
            yield (self._http.send(h11.Data(piece)) or b"") if piece else b""
        yield self._http.send(h11.EndOfMessage()) or b""

    def _done(self) -> None:
        self._stream = None
        assert self._transport is not None
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self._expect_request()
            self._transport.resume_reading()
            # The next one may be there already.
            self._look()
        else:
            self._expect_request()
            self._transport.close()

    def _expect_request(self) -> None:
        """Start the deadline for a whole request: bytes now and then do not move it."""
        self._forget_deadline()
        self._server.begin_anew(self)
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._server.idle_timeout, self.abort)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _all_pieces(first: bytes, second: bytes | None, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    if second is not None:
        yield second
        yield from rest
