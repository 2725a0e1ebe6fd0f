"""One client's connection: its socket, its handshake, its session, its end.

A whole read is handled at once and answered with one write. How requests are served is a matter of
the desk (`paddock.server.connections.request_handler`), which a connection is from the moment it
has a session.

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
from typing import Final, cast

from librt.strings import read_i32_be

from paddock.errors import OK, SESSION_EXPIRED, SESSION_MOVED
from paddock.protocol import opcodes
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import ConnectRequest
from paddock.server.connections.paced_writer import PacedWriter
from paddock.server.connections.request_handler import (
    ATTACHING,
    CLOSED,
    CLOSING,
    NEW,
    OPEN,
    REQUESTS_A_LOOK,
    Desk,
)
from paddock.server.core import Service
from paddock.server.sessions import handshake
from paddock.server.sessions.policy import ReadOnly
from paddock.server.statistics import ConnectionReport, Tally
from paddock.state.entry import ATTACH, Entry
from paddock.state.machine import PASSWORD_BYTES, Outcome

logger: Final = logging.getLogger(__name__)

# The one four-letter word with something behind it, and the length of both.
_STMK: Final = b"stmk"
_STMK_BYTES: Final = 12

# Seconds that somebody has to take the last of what it asked for.
_GOODBYE_TIMEOUT: Final = 10.0
# Nobody needs more to ask for a session: the request has 45 bytes.
_HANDSHAKE_BYTES_MAX: Final = 1024
# What a frame that has not come as a whole may have of memory without being counted.
_LITTLE_BYTES: Final = 1 << 12


class Connection(Desk):
    """The server's end of a connection; an asyncio protocol by its methods."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._port = 0
        # Kept, since a transport that is being closed can no longer be asked.
        self._is_tls = False
        # The first bytes, while they are too few to tell a frame from a four-letter word; then
        # None.
        self._first: bytes | None = b""
        # The answer to a four-letter word, while it is on its way.
        self._stream: PacedWriter | None = None
        self._tally = Tally()
        self._handshake: ConnectRequest | None = None
        # Ends a connection that is not getting anywhere, at its beginning or at its end.
        self._deadline: asyncio.TimerHandle | None = None
        self._is_admitted = False

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._outlet.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if peer:
            self._address, self._port = str(peer[0]), int(peer[1])
        if not self._service.admit(self, self._address):
            self.stage = CLOSED
            self._outlet.transport.abort()
            return
        self._is_admitted = True
        self._tally.established_ms = self._service.wall_clock_ms()
        self._abort_after(self._service.config.handshake_timeout_ms / 1000)
        tls = transport.get_extra_info("ssl_object")
        self._is_tls = tls is not None
        socket = transport.get_extra_info("socket")
        if socket is not None and not self._is_tls:
            self._outlet.file = socket.fileno()
        self._conversation = self._service.conversation(self._address, tls)
        self.identities = self._conversation.start()

    def data_received(self, data: bytes) -> None:
        self._service.statistics.bytes_received += len(data)
        if self._first is not None:
            data = self._first + data
            if len(data) < (_STMK_BYTES if data.startswith(_STMK) else 4):
                self._first = data
                return
            self._first = None
            if self._answer_word(data[:_STMK_BYTES]) or not self._may_shake_hands(data):
                return
        elif self.stage == CLOSED:
            # Whatever stands behind a word, or comes when all is over, is not looked at.
            return
        frames = self._frames.receive_data(data)
        if frames:
            self._service.statistics.packets_received += len(frames)
            liveness = self._liveness
            if liveness is None:
                self._tally.received += len(frames)
            else:
                liveness.heard = self._service.tracker.now()
                self._tally.receive(frames, liveness.heard)
            if len(frames) > REQUESTS_A_LOOK:
                self._begin_turn()
            else:
                # So few are a turn in any case.
                self._until_look = REQUESTS_A_LOOK + 1
            for frame in frames:
                if self._serves:
                    self._request(frame)
                elif self.stage == NEW:
                    self._connect(frame)
                else:
                    self._hold(frame)
            if not self._serves or (self._line.length and self._is_too_far_ahead()):
                self.regulate()
        if self._unfinished or not frames or len(data) > _LITTLE_BYTES:
            # What little may be left behind whole frames is not worth counting.
            self._count_unfinished()
        if self._frames.error is not None and self.stage != CLOSED:
            logger.warning(
                "%s: %s; closing it",
                self._address,
                self._frames.error,
                extra={"address": self._address, "session": self.session},
            )
            self.close()
        self.flush()

    def eof_received(self) -> bool:
        # Whoever asks with a word may say that this was all, and still wait for the answer. TLS has
        # no half of a connection to leave open.
        return self._stream is not None and not self._is_tls

    def connection_lost(self, error: Exception | None) -> None:
        self._outlet.transport = None
        self._outlet.discard()
        if self._stream is not None:
            self._stream.stop()
        self._forget_deadline()
        if self.stage in (OPEN, CLOSING):
            self._tell_lost(error)
        self._leave()
        self._service.catch_up(self)
        if self._is_admitted:
            self._service.discount(self._address)

    def pause_writing(self) -> None:
        """Stop reading from a peer that does not read."""
        self._outlet.pause()
        if self._stream is not None:
            self._stream.pause()
            return
        self._outlet.has_progressed()
        self._serves = False
        self.regulate()
        self._service.fall_behind(self)

    def resume_writing(self) -> None:
        self._outlet.resume()
        if self._stream is not None:
            self._stream.resume()
            return
        self._service.catch_up(self)
        # What waits goes out first; it may be enough to have us pause again.
        self.flush()
        self._continue()

    # What the rest of the server calls.

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        if self.stage == CLOSED:
            self._deliver_to_nobody(entry, outcome)
            return
        self._pipeline.mark_dirty(self)
        if self.stage == ATTACHING:
            self._attached(outcome)
            return
        self._line.leave_write(len(entry.body))
        self._tally.writes += 1
        if outcome.error == SESSION_MOVED:
            self.close()
            return
        self._outlet.reply(entry.xid, outcome.zxid, outcome.error, outcome.body)
        if entry.operation == opcodes.CLOSE_SESSION and outcome.error == OK:
            self._service.tracker.remove(entry.session)
            self._tell_closed()
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
        self._line.leave_write(len(entry.body))
        self._outlet.reply(entry.xid, self._machine.zxid, code, b"")
        self._answer_line()
        self._pipeline.mark_dirty(self)

    def flush(self) -> None:
        if self._tally.writes:
            self._tally.settle(self._service.statistics)
        outlet = self._outlet
        outlet.flush(self._pipeline.is_syncing())
        if outlet.is_overdue and self.stage != CLOSED:
            self.drop()
        elif self.stage == CLOSED and outlet.transport is not None and outlet.is_empty():
            outlet.transport.close()

    def close(self) -> None:
        self._leave()
        self._pipeline.mark_dirty(self)

    def abort(self) -> None:
        self._leave()
        if self._outlet.transport is not None:
            self._outlet.transport.abort()

    def drop(self) -> None:
        logger.warning(
            "%s: session 0x%x does not read what it asks for; dropping it",
            self._address,
            self.session,
            extra={"address": self._address, "session": self.session},
        )
        self._outlet.give_up()
        self.abort()

    def hold(self) -> None:
        if self.stage == OPEN:
            self.stage = CLOSING
            self._serves = False
            self.regulate()

    def release(self) -> None:
        if self.stage == CLOSING:
            self.stage = OPEN
            self._continue()

    def session_ended(self) -> None:
        if self.stage == CLOSED:
            return
        if not self._line.length:
            self._answer_expired()
        # Otherwise the end has overtaken writes that waited in a long backlog. They will be refused
        # when they are applied, and nothing that came behind them may be answered before.
        self.close()

    def _answer_expired(self) -> None:
        """Answer what was held: the session is over."""
        if self._setting is not None:
            self._outlet.reply(self._setting_xid, self._machine.zxid, SESSION_EXPIRED, b"")
        for frame in self._held:
            if len(frame) >= 8:
                self._outlet.reply(read_i32_be(frame, 0), self._machine.zxid, SESSION_EXPIRED, b"")

    def report(self) -> ConnectionReport:
        transport = self._outlet.transport
        unsent = transport is not None and transport.get_write_buffer_size() > 0
        # Whoever has asked with a word is not listened to any more.
        reads = not self._is_paused and self.stage != CLOSED
        tally, liveness, lost = self._tally, self._liveness, self._service.tracker.lost
        if liveness is None:
            session, timeout_ms = 0, 0
            until = (
                self._service.tracker.now() + lost
                if self._deadline is None
                else self._deadline.when()
            )
        else:
            session, timeout_ms = self.session, int(liveness.timeout * 1000)
            until = liveness.heard + liveness.timeout + lost
        # What is no write is answered in the same pass of the loop in which it comes.
        responded_at = max(tally.heard_at + lost if tally.heard_at else 0.0, tally.answered_at)
        return ConnectionReport(
            self._address,
            self._port,
            (1 if reads else 0) | (4 if unsent else 0),
            self._line.length,
            self._outlet.sent,
            session,
            timeout_ms,
            self._outlet.last_zxid,
            tally,
            responded_at,
            until,
            self._is_tls,
        )

    def reset_statistics(self) -> None:
        self._tally.reset()
        self._outlet.sent = 0
        # What stands for none, as upstream has it.
        self._outlet.last_zxid = -1

    def _leave(self) -> None:
        if self.stage != CLOSED and self._outlet.transport is not None:
            self._abort_after(_GOODBYE_TIMEOUT)
        self.stage = CLOSED
        self._serves = False
        self._pipeline.waiting_bytes -= self._line.places_size()
        self._line.clear()
        self._held.clear()
        if self._setting is not None:
            self._setting.abandon()
            self._setting = None
        self._unfinished = 0
        liveness = self._liveness
        if liveness is not None and liveness.connection is self:
            if liveness.is_held and self._outlet.peer_reads:
                # Until now we did not listen; from now on silence is the client's own.
                liveness.heard = self._service.tracker.now()
            liveness.connection = None
            liveness.is_held = False
        self._service.leave(self)

    def _abort_after(self, seconds: float) -> None:
        self._forget_deadline()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        """End a connection that is not getting anywhere."""
        if self.stage == NEW:
            reason = "did not ask for a session in time"
            self._service.statistics.connections_timed_out += 1
        else:
            reason = "did not take the last of what it was sent in time"
        logger.info("%s: %s; closing it", self._address, reason, extra={"address": self._address})
        self.abort()

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _tell_lost(self, error: Exception | None) -> None:
        """Say why a session has lost its connection, if that was not our doing."""
        liveness = self._liveness
        if liveness is None or liveness.connection is not self:
            return
        if error is None:
            reason = "closed by its client"
        elif isinstance(error, ConnectionResetError):
            reason = "reset"
        else:
            reason = str(error) or type(error).__name__
        logger.info(
            "session 0x%x: connection from %s lost, %s; it has %.1f s to come back",
            self.session,
            self._address,
            reason,
            liveness.timeout,
            extra={"session": self.session, "address": self._address, "reason": reason},
        )

    def _tell_closed(self) -> None:
        logger.info(
            "session 0x%x closed by its client",
            self.session,
            extra={"session": self.session, "address": self._address, "reason": "closed"},
        )

    def _deliver_to_nobody(self, entry: Entry, outcome: Outcome) -> None:
        """Take note of what became of a session whose connection is gone already."""
        tracker = self._service.tracker
        if outcome.error != OK:
            return
        if entry.operation == opcodes.CLOSE_SESSION:
            tracker.remove(entry.session)
            self._tell_closed()
        elif entry.operation == opcodes.CREATE_SESSION:
            session = self._machine.sessions.by_id[entry.session]
            tracker.add(entry.session, session.timeout_ms / 1000)
        elif entry.operation == ATTACH:
            # The session has moved on all the same, and its old connection can write no more.
            liveness = tracker.get(entry.session)
            if liveness is not None and liveness.connection is not None:
                liveness.connection.close()

    # The handshake.

    def _answer_word(self, word: bytes) -> bool:
        statistics, transport = self._service.statistics, self._outlet.transport
        # The word itself counts for what it asks about.
        self._tally.received += 1
        statistics.packets_received += 1
        pieces = self._service.words(word)
        if pieces is None:
            self._tally.received -= 1
            statistics.packets_received -= 1
            return False
        assert transport is not None
        statistics.packets_sent += 1
        self._leave()
        # It may take as long as the peer goes on taking it.
        self._forget_deadline()
        self._stream = PacedWriter(
            transport, pieces, _GOODBYE_TIMEOUT, self._end_answer, self._service.turns
        )
        self._stream.start()
        return True

    def _end_answer(self) -> None:
        self._abort_after(_GOODBYE_TIMEOUT)
        self.flush()

    def _may_shake_hands(self, data: bytes) -> bool:
        """Tell whether the first frame can be a handshake; if it cannot, close."""
        announced = read_i32_be(data, 0)
        if announced <= _HANDSHAKE_BYTES_MAX:
            return True
        logger.warning(
            "%s: handshake of %d bytes announced; closing it",
            self._address,
            announced,
            extra={"address": self._address},
        )
        self.close()
        self.flush()
        return False

    def _connect(self, frame: bytes) -> None:
        try:
            request = ConnectRequest.read(Reader(frame))
        except DecodeError as error:
            logger.warning(
                "%s: handshake not understood: %s",
                self._address,
                error,
                extra={"address": self._address},
            )
            self.close()
            return
        self._handshake = request
        self._service.welcome(self)
        self._forget_deadline()
        statistics = self._service.statistics
        statistics.handshakes += 1
        if request.session_id:
            statistics.handshakes_again += 1
        decision = handshake.decide(request, self._service, self._address)
        if decision.entry is not None:
            self.stage = ATTACHING
            self.session = decision.entry.session
            self._pipeline.submit(decision.entry, self)
            return
        if decision.action == handshake.READ_ONLY:
            self._attach_read_only(request)
            return
        if decision.action == handshake.TELL_EXPIRED:
            self._outlet.packet(handshake.expired(request))
        self.close()

    def _attached(self, outcome: Outcome) -> None:
        assert self._handshake is not None
        session = self._machine.sessions.by_id.get(self.session)
        if outcome.error != OK or session is None:
            self._outlet.packet(handshake.expired(self._handshake))
            self.close()
            return
        self.generation = session.generation
        tracker = self._service.tracker
        liveness = tracker.get(session.id)
        if liveness is None:
            liveness = tracker.add(session.id, session.timeout_ms / 1000)
        elif liveness.connection is not None:
            # The client has come back before we noticed that it was gone.
            logger.info(
                "session 0x%x: its connection is replaced by a newer one from %s",
                session.id,
                self._address,
                extra={"session": session.id, "address": self._address, "reason": "replaced"},
            )
            liveness.connection.close()
        tracker.renew(liveness, session.timeout_ms / 1000)
        liveness.is_held = self._is_paused
        liveness.connection = self
        self._liveness = liveness
        if not self._handshake.session_id:
            # To whoever asks, making the session was the first operation.
            self._tally.operation = opcodes.CREATE_SESSION
            self._tally.heard_at = liveness.heard
            self._outlet.last_zxid = outcome.zxid
        logger.debug(
            "session 0x%x attached from %s, timeout %d ms",
            session.id,
            self._address,
            session.timeout_ms,
            extra={"session": session.id, "address": self._address},
        )
        self._outlet.packet(
            handshake.response(self._handshake, session.timeout_ms, session.id, session.password)
        )
        if not self._service.is_open:
            # The server stops: the session is the client's, but not to be used here.
            self.close()
            return
        self._restriction = self._service.restriction(self.identities)
        self.stage = OPEN
        self._go_on()

    def _attach_read_only(self, request: ConnectRequest) -> None:
        """Serve reads without the log; the session, if it is a new one, is known here alone."""
        service = self._service
        session = self._machine.sessions.by_id.get(request.session_id)
        if session is None:
            self.session = service.new_session_id()
            password = service.random_bytes(PASSWORD_BYTES)
        else:
            self.session, password = session.id, session.password
        timeout_ms = service.negotiate(request.timeout_ms)
        self._outlet.packet(
            handshake.response(request, timeout_ms, self.session, password, read_only=True)
        )
        self._restriction = ReadOnly()
        self.stage = OPEN
        self._go_on()
