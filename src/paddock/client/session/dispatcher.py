"""Dispatches requests to the connection of a session, and replies to their requests.

A single request is written at once. Requests that come while replies are pending wait for the end
of this pass of the event loop and are sent in one write. Replies come in the order of the requests
(`in_flight`); pings, events and the like are handed to the session.

A request that comes while the session may be over, and no server is connected, waits for one for a
tenth of the session timeout, a second at most, and then fails. So a loop that repeats what failed
asks a few times per second, however simple it is, and an outage is told soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from paddock.client.requests.in_flight import InFlight
from paddock.client.requests.pending_request import Failure, PendingRequest
from paddock.client.session.clock import SessionClock
from paddock.client.session.round_trips import RoundTripHistogram
from paddock.client.session.transport import Transport
from paddock.errors import (
    OK,
    SESSION_EXPIRED,
    ConnectionLostError,
    RemoteProtocolError,
    UsageError,
)
from paddock.protocol.changes import WAKE_UP_XID
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import (
    AUTH_XID,
    NOTIFICATION_XID,
    PING_XID,
    SET_WATCHES_XID,
    WatcherEvent,
)

# The header of a reply: the number of the request, the zxid and the result.
_ZXID: Final = 4
_CODE: Final = 12
_HEADER_BYTES: Final = 16
# Never seen by users: a request before `start` raises UsageError.
_NOT_STARTED: Final = Failure(ConnectionLostError)
# So many requests in a write are no crowd.
_FEW: Final = 8
# How long a request waits for a server while the session may be over: a part of the session
# timeout, and seconds.
_PAUSE_PART: Final = 0.1
_PAUSE_SECONDS_MAX: Final = 1.0


class Dispatcher:
    """The requests of one session and their replies, over all its connections."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: SessionClock,
        in_flight: InFlight,
        *,
        on_event: Callable[[WatcherEvent, int], None],
        on_watches_set: Callable[[], None],
        on_auth_reply: Callable[[int], None],
        on_expired: Callable[[Transport], None],
        on_recovered: Callable[[], None],
        leave: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._in_flight = in_flight
        # Called with an event and the zxid of its header; when watches were set again; with the
        # result of our credentials; when the session has expired; when it is not overdue any more;
        # with the reason to leave a server.
        self._on_event = on_event
        self._on_watches_set = on_watches_set
        self._on_word = on_auth_reply
        self._on_expired = on_expired
        self._on_recovered = on_recovered
        self._leave = leave
        # Called with the number of a change feed for which there is something.
        self.on_wake_up: Callable[[int], None] | None = None
        # The connection, while there is one.
        self.transport: Transport | None = None
        # Why a new request fails; None if it does not. Unless the session has ended, a patient one
        # waits, and any other fails after a pause.
        self.refusal: Failure | None = _NOT_STARTED
        self.is_ended = False
        self.round_trips = RoundTripHistogram()
        # The last zxid in any reply. Every event of a transaction up to it has come.
        self.last_zxid = 0
        # The last one in any event: others of the same transaction may not have come.
        self._told_zxid = 0
        # One for all replies, which are read one after the other.
        self._reader = Reader(b"")
        self._flush_is_due = False
        # Whether requests wait for the end of a batch.
        self._is_batching = False
        # Whether the last write had many requests: then more of them are worth waiting for.
        self._sends_bursts = False

    @property
    def seen_zxid(self) -> int:
        """The newest zxid that we know of; a server that has not seen it is of no use."""
        return max(self.last_zxid, self._told_zxid)

    def see(self, zxid: int) -> None:
        """Note a zxid of the service; events up to it may not have come."""
        if zxid > self._told_zxid:
            self._told_zxid = zxid

    def check_started(self) -> None:
        """Raise UsageError if the session was not started."""
        if self.refusal is _NOT_STARTED:
            raise UsageError("the client is not open: enter its scope, or request `start`, before")

    def attach(self, transport: Transport) -> None:
        """Use a connection; pending requests are written with the next `flush`."""
        self.transport = transport
        self.refusal = None
        transport.on_frames = self._receive
        transport.on_writable = self.flush

    # Requests.

    def submit(self, request: PendingRequest[Any]) -> None:
        """Queue a request; its future will be done, whatever happens."""
        refusal = self.refusal
        in_flight = self._in_flight
        if refusal is None:
            in_flight.unsent.append(request)
        elif self.is_ended or refusal is _NOT_STARTED:
            self.check_started()
            # Not at once: awaiting a future that is done does not yield, so a loop of failing
            # requests would block the event loop.
            self._loop.call_soon(in_flight.fail_one, request, refusal)
            return
        else:
            in_flight.wait(request)
            if not request.is_patient:
                pause = min(self._clock.timeout * _PAUSE_PART, _PAUSE_SECONDS_MAX)
                self._loop.call_later(pause, self._end_pause, request)
        if self._flush_is_due:
            return
        if self._sends_bursts or in_flight.sent:
            self._schedule_flush()
        elif not self._is_batching:
            # It comes alone, and need not wait for a pass of the loop that brings nothing else.
            # What follows in this pass is written in the next, so that is one write in each.
            self.flush()

    def _end_pause(self, request: PendingRequest[Any]) -> None:
        """Fail a request, unless a server has come meanwhile."""
        if self.refusal is not None and not request.xid:
            self._in_flight.fail_one(request, self.refusal)

    def begin_batch(self) -> bool:
        """Begin a batch; return False within another one."""
        begins = not self._is_batching
        self._is_batching = True
        return begins

    def end_batch(self) -> None:
        """Write the requests of the batch, as one."""
        self._is_batching = False
        if self._in_flight.unsent and not self._flush_is_due:
            self.flush()

    def write_everything(self) -> None:
        """Write all pending requests, if there is a connection."""
        transport = self.transport
        if transport is not None:
            self._in_flight.open_window(True)
            while transport.is_open and self._in_flight.unsent:
                self._write(transport)
            self._in_flight.open_window(False)

    def flush(self) -> None:
        """Write once; the rest follows in the next pass of the loop."""
        self._flush_is_due = False
        transport = self.transport
        if transport is None or not transport.is_writable:
            return
        self._write(transport)
        in_flight = self._in_flight
        if in_flight.unsent and not in_flight.is_held and transport.is_writable:
            self._schedule_flush()

    def _schedule_flush(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self.flush)

    def _write(self, transport: Transport) -> None:
        now = self._loop.time()
        in_flight = self._in_flight
        before = len(in_flight.sent)
        requests = in_flight.take(now)
        if requests:
            self._sends_bursts = len(in_flight.sent) - before > _FEW
            self._clock.sent_at = now
            transport.write(requests)

    # Replies.

    def _receive(self, frames: bytes, count: int) -> None:
        clock = self._clock
        clock.heard_at = self._loop.time()
        try:
            position: i64 = 0
            for _ in range(count):
                length: int = read_i32_be(frames, position)
                start = position + 4
                position = start + length
                self._take(frames, start, position)
        except (DecodeError, IndexError, RemoteProtocolError) as error:
            self._leave(f"the server sent what it should not: {error}")
            return
        if self._in_flight.is_held and not self._flush_is_due:
            # Replies have made room for more writes.
            self.flush()
        if clock.is_overdue and self.transport is not None and clock.recover():
            self._on_recovered()

    def _take(self, data: bytes, start: i64, end: i64) -> None:
        """Take the reply that `data` has from `start` to `end`."""
        body = start + _HEADER_BYTES
        if body > end:
            raise RemoteProtocolError("a frame without a header")
        xid: int = read_i32_be(data, start)
        code: int = read_i32_be(data, start + _CODE)
        reader = self._reader
        reader.data = data
        reader.position = body
        reader.end = end
        if xid > 0:
            zxid: int = read_i64_be(data, start + _ZXID)
            self._answer(xid, zxid, code)
        elif xid == NOTIFICATION_XID:
            told: int = read_i64_be(data, start + _ZXID)
            self.see(told)
            self._on_event(WatcherEvent.read(reader), told)
        elif xid == PING_XID:
            # A connection may outlive its session, if another client has closed it just while we
            # resumed it. The next handshake tells.
            if code != OK:
                raise RemoteProtocolError(f"an answer to a ping with the error {code}")
            if not self._clock.answer_ping():
                raise RemoteProtocolError("an answer to a ping that was not sent")
        elif xid == AUTH_XID:
            self._on_word(code)
        elif xid == SET_WATCHES_XID:
            self._on_watches_set()
        elif xid == WAKE_UP_XID and self.on_wake_up is not None:
            self.see(read_i64_be(data, start + _ZXID))
            self.on_wake_up(reader.int32())
        else:
            raise RemoteProtocolError(f"a reply with the number {xid}")

    def _answer(self, xid: int, zxid: int, code: int) -> None:
        in_flight = self._in_flight
        sent = in_flight.sent
        if not sent or sent[0].xid != xid:
            raise RemoteProtocolError(f"a reply to request {xid}, which is not the next")
        if zxid > self.last_zxid:
            self.last_zxid = zxid
        request = sent.popleft()
        if not request.is_repeatable:
            in_flight.writes -= 1
        clock = self._clock
        if request.sent_at > clock.confirmed_at:
            # The first reply to what was written then.
            clock.confirmed_at = request.sent_at
            self.round_trips.add(clock.heard_at - request.sent_at)
        refused = request.answer(code, self._reader)
        if refused is not None:
            in_flight.counts.refuse(refused)
        if code == SESSION_EXPIRED and self.transport is not None:
            # A service may say so before it ends the connection.
            self._on_expired(self.transport)


class WriteBatch:
    """A scope, without an await in it, whose requests are written as one at its end."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._is_outermost = False

    def __enter__(self) -> None:
        self._is_outermost = self._dispatcher.begin_batch()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if self._is_outermost:
            self._dispatcher.end_batch()
