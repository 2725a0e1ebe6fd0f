"""One client's connection: the asyncio protocol, and the end of it.

A connection is made of parts. It passes what it reads to a `Handshake`, and to its
`RequestHandler` from then on, which has an `Authentication`, `Replies`, a `ReplyQueue`, a
`SendBuffer` and a `ConnectionWatcher`. A whole read is handled at once and answered with one write.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, cast

from librt.strings import read_i32_be

from paddock.protocol.framing import FrameBuffer
from paddock.server.connections.core import Core
from paddock.server.connections.ending import loss, record_end
from paddock.server.connections.handshake import Handshake, read_request
from paddock.server.connections.paced_writer import PacedWriter
from paddock.server.connections.request_handler import CLOSED, CLOSING, NEW, OPEN, RequestHandler
from paddock.server.statistics import ConnectionReport, where
from paddock.storage import events

logger: Final = logging.getLogger(__name__)

# The one four-letter word with an argument, and the length of both.
_STMK: Final = b"stmk"
_STMK_BYTES: Final = 12

# Seconds that a peer has to take the last of its replies.
_GOODBYE_TIMEOUT: Final = 10.0
# The request for a session has 45 bytes; no client needs more than this.
_HANDSHAKE_BYTES_MAX: Final = 1024
# So many requests of one read are answered together with those of others.
_FEW: Final = 16
# How much memory a partial frame may have without being counted.
_LITTLE_BYTES: Final = 1 << 12


class Connection:
    """The server's end of a connection: an asyncio protocol and an `AdmittedConnection`.

    It does not inherit from them: mypyc checks every access to a field of a class with a Protocol
    above it, which costs 3 % of a get.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._frames = FrameBuffer(core.config.max_frame_bytes)
        self._port = 0
        # Kept, since a transport that is being closed can no longer be asked.
        self._is_tls = False
        # The first bytes, while they are too few to tell a frame from a four-letter word; then
        # None.
        self._first: bytes | None = b""
        # The answer to a four-letter word, while it is being sent.
        self._word_writer: PacedWriter | None = None
        # Bytes of a frame that has come in part.
        self._partial = 0
        # What was read and waits for a turn.
        self._unserved = b""
        # Ends a connection that makes no progress, at its beginning or at its end.
        self._deadline: asyncio.TimerHandle | None = None
        # A connection that is refused gets no parts.
        self._is_admitted = False

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        made = cast(asyncio.Transport, transport)
        peer = made.get_extra_info("peername")
        address = ""
        if peer:
            address, self._port = str(peer[0]), int(peer[1])
        self._is_admitted = self._core.admission.admit(self, address)
        if not self._is_admitted:
            made.abort()
            self._core.replica.journal.add(
                events.HANDSHAKE_FAILED, address=where(address, self._port), reason=events.TOO_MANY
            )
            return
        tls = made.get_extra_info("ssl_object")
        self._is_tls = tls is not None
        self.handler = RequestHandler(self._core, self, address, tls)
        self.handler.where = where(address, self._port)
        self.handler.tally.established_ms = self._core.wall_clock_ms()
        self._buffer = self.handler.buffer
        self._buffer.transport = made
        socket = made.get_extra_info("socket")
        if socket is not None and not self._is_tls:
            self._buffer.file = socket.fileno()
        self._abort_after(self._core.config.handshake_timeout_ms / 1000)

    def data_received(self, data: bytes) -> None:
        if len(data) > _LITTLE_BYTES:
            # Nobody's reply waits until a long read is served.
            self._core.replica.flush_dirty()
            if not self._core.turns.may_read():
                self._postpone(data)
                return
        self._receive(data)

    def _receive(self, data: bytes) -> None:
        handler, statistics = self.handler, self._core.statistics
        statistics.bytes_received += len(data)
        if self._first is not None:
            data = self._first + data
            if len(data) < (_STMK_BYTES if data.startswith(_STMK) else 4):
                self._first = data
                return
            self._first = None
            if self._answer_word(data[:_STMK_BYTES]) or not self._may_be_handshake(data):
                return
        elif handler.stage == CLOSED:
            # What comes behind a word, or after the end, is ignored.
            return
        frames = self._frames
        whole = frames.cut(data)
        count = frames.count
        if count:
            statistics.packets_received += count
            if handler.stage == NEW:
                self._begin_session(whole, count)
            else:
                handler.receive(whole, 0, count, frames.last)
        if self._partial or not count or len(data) > _LITTLE_BYTES:
            # The little that may be left behind whole frames is not worth counting.
            self._count_partial()
        if frames.error is not None and handler.stage != CLOSED:
            self._warn("%s; closing it", frames.error)
            self.close(events.TOO_LARGE)
        is_alone = self._core.turns.last_reader is handler
        if is_alone or count > _FEW or handler.stage != OPEN or not self._buffer.has_gathered():
            handler.flush()
        else:
            # Where clients ask one after the other, the replies of one pass of the loop go out
            # together, at its end. To wake a peer for each of them took the system more time than
            # all else: ten connections with one request in flight each get 1.4 times as much.
            self._core.turns.last_reader = handler
            self._core.replica.mark_dirty(handler)

    def eof_received(self) -> bool:
        # The sender of a word may shut down its side, and still wait for the answer. TLS has no
        # half-open connections.
        return self._word_writer is not None and not self._is_tls

    def connection_lost(self, error: Exception | None) -> None:
        if not self._is_admitted:
            return
        self._buffer.transport = None
        self._buffer.discard()
        if self._word_writer is not None:
            self._word_writer.stop()
            self._word_writer = None
        self._cancel_deadline()
        if self.handler.stage in (OPEN, CLOSING):
            self._log_lost(error)
        # A peer that goes without a word was a probe.
        self._leave("" if self.handler.stage == NEW else loss(self._core, error))
        self._core.slow_peers.remove(self)
        self._core.admission.release(self.handler.address)

    def pause_writing(self) -> None:
        """Stop reading from a peer that does not read."""
        self._buffer.peer_reads = False
        if self._word_writer is not None:
            self._word_writer.pause()
            return
        self._buffer.has_progressed()
        self.handler.pause()
        self._core.slow_peers.add(self)

    def resume_writing(self) -> None:
        self._buffer.resume()
        if self._word_writer is not None:
            self._word_writer.resume()
            return
        self._core.slow_peers.remove(self)
        # What waits goes out first; that may be enough for the transport to pause us again.
        self.handler.flush()
        self.handler.wake()

    # Called by the rest of the server.

    def close(self, reason: str) -> None:
        self._leave(reason)
        self._buffer.is_last = True
        self._core.replica.mark_dirty(self.handler)

    def abort(self, reason: str) -> None:
        self._leave(reason)
        self._buffer.abort()

    def drop(self) -> None:
        self._warn(
            "session 0x%x does not read what it asks for; dropping it", self.handler.watcher.session
        )
        self._buffer.give_up()
        self.abort(events.NOT_READING)

    def shed(self) -> None:
        self._warn("too many large requests at a time; closing it")
        self.close(events.OVERLOAD)

    def hold(self) -> None:
        self.handler.suspend()

    def release(self) -> None:
        self.handler.resume()

    def session_ended(self) -> None:
        if self.handler.stage != CLOSED:
            self.handler.refuse_held()
            self.close(events.EXPIRED)

    def is_lagging(self) -> bool:
        return self._buffer.is_lagging()

    def is_excused(self) -> bool:
        # A peer that does not read as fast as we write is not read from; if it reads at all, it
        # lives.
        return self._buffer.peer_reads or self._buffer.has_progressed()

    def report(self) -> ConnectionReport:
        handler, buffer, lost = self.handler, self._buffer, self._core.tracker.lost
        # After a four-letter word nothing is read any more.
        interest = 1 if not handler.is_paused and handler.stage != CLOSED else 0
        if buffer.transport is not None and buffer.transport.get_write_buffer_size() > 0:
            interest |= 4
        tally, liveness = handler.tally, handler.liveness
        session, timeout_ms = 0, 0
        if liveness is not None:
            session, timeout_ms = handler.watcher.session, int(liveness.timeout * 1000)
            until = liveness.heard + liveness.timeout + lost
        elif self._deadline is not None:
            until = self._deadline.when()
        else:
            until = self._core.tracker.now() + lost
        # Except for writes, a request is answered in the pass of the loop in which it comes.
        responded_at = max(tally.heard_at + lost if tally.heard_at else 0.0, tally.answered_at)
        return ConnectionReport(
            handler.address,
            self._port,
            interest,
            handler.queue.length,
            buffer.sent,
            session,
            timeout_ms,
            buffer.last_zxid,
            tally,
            responded_at,
            until,
            self._is_tls,
        )

    def reset_statistics(self) -> None:
        self.handler.tally = self.handler.tally.restarted()
        self._buffer.sent = 0
        # Upstream's value for none.
        self._buffer.last_zxid = -1

    def take_turn(self) -> None:
        """Serve what was postponed."""
        data, self._unserved = self._unserved, b""
        self.handler.is_behind = False
        if self._buffer.transport is None:
            return
        try:
            self._receive(data)
        except Exception:
            # As the transport does for what is served at once.
            logger.exception("%s: not served any more", self.handler.address)
            self.abort(events.FAULT)
        self.handler.regulate()

    def _postpone(self, data: bytes) -> None:
        """Serve a long read in a turn, since this pass of the loop has served enough of them."""
        if not self.handler.is_behind:
            self.handler.is_behind = True
            self._core.turns.ask(self)
        self._unserved += data
        self.handler.regulate()

    # The beginning.

    def _answer_word(self, word: bytes) -> bool:
        statistics, tally = self._core.statistics, self.handler.tally
        # The word itself counts in its own answer.
        tally.received += 1
        statistics.packets_received += 1
        pieces = self._core.words(word)
        if pieces is None:
            tally.received -= 1
            statistics.packets_received -= 1
            return False
        transport = self._buffer.transport
        assert transport is not None
        statistics.packets_sent += 1
        self._leave("")
        # A server that is out of service is asked all the more.
        self._buffer.lease = None
        # It may take as long as the peer goes on taking it.
        self._cancel_deadline()
        self._word_writer = PacedWriter(
            transport, pieces, _GOODBYE_TIMEOUT, self._end_answer, self._core.turns
        )
        self._word_writer.start()
        return True

    def _end_answer(self) -> None:
        self._abort_after(_GOODBYE_TIMEOUT)
        self._buffer.is_last = True
        self._buffer.flush()

    def _may_be_handshake(self, data: bytes) -> bool:
        """Return whether the first frame can be a handshake; if it cannot, close."""
        announced = read_i32_be(data, 0)
        if announced <= _HANDSHAKE_BYTES_MAX:
            return True
        self._warn("handshake of %d bytes announced; closing it", announced)
        self.close(events.PROTOCOL_ERROR)
        self.handler.flush()
        return False

    def _begin_session(self, frames: bytes, count: int) -> None:
        """Take the handshake, and what may have come behind it."""
        length: int = read_i32_be(frames, 0)
        end = 4 + length
        self._begin_handshake(frames[4:end])
        self.handler.receive(frames, end, count - 1, self._frames.last)

    def _begin_handshake(self, frame: bytes) -> None:
        self.handler.tally.received += 1
        self._core.admission.welcome(self)
        self._cancel_deadline()
        request = read_request(frame, self.handler.address)
        if request is None:
            self.close(events.PROTOCOL_ERROR)
        else:
            Handshake(self._core, self, self.handler, request).begin()

    def _count_partial(self) -> None:
        """Count what has come of a frame that is not whole, with that of all others."""
        size = self._frames.unfinished()
        if size != self._partial and self.handler.stage != CLOSED:
            self._partial = size
            self._core.partial_requests.note(self, size)

    # The end.

    def _leave(self, reason: str) -> None:
        """Serve nothing more; the transport stays open until what was answered is sent.

        Without a reason the end is no event.
        """
        if self.handler.stage != CLOSED:
            if reason:
                record_end(self._core, self.handler, reason)
            if self._buffer.transport is not None:
                self._abort_after(_GOODBYE_TIMEOUT)
        self.handler.close()
        if self._core.turns.last_reader is self.handler:
            self._core.turns.last_reader = None
        self._partial = 0
        self._core.forget(self, self.handler.watcher)

    def _abort_after(self, seconds: float) -> None:
        self._cancel_deadline()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._give_up)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        """Abort a connection that makes no progress."""
        address = self.handler.address
        if self.handler.stage == NEW:
            reason = "did not ask for a session in time"
            self._core.statistics.connections_timed_out += 1
        else:
            reason = "did not take the last of what it was sent in time"
        logger.info("%s: %s; closing it", address, reason, extra={"address": address})
        self.abort(events.TIMEOUT)

    def _log_lost(self, error: Exception | None) -> None:
        """Log why a session has lost its connection, if that was not our doing."""
        handler, liveness = self.handler, self.handler.liveness
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
            handler.watcher.session,
            handler.address,
            reason,
            liveness.timeout,
            extra={**handler.about(), "reason": reason},
        )

    def _warn(self, text: str, *details: object) -> None:
        # The rate limit of the log goes by the text before the details are filled in.
        logger.warning(f"%s: {text}", self.handler.address, *details, extra=self.handler.about())  # noqa: G004
