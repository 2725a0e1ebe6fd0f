"""One HTTP connection to the admin server.

A request is answered before the next one is looked at, and nothing is read meanwhile. A body is not
waited for, except that of a restore, which `paddock.server.admin.data_transfer` takes as it comes.
What the requests of a client may be, and what else is bounded, is said in
`paddock.server.admin.http`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from typing import IO, TYPE_CHECKING, Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

from paddock.server.admin.commands import Commands
from paddock.server.admin.data_commands import DATA_COMMANDS, RefusedError
from paddock.server.admin.data_transfer import METHODS, Transfer
from paddock.server.admin.origin import why_refused
from paddock.server.connections.paced_writer import PacedWriter

if TYPE_CHECKING:
    from paddock.server.admin.http import AdminServer

logger: Final = logging.getLogger(__name__)

_HEAD_BYTES_MAX: Final = 16 << 10
_ARGUMENTS_MAX: Final = 16

_JSON: Final = "application/json"
_HTML: Final = "text/html;charset=utf-8"
_TEXT: Final = "text/plain;charset=utf-8"

Headers = list[tuple[str, str]]


class AdminConnection(asyncio.Protocol):
    """One HTTP connection: a request is answered before the next one is looked at."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        # Whether only the head of an answer is wanted.
        self._is_head = False
        # The answer on its way.
        self._stream: PacedWriter | None = None
        # Ends a connection on which no whole request comes.
        self._deadline: asyncio.TimerHandle | None = None
        # Where the peer is, without its port.
        self.address = ""
        # What is done for this one that takes longer, and what it waits for more of a body with.
        self._task: asyncio.Task[None] | None = None
        self._more = asyncio.Event()
        # What is being sent, if it is a file.
        self._file: IO[bytes] | None = None
        # Whether all has been said, and what else comes is only taken so that the peer reads it.
        self._is_over = False

    @property
    def is_answering(self) -> bool:
        """Whether a request is being answered, and none waited for."""
        return self._stream is not None or self._task is not None

    @property
    def is_at_work(self) -> bool:
        """Whether all data are taken out or exchanged for this one."""
        return self._file is not None or self._task is not None

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
        self._close_file()
        if self._stream is not None:
            self._stream.stop()
        if self._task in self._server.tasks:
            assert self._task is not None
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        try:
            self._http.receive_data(data)
        except h11.RemoteProtocolError:
            # It had said that there was nothing more to come.
            self.abort()
            return
        if self._task is not None:
            # Looked at by the task, before more is read.
            self._pause_reading()
            self._more.set()
        elif self._stream is None:
            self._look()

    def eof_received(self) -> bool:
        if self._task is not None:
            self._http.receive_data(b"")
            self._more.set()
        # A peer that has said all may still wait for the answer.
        return self.is_answering

    def pause_writing(self) -> None:
        if self._stream is not None:
            self._stream.pause()

    def resume_writing(self) -> None:
        if self._stream is not None:
            self._stream.resume()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # What a transfer calls.

    def invite_body(self) -> None:
        """Tell a peer that asks first to go on and send its body."""
        if self._http.they_are_waiting_for_100_continue and self._transport is not None:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            self._transport.write(self._http.send(go_on) or b"")

    async def read_body(self) -> bytes | None:
        """Return the next piece of a body, None at its end.

        Raises TimeoutError if nothing comes, h11.RemoteProtocolError if the end is missing.
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
            async with asyncio.timeout(self._server.idle_timeout):
                await self._more.wait()

    def close_after_answer(self, file: IO[bytes]) -> None:
        """Have a file closed when the answer has been sent, or will not be."""
        self._file = file

    def closing(self) -> Headers:
        """Return the header that ends the connection, if the request has a body.

        Its end follows at once if it has none. A body means nothing here, and is not waited for.
        """
        has_body = not isinstance(self._http.next_event(), h11.EndOfMessage)
        return [("Connection", "close")] if has_body else []

    def send(
        self,
        status: int,
        kind: str,
        pieces: Iterator[bytes],
        extra: Headers,
        *,
        size: int | None = None,
        bytes_min: int = 1,
    ) -> None:
        """Answer the request, with a body of `size` bytes if that is known.

        Less than `bytes_min` taken in the idle timeout ends the connection.
        """
        self._task = None
        if self._transport is None:
            # The peer did not wait.
            self._close_file()
            return
        self._forget_deadline()
        self._server.begin_anew(self)
        # One answer at a time: what else the peer sends waits at its end.
        self._pause_reading()
        first, second = next(pieces, b""), next(pieces, None)
        headers = [
            ("Date", formatdate(self._server.wall_clock_ms() / 1000, usegmt=True)),
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            *extra,
        ]
        if size is not None or second is None:
            headers.append(("Content-Length", str(len(first) if size is None else size)))
        response = h11.Response(status_code=status, headers=headers)
        body = iter([]) if self._is_head else _all_pieces(first, second, pieces)
        encoded = self._encoded(response, body)
        self._stream = PacedWriter(
            self._transport,
            encoded,
            self._server.idle_timeout,
            self._done,
            bytes_min=bytes_min,
        )
        self._stream.start()

    # What comes.

    def _look(self) -> None:
        """Answer the next request, if it is there as a whole."""
        try:
            request = self._http.next_event()
            if isinstance(request, h11.Request):
                self._answer(request)
        except h11.RemoteProtocolError as error:
            self._refuse(error)

    def _answer(self, request: h11.Request) -> None:
        method, target = request.method.decode("ascii"), request.target.decode("ascii")
        self._is_head = method == "HEAD"
        url = self._server.url
        try:
            parts = urlsplit(target)
            # Of an argument that is given twice the first one counts, as upstream.
            pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=_ARGUMENTS_MAX)
        except ValueError:
            self._say(400, "This is no URL, or has too many arguments.")
            return
        path, arguments = unquote(parts.path), dict(reversed(pairs))
        name = path[len(url) + 1 :] if path.startswith(f"{url}/") else ""
        command = DATA_COMMANDS.get(name)
        changes = command is not None or self._commands().changes(name)
        refusal = why_refused(request.headers, self._server.hosts, changes=changes)
        methods = METHODS.get(command or "", ("GET", "HEAD"))
        if refusal is not None:
            logger.warning("the admin server has refused a request: %s", refusal)
            self._say(403, refusal)
        elif method not in methods:
            said = f"Served here: {' and '.join(methods)}."
            self._say(405, said, [("Allow", ", ".join(methods))])
        elif command is not None:
            self._begin(command, request, arguments)
        elif path in (url, f"{url}/"):
            self.send(200, _HTML, iter([self._links()]), self.closing())
        elif name:
            pieces = self._commands().run(name, arguments)
            self.send(200, _JSON, pieces, self.closing())
        else:
            self._say(404, "There is nothing here.")

    def _say(self, status: int, text: str, headers: Headers | None = None) -> None:
        """Answer with one line of text."""
        body = f"{text}\n".encode()
        self.send(status, _TEXT, iter([body]), [*(headers or []), *self.closing()])

    def _begin(self, command: str, request: h11.Request, arguments: Mapping[str, str]) -> None:
        """Run a command that is about all data, if the peer may."""
        transfer = Transfer(self._server, self, command)
        authorization = dict(request.headers).get(b"authorization")
        try:
            transfer.authorize(authorization, is_open=self._commands().is_open)
        except RefusedError as refusal:
            transfer.say_refused(refusal, self.closing())
            return
        self._forget_deadline()
        self._pause_reading()
        self._server.begin_anew(self)
        self._task = transfer.start(arguments)

    def _links(self) -> bytes:
        url = self._server.url
        names = sorted({*self._commands().names, *DATA_COMMANDS.values()})
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
        self._is_head = False
        status = error.error_status_hint
        self.send(status, _TEXT, iter([f"{error}\n".encode()]), [("Connection", "close")])

    def _encoded(self, response: h11.Response, body: Iterator[bytes]) -> Iterator[bytes]:
        yield self._http.send(response) or b""
        for piece in body:
            # An empty piece is a pause in which others get their turn.
            yield (self._http.send(h11.Data(piece)) or b"") if piece else b""
        yield self._http.send(h11.EndOfMessage()) or b""

    def _done(self) -> None:
        self._stream = None
        self._close_file()
        assert self._transport is not None
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self._expect_request()
            self._transport.resume_reading()
            # The next one may be there already.
            self._look()
        elif self._http.their_state is h11.SEND_BODY and self._transport.can_write_eof():
            # A peer that still sends would not hear the answer, if we closed now.
            self._is_over = True
            self._expect_request()
            self._transport.write_eof()
            self._transport.resume_reading()
        else:
            self._expect_request()
            self._transport.close()

    def _pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

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
