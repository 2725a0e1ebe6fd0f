"""Where one client's requests are served: in its order, in its turn, within its limits.

A query is answered on the spot, from memory, unless writes of the same client are under way: then
it waits in line behind them, and is answered right after the write before it was applied and
before the one after it is. The same line holds whatever is refused without the log, so that
replies never overtake each other. Pings alone are answered at once.

Nobody can keep the server to itself. A client has its turn (`paddock.server.connections.turns`):
when that is over by the clock, or much was answered, or something heavy, the rest of what it has
sent is held until its next turn. What is heavy waits for such a turn in any case. It does not go
into the line, where it would have to be answered in the middle of a batch, but is held until the
line is empty; so is what comes when many wait in line. While frames are held nothing more is read,
and that is not the client's silence.
"""

from __future__ import annotations

import logging
from typing import Final

from librt.strings import BytesWriter, read_i32_be
from mypy_extensions import i64

from paddock.errors import AUTH_FAILED, MARSHALLING_ERROR, OK, UNIMPLEMENTED
from paddock.protocol import opcodes, operations
from paddock.protocol.framing import FrameBuffer
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import PING_XID
from paddock.protocol.requests import AuthPacket, SaslToken
from paddock.server.connections.reply_queue import GOODBYE, READY, Line, Waiting
from paddock.server.connections.send_buffer import Outlet
from paddock.server.core import Service
from paddock.server.sessions.policy import Restriction
from paddock.server.sessions.tracker import Client, Liveness
from paddock.state.access import Identities
from paddock.state.entry import Entry
from paddock.state.queries import LARGE_BYTES
from paddock.state.refusal import Refused
from paddock.state.watch_setting import WatchSetting

logger: Final = logging.getLogger(__name__)

# The number of a request and its operation, before the request itself.
_HEADER_BYTES: Final = 8
# How many requests are served between two looks at the clock.
REQUESTS_A_LOOK: Final = 16
_WATCHES_A_LOOK: Final = 100
# How many requests may wait in line for writes of their client, to be answered within a batch.
_PLACES_MAX: Final = 500
# A request that is longer is heavy, whatever it asks: only to look at its path takes long.
_LONG_BYTES: Final = 1 << 15
# A node with more children is not listed within a batch.
_CHILDREN_MAX: Final = 1_000

# The stages of a connection; what they mean stands there.
NEW: Final = 0
ATTACHING: Final = 1
OPEN: Final = 2
CLOSING: Final = 3
CLOSED: Final = 4


class Desk(Client):
    """The part of a connection that serves requests, once there is a session."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.stage = NEW
        # Under which generation it is attached to its session.
        self.generation = 0
        self._service = service
        self._pipeline = service.pipeline
        self._queries = service.queries
        self._machine = service.machine
        self._address = ""
        self._conversation = service.conversation("")
        self._frames = FrameBuffer(service.config.max_frame_bytes)
        # Frames that came when they could not be served; what one read brings at most.
        self._held: list[bytes] = []
        # Whether a frame is served when it comes. Invariant: then none is held.
        self._serves = False
        # What it may not do, if there is such a thing; then nothing is simply served.
        self._restriction: Restriction | None = None
        self._turns = service.turns
        # Whether it has asked for its next turn, whether it has its turn now, when that ends, and
        # how many requests may be served before somebody looks at the clock.
        self._turn_is_due = False
        self._has_turn = False
        self._turn_end = 0.0
        self._until_look = REQUESTS_A_LOOK
        # The watches that it is setting again, turn by turn, and the number of that request.
        self._setting: WatchSetting | None = None
        self._setting_xid = 0
        # Bytes of a frame that comes in many pieces.
        self._unfinished = 0
        # Writes under way, and what must not overtake them.
        config = service.config
        self._line = Line(
            config.max_requests_per_connection, config.max_request_bytes_per_connection
        )
        self._outlet = Outlet(service.statistics, service.backlog)
        self._liveness: Liveness | None = None
        # Whether we do not read from the peer for now.
        self._is_paused = False

    def notify(self, event: bytes) -> None:
        self.notify_all(event, 1)

    def notify_all(self, frames: bytes, count: int) -> None:
        if self.stage != CLOSED:
            self._outlet.packets(frames, count)
            self._pipeline.mark_dirty(self)

    def is_excused(self) -> bool:
        # A peer that does not read as fast as we write is not read from; if it reads at all, it
        # lives.
        return self._outlet.peer_reads or self._outlet.has_progressed()

    def give_way(self) -> None:
        logger.warning(
            "%s: too many large requests at a time; closing it",
            self._address,
            extra={"address": self._address, "session": self.session},
        )
        self.close()

    def is_lagging(self) -> bool:
        return self._outlet.is_lagging()

    def regulate(self) -> None:
        transport = self._outlet.transport
        if transport is None or self.stage == CLOSED:
            return
        # Reading begins again at half the length at which it stopped.
        share = 2 if self._is_paused else 1
        congested = self._line.length > 0 and self._pipeline.is_congested(share)
        if congested:
            self._service.hold_back(self)
        pause = (
            congested
            or self.stage in (ATTACHING, CLOSING)
            or not self._outlet.peer_reads
            or len(self._held) > 0
            or self._line.is_longer_than(share)
        )
        if pause == self._is_paused:
            return
        self._is_paused = pause
        if self._liveness is not None:
            self._liveness.is_held = pause
            self._liveness.heard = self._service.tracker.now()
        if pause:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _hold(self, frame: bytes) -> None:
        """Take a frame that comes when it is not simply served."""
        if self.stage != CLOSED:
            self._held.append(frame)
            if self._restriction is not None and self.stage == OPEN:
                self._ask_for_turn()

    def take_turn(self) -> None:
        """Serve what was held, where nobody else would notice that it fails."""
        self._has_turn = True
        try:
            self._go_on()
        except Exception:
            # Otherwise it would never be read from again, and never expire for that.
            logger.exception("session 0x%x: not served any more", self.session)
            self.abort()
        self._has_turn = False

    def _go_on(self) -> None:
        """Serve what was held, as far as it goes now."""
        self._turn_is_due = False
        if self.stage == OPEN and self._outlet.peer_reads:
            self._begin_turn()
            if self._setting is not None and not self._set_watches():
                return
            self._serves = self._outlet.peer_reads
            held, self._held = self._held, []
            served = 0
            while served < len(held) and self._serves:
                served += 1
                if self._restriction is None:
                    self._request(held[served - 1])
                else:
                    self._request_restricted(held[served - 1], self._restriction)
            if self.stage == OPEN:
                # One may have been put back, to come first again.
                held[:served] = self._held
                self._held = held
            if self._restriction is not None:
                self._serves = False
            self._pipeline.mark_dirty(self)
        self.regulate()

    def _request_restricted(self, frame: bytes, restriction: Restriction) -> None:
        verdict = restriction.judge(read_i32_be(frame, 4)) if len(frame) >= _HEADER_BYTES else None
        if verdict is not None:
            self._count_request()
            kind = GOODBYE if verdict.is_final else READY
            self._in_turn(kind, read_i32_be(frame, 0), b"", verdict.code, self._machine.zxid)
            return
        self._request(frame)
        if restriction.is_lifted(self.identities):
            self._restriction = None

    def _begin_turn(self) -> None:
        self._turn_end = self._turns.end()
        self._until_look = REQUESTS_A_LOOK

    def _count_request(self) -> None:
        """End the turn, if it has lasted long enough; the request itself still belongs to it."""
        self._until_look -= 1
        if self._until_look <= 0:
            self._until_look = REQUESTS_A_LOOK
            if self._turns.is_over(self._turn_end):
                self._end_turn()

    def _end_turn(self) -> None:
        """Let the others be served before more of this one is."""
        self.flush()
        if self._serves:
            self._serves = False
            self._ask_for_turn()

    def _ask_for_turn(self) -> None:
        if not self._turn_is_due:
            self._turn_is_due = True
            self._turns.ask(self)

    def _continue(self) -> None:
        """Serve again, after a time in which nothing was."""
        if self._held or self._turn_is_due:
            self._ask_for_turn()
        else:
            self.take_turn()

    def _hold_back(self, frame: bytes) -> None:
        """Put back a frame that is not to be served now; it comes first when it can be."""
        self._serves = False
        self._held.insert(0, frame)

    def _must_wait(self, operation: int, frame: bytes) -> bool:
        """Tell whether a query behind a write has to wait until no write is under way."""
        if self._line.places() >= _PLACES_MAX:
            return True
        if operation in (opcodes.GET_CHILDREN, opcodes.GET_CHILDREN2):
            try:
                node = self._machine.tree.nodes.get(Reader(frame, _HEADER_BYTES).string())
            except DecodeError:
                return False
            # Without room to keep it, a list would be made anew each time.
            tree = self._machine.tree
            return not tree.answers.has_room() or (
                node is not None and node.child_count() > _CHILDREN_MAX
            )
        return False

    def _count_unfinished(self) -> None:
        """Count what has come of a frame that is not whole, with that of all others."""
        size = self._frames.unfinished()
        if size != self._unfinished and self.stage != CLOSED:
            self._unfinished = size
            self._service.keep_unfinished(self, size)

    def _request(self, frame: bytes) -> None:
        if len(frame) < _HEADER_BYTES:
            logger.warning(
                "%s: frame without a header; closing it",
                self._address,
                extra={"address": self._address, "session": self.session},
            )
            self.close()
            return
        self._count_request()
        xid = read_i32_be(frame, 0)
        operation = read_i32_be(frame, 4)
        # Most are one of these, and to compare them is faster than to look them up.
        is_common = operation in (
            opcodes.GET_DATA,
            opcodes.EXISTS,
            opcodes.GET_CHILDREN,
            opcodes.GET_CHILDREN2,
        )
        if is_common or operation in operations.READS:
            is_heavy = len(frame) > _LONG_BYTES or (not is_common and operation in operations.HEAVY)
            if self._line.length:
                if is_heavy or self._must_wait(operation, frame):
                    self._hold_back(frame)
                else:
                    self._put(Waiting(operation, xid, frame[_HEADER_BYTES:], self.identities))
            elif is_heavy and not self._has_turn:
                self._hold_back(frame)
                self._ask_for_turn()
            elif operation in (opcodes.SET_WATCHES, opcodes.SET_WATCHES2):
                self._begin_setting(operation, xid, frame[_HEADER_BYTES:])
            else:
                self._answer(operation, xid, frame, _HEADER_BYTES, self.identities)
                if is_heavy or self._outlet.is_full():
                    self._end_turn()
        elif operation in operations.WRITES:
            self._line.enter_write(len(frame) - _HEADER_BYTES)
            self._pipeline.submit(
                Entry(
                    operation,
                    frame[_HEADER_BYTES:],
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
            self._outlet.reply(PING_XID, self._machine.zxid, OK, b"")
        elif operation == opcodes.AUTH:
            self._authenticate(xid, frame)
        elif operation == opcodes.SASL:
            self._answer_sasl(xid, frame)
        else:
            logger.warning(
                "session 0x%x: unknown operation %d; closing its connection",
                self.session,
                operation,
                extra={"session": self.session, "address": self._address},
            )
            self._in_turn(GOODBYE, xid, b"", UNIMPLEMENTED, -1)

    def _begin_setting(self, operation: int, xid: int, body: bytes) -> None:
        try:
            self._setting = self._queries.watch_setting(operation, body, self)
        except Refused as refusal:
            self._outlet.reply(xid, self._machine.zxid, refusal.code, b"")
        except DecodeError:
            self._outlet.reply(xid, self._machine.zxid, MARSHALLING_ERROR, b"")
        else:
            self._setting_xid = xid
            self._set_watches()

    def _set_watches(self) -> bool:
        """Set watches as long as the turn lasts, and tell whether all are set."""
        setting = self._setting
        assert setting is not None
        while setting.step(_WATCHES_A_LOOK):
            if self._turns.is_over(self._turn_end):
                self._serves = False
                self._ask_for_turn()
                self._pipeline.mark_dirty(self)
                return False
        self._setting = None
        self._outlet.reply(self._setting_xid, self._machine.zxid, OK, b"")
        return True

    def _authenticate(self, xid: int, frame: bytes) -> None:
        try:
            packet = AuthPacket.read(Reader(frame, _HEADER_BYTES))
        except DecodeError:
            self.close()
            return
        error, identities = self._conversation.receive(
            packet.scheme, packet.credentials, self.identities
        )
        # From here on the client is more than before, also for what it has sent already.
        self.identities = identities
        if error != OK:
            logger.warning(
                "session 0x%x: authentication failed from %s, scheme %r",
                self.session,
                self._address,
                # As long as it likes, for all that the client knows.
                (packet.scheme or "")[:40],
                extra={"session": self.session, "address": self._address},
            )
        self._in_turn(GOODBYE if error == AUTH_FAILED else READY, xid, b"", error, 0)

    def _answer_sasl(self, xid: int, frame: bytes) -> None:
        """Answer that no mechanism is offered, as a server without one does: with no token."""
        try:
            Reader(frame, _HEADER_BYTES).string()
        except DecodeError:
            self.close()
            return
        writer = BytesWriter()
        SaslToken(None).write(writer)
        self._in_turn(READY, xid, writer.getvalue(), OK, 0)

    def _in_turn(self, operation: int, xid: int, body: bytes, error: int, zxid: int) -> None:
        """Send a reply that needs no work, behind everything that came before it."""
        self._put(Waiting(operation, xid, body, self.identities, error, zxid))
        self._answer_line()

    def _put(self, place: Waiting) -> None:
        self._line.put(place)
        self._pipeline.waiting_bytes += len(place.body)

    def _answer_line(self) -> None:
        """Answer what is first in line, up to the next write."""
        line = self._line
        while line.can_answer() and not self._outlet.is_overdue:
            place = line.take()
            self._pipeline.waiting_bytes -= len(place.body)
            self._pipeline.work += 1
            if place.operation in operations.READS:
                self._answer(place.operation, place.xid, place.body, 0, place.identities)
                if self._outlet.is_full():
                    self._outlet.flush()
            else:
                self._outlet.reply(place.xid, place.zxid, place.error, place.body)
                if place.operation == GOODBYE:
                    self.close()
        if self._is_paused:
            if self._held and not line.length:
                # Not now, in the middle of a batch.
                self._ask_for_turn()
            self.regulate()

    def _answer(
        self, operation: int, xid: int, data: bytes, start: i64, identities: Identities
    ) -> None:
        queries = self._queries
        error, answer = queries.answer(operation, data, self, identities, self.session, start)
        large = queries.large
        if large is None:
            if len(answer) < LARGE_BYTES:
                self._outlet.reply(xid, self._machine.zxid, error, answer)
            else:
                self._outlet.reply_large(xid, self._machine.zxid, b"", answer, b"")
        else:
            queries.large = None
            head, tail = answer[: queries.large_at], answer[queries.large_at :]
            self._outlet.reply_large(xid, self._machine.zxid, head, large, tail)

    def _is_too_far_ahead(self) -> bool:
        return self._line.is_longer_than(1) or self._pipeline.is_congested(1)
