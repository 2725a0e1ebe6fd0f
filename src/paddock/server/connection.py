"""One client's connection: frames in, requests in order, replies in the same order.

A whole read is handled at once and answered with one write. A query is answered on the spot,
from memory, unless writes of the same connection are under way: then it waits in line behind them,
and is answered right after the write before it was applied and before the one after it is. The
same line holds whatever is refused without the log, so that replies never overtake each other.
Pings alone are answered at once.

A connection goes through stages, and only forward:

    NEW        nothing is known of the peer; its first four bytes may be a four-letter word
    ATTACHING  the session asked for is being created or attached; frames are held
    OPEN       requests are served
    CLOSING    the end of the session has been proposed; frames are held
    CLOSED     nothing counts any more
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, cast

from librt.strings import BytesWriter, read_i32_be, write_i32_be, write_i64_be

from paddock.errors import AUTH_FAILED, OK, SESSION_EXPIRED, SESSION_MOVED, UNIMPLEMENTED
from paddock.protocol import opcodes
from paddock.protocol.framing import FrameBuffer
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import (
    PING_XID,
    AuthPacket,
    ConnectRequest,
    SaslToken,
)
from paddock.server import handshake
from paddock.server.expiry import Client, Liveness
from paddock.server.service import Service
from paddock.state.access import Identities
from paddock.state.entry import Entry
from paddock.state.machine import Outcome

logger: Final = logging.getLogger(__name__)

NEW: Final = 0
ATTACHING: Final = 1
OPEN: Final = 2
CLOSING: Final = 3
CLOSED: Final = 4

# How many requests of one connection may be in line, and how many bytes of them, before we stop
# reading from it for a while.
_LINE_LENGTH_MAX: Final = 10_000
_LINE_BYTES_MAX: Final = 16 << 20
# How much may gather before it is sent. A peer that does not take it is served no further.
_OUT_BYTES_MAX: Final = 1 << 20

# Seconds that somebody has to say who it is, and to take the last of what it asked for.
_HANDSHAKE_TIMEOUT: Final = 10.0
_GOODBYE_TIMEOUT: Final = 10.0

# Operations in the line that are not the client's: a reply that only waits for its turn.
_READY: Final = -1000
_GOODBYE: Final = -1001


class Waiting:
    """A place in the line."""

    __slots__ = ("body", "error", "identities", "operation", "size", "xid", "zxid")

    def __init__(
        self,
        operation: int,
        xid: int,
        body: bytes,
        identities: Identities,
        size: int,
        error: int = OK,
        zxid: int = 0,
    ) -> None:
        self.operation = operation
        self.xid = xid
        # The bytes of the request, wherever they are kept.
        self.size = size
        # The request of a query; the reply's body for what is answered already.
        self.body = body
        # Who asked, as of when it asked.
        self.identities = identities
        # The reply's header, for what is answered already.
        self.error = error
        self.zxid = zxid


class Connection(Client):
    """The server's end of a connection; an asyncio protocol by its methods."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.stage = NEW
        # The session this connection is attached to, and under which generation.
        self.session = 0
        self.generation = 0
        self._service = service
        self._pipeline = service.pipeline
        self._queries = service.queries
        self._machine = service.machine
        self._transport: asyncio.Transport | None = None
        self._address = ""
        self._port = 0
        self._conversation = service.conversation("")
        self._frames = FrameBuffer(service.config.max_frame_bytes)
        # The first bytes, while they are too few to tell a frame from a four-letter word; then
        # None.
        self._first: bytes | None = b""
        # Frames that came when they could not be served.
        self._held: list[bytes] = []
        # Writes under way, and what must not overtake them.
        self._line: deque[Waiting] = deque()
        self._line_bytes = 0
        self._out = BytesWriter()
        self._liveness: Liveness | None = None
        self._handshake: ConnectRequest | None = None
        # Replies and events since the last flush, and packets since the beginning.
        self._sent = 0
        self._sent_total = 0
        self._received_total = 0
        # Whether the peer takes what we send; if it does not, we do not read from it either.
        self._peer_reads = True
        self._is_paused = False
        # Bytes handed to the transport, and how many of them the peer had taken when we last asked.
        self._written_bytes = 0
        self._taken_bytes = 0
        # Ends a connection that is not getting anywhere, at its beginning or at its end.
        self._deadline: asyncio.TimerHandle | None = None
        self._is_admitted = False

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if peer:
            self._address, self._port = str(peer[0]), int(peer[1])
        if not self._service.admit(self, self._address):
            self.stage = CLOSED
            self._transport.abort()
            return
        self._is_admitted = True
        self._abort_after(_HANDSHAKE_TIMEOUT)
        self._conversation = self._service.conversation(self._address)
        self.identities = self._conversation.start()

    def data_received(self, data: bytes) -> None:
        if self._first is not None:
            data = self._first + data
            if len(data) < 4:
                self._first = data
                return
            self._first = None
            if self._answer_word(data[:4]):
                return
        frames = self._frames.receive_data(data)
        if frames:
            self._service.statistics.packets_received += len(frames)
            self._received_total += len(frames)
            liveness = self._liveness
            if liveness is not None:
                liveness.heard = self._service.tracker.now()
            for frame in frames:
                self._receive(frame)
            if (
                self.stage != OPEN
                or len(self._line) > _LINE_LENGTH_MAX
                or self._line_bytes > _LINE_BYTES_MAX
            ):
                self._regulate()
        if self._frames.error is not None and self.stage != CLOSED:
            logger.warning("%s: %s; closing it", self._address, self._frames.error)
            self.close()
        self.flush()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._forget_deadline()
        self._leave()
        if self._is_admitted:
            self._service.discount(self._address)

    def pause_writing(self) -> None:
        """Stop reading from a peer that does not read."""
        self._peer_reads = False
        self._taken_bytes = self._count_taken()
        self._regulate()

    def resume_writing(self) -> None:
        self._peer_reads = True
        if self.stage == OPEN:
            self._receive_held()
            self._pipeline.mark_dirty(self)
        self._regulate()

    # What the rest of the server calls.

    def notify(self, event: bytes) -> None:
        if self.stage != CLOSED:
            self._out.write(event)
            self._sent += 1
            self._pipeline.mark_dirty(self)

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        if self.stage == CLOSED:
            self._deliver_to_nobody(entry, outcome)
            return
        self._pipeline.mark_dirty(self)
        if self.stage == ATTACHING:
            self._attached(outcome)
            return
        place = self._take_place()
        assert place.xid == entry.xid
        if outcome.error == SESSION_MOVED:
            self.close()
            return
        self._reply(entry.xid, outcome.zxid, outcome.error, outcome.body)
        if entry.operation == opcodes.CLOSE_SESSION and outcome.error == OK:
            self._service.tracker.remove(entry.session)
            self.close()
            return
        self._answer_line()

    def refuse(self, entry: Entry, code: int) -> None:
        if self.stage == CLOSED:
            return
        if self.stage == ATTACHING:
            # Without the log nobody gets a session. The client will come back, and was heard of.
            liveness = self._service.tracker.get(self.session)
            if liveness is not None:
                liveness.heard = self._service.tracker.now()
            self.close()
            return
        self._take_place()
        self._reply(entry.xid, self._machine.zxid, code, b"")
        self._answer_line()
        self._pipeline.mark_dirty(self)

    def flush(self) -> None:
        if len(self._out):
            self._service.statistics.packets_sent += self._sent
            self._sent_total += self._sent
            self._sent = 0
            out = self._out.getvalue()
            self._out = BytesWriter()
            if self._transport is not None:
                self._written_bytes += len(out)
                self._transport.write(out)
        if self.stage == CLOSED and self._transport is not None:
            if not self._transport.is_closing():
                self._abort_after(_GOODBYE_TIMEOUT)
            self._transport.close()

    def close(self) -> None:
        self._leave()
        self._pipeline.mark_dirty(self)

    def abort(self) -> None:
        self._leave()
        if self._transport is not None:
            self._transport.abort()

    def hold(self) -> None:
        if self.stage == OPEN:
            self.stage = CLOSING
            self._regulate()

    def release(self) -> None:
        if self.stage == CLOSING:
            self.stage = OPEN
            self._receive_held()
            self._regulate()
            self._pipeline.mark_dirty(self)

    def session_ended(self) -> None:
        if self.stage == CLOSED:
            return
        for frame in self._held:
            if len(frame) >= 8:
                self._reply(read_i32_be(frame, 0), self._machine.zxid, SESSION_EXPIRED, b"")
        self.close()

    def is_excused(self) -> bool:
        if self._peer_reads:
            return True
        # It does not read as fast as we write; but if it reads at all, it lives.
        taken = self._count_taken()
        is_slow = taken > self._taken_bytes
        self._taken_bytes = taken
        return is_slow

    def describe(self) -> str:
        counts = f"recved={self._received_total},sent={self._sent_total}"
        reading = 0 if self.stage == NEW else 1
        return f"/{self._address}:{self._port}[{reading}](queued={len(self._line)},{counts})"

    def _leave(self) -> None:
        self.stage = CLOSED
        self._line.clear()
        self._line_bytes = 0
        self._held.clear()
        liveness = self._liveness
        if liveness is not None and liveness.connection is self:
            if liveness.is_held and self._peer_reads:
                # Until now we did not listen; from now on silence is the client's own.
                liveness.heard = self._service.tracker.now()
            liveness.connection = None
            liveness.is_held = False
        self._service.leave(self)

    def _abort_after(self, seconds: float) -> None:
        self._forget_deadline()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.abort)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _deliver_to_nobody(self, entry: Entry, outcome: Outcome) -> None:
        """Take note of what became of a session whose connection is gone already."""
        tracker = self._service.tracker
        if outcome.error != OK:
            return
        if entry.operation == opcodes.CLOSE_SESSION:
            tracker.remove(entry.session)
        elif entry.operation == opcodes.CREATE_SESSION:
            session = self._machine.sessions.by_id[entry.session]
            tracker.add(entry.session, session.timeout_ms / 1000)

    # The handshake.

    def _answer_word(self, word: bytes) -> bool:
        answer = self._service.words(word)
        if answer is None:
            return False
        self._service.statistics.packets_received += 1
        self._out.write(answer)
        self.close()
        self.flush()
        return True

    def _connect(self, frame: bytes) -> None:
        try:
            request = ConnectRequest.read(Reader(frame))
        except DecodeError as error:
            logger.warning("%s: handshake not understood: %s", self._address, error)
            self.close()
            return
        self._handshake = request
        self._forget_deadline()
        decision = handshake.decide(request, self._service, self._address)
        if decision.entry is not None:
            self.stage = ATTACHING
            self.session = decision.entry.session
            self._pipeline.submit(decision.entry, self)
            return
        if decision.action == handshake.TELL_EXPIRED:
            self._out.write(handshake.expired(request))
        self.close()

    def _attached(self, outcome: Outcome) -> None:
        assert self._handshake is not None
        session = self._machine.sessions.by_id.get(self.session)
        if outcome.error != OK or session is None:
            self._out.write(handshake.expired(self._handshake))
            self.close()
            return
        self.generation = session.generation
        tracker = self._service.tracker
        liveness = tracker.get(session.id)
        if liveness is None:
            liveness = tracker.add(session.id, session.timeout_ms / 1000)
        elif liveness.connection is not None:
            # The client has come back before we noticed that it was gone.
            liveness.connection.close()
        liveness.timeout = session.timeout_ms / 1000
        liveness.heard = tracker.now()
        liveness.is_held = self._is_paused
        liveness.connection = self
        self._liveness = liveness
        logger.debug("session 0x%x attached from %s", session.id, self._address)
        self._out.write(
            handshake.response(self._handshake, session.timeout_ms, session.id, session.password)
        )
        if not self._service.is_open:
            # The server stops: the session is the client's, but not to be used here.
            self.close()
            return
        self.stage = OPEN
        self._receive_held()
        self._regulate()

    # Requests.

    def _receive(self, frame: bytes) -> None:
        if self.stage == OPEN and self._peer_reads:
            self._request(frame)
        elif self.stage == NEW:
            self._connect(frame)
        elif self.stage != CLOSED:
            self._held.append(frame)

    def _receive_held(self) -> None:
        held, self._held = self._held, []
        for frame in held:
            self._receive(frame)

    def _request(self, frame: bytes) -> None:
        if len(frame) < 8:
            logger.warning("%s: frame without a header; closing it", self._address)
            self.close()
            return
        xid = read_i32_be(frame, 0)
        operation = read_i32_be(frame, 4)
        if operation in opcodes.READS:
            if self._line:
                self._put_in_line(Waiting(operation, xid, frame[8:], self.identities, len(frame)))
            else:
                self._answer(operation, xid, frame[8:], self.identities)
                if len(self._out) > _OUT_BYTES_MAX:
                    self.flush()
        elif operation in opcodes.WRITES:
            self._put_in_line(Waiting(operation, xid, b"", self.identities, len(frame)))
            self._pipeline.submit(
                Entry(
                    operation,
                    frame[8:],
                    self.session,
                    self.generation,
                    xid,
                    0,
                    self._service.flags,
                    self.identities,
                ),
                self,
            )
        elif operation == opcodes.PING:
            self._reply(PING_XID, self._machine.zxid, OK, b"")
        elif operation == opcodes.AUTH:
            self._authenticate(xid, frame)
        elif operation == opcodes.SASL:
            self._answer_sasl(xid, frame)
        else:
            logger.warning("0x%x: unknown operation %d; closing it", self.session, operation)
            self._in_turn(_GOODBYE, xid, b"", UNIMPLEMENTED, -1)

    def _authenticate(self, xid: int, frame: bytes) -> None:
        try:
            packet = AuthPacket.read(Reader(frame, 8))
        except DecodeError:
            self.close()
            return
        error, identities = self._conversation.receive(
            packet.scheme, packet.credentials, self.identities
        )
        # From here on the client is more than before, also for what it has sent already.
        self.identities = identities
        if error != OK:
            logger.warning("0x%x: authentication failed, scheme %s", self.session, packet.scheme)
        self._in_turn(_GOODBYE if error == AUTH_FAILED else _READY, xid, b"", error, 0)

    def _answer_sasl(self, xid: int, frame: bytes) -> None:
        """Answer that no mechanism is offered, as a server without one does: with no token."""
        try:
            Reader(frame, 8).string()
        except DecodeError:
            self.close()
            return
        writer = BytesWriter()
        SaslToken(None).write(writer)
        self._in_turn(_READY, xid, writer.getvalue(), OK, 0)

    def _in_turn(self, operation: int, xid: int, body: bytes, error: int, zxid: int) -> None:
        """Send a reply that needs no work, behind everything that came before it."""
        self._put_in_line(Waiting(operation, xid, body, self.identities, len(body), error, zxid))
        if len(self._line) == 1:
            self._answer_line()

    def _put_in_line(self, place: Waiting) -> None:
        self._line.append(place)
        self._line_bytes += place.size

    def _take_place(self) -> Waiting:
        place = self._line.popleft()
        self._line_bytes -= place.size
        return place

    def _answer_line(self) -> None:
        """Answer what is first in line, up to the next write."""
        line = self._line
        while line and line[0].operation not in opcodes.WRITES:
            place = self._take_place()
            if place.operation in opcodes.READS:
                self._answer(place.operation, place.xid, place.body, place.identities)
            else:
                self._reply(place.xid, place.zxid, place.error, place.body)
                if place.operation == _GOODBYE:
                    self.close()
        if self._is_paused:
            self._regulate()

    def _answer(self, operation: int, xid: int, body: bytes, identities: Identities) -> None:
        error, answer = self._queries.answer(operation, body, self, identities, self.session)
        self._reply(xid, self._machine.zxid, error, answer)

    def _reply(self, xid: int, zxid: int, error: int, body: bytes) -> None:
        out = self._out
        write_i32_be(out, 16 + len(body))
        write_i32_be(out, xid)
        write_i64_be(out, zxid)
        write_i32_be(out, error)
        out.write(body)
        self._sent += 1

    # Backpressure: we stop reading, and that is not the client's silence.

    def _regulate(self) -> None:
        if self._transport is None or self.stage == CLOSED:
            return
        # Reading begins again at half the length at which it stopped.
        share = 2 if self._is_paused else 1
        pause = (
            self.stage in (ATTACHING, CLOSING)
            or not self._peer_reads
            or len(self._line) > _LINE_LENGTH_MAX // share
            or self._line_bytes > _LINE_BYTES_MAX // share
        )
        if pause == self._is_paused:
            return
        self._is_paused = pause
        if self._liveness is not None:
            self._liveness.is_held = pause
            self._liveness.heard = self._service.tracker.now()
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _count_taken(self) -> int:
        """Count the bytes that the peer, or the system for it, has taken so far."""
        waiting = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._written_bytes - waiting
