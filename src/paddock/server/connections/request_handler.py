"""Serves one client's requests: in order, in turns, within limits.

A query is answered at once, from memory, unless writes of the same client are in flight: then it
waits in the reply queue, and is answered right after the write before it was applied and before the
one after it is. Replies that need no log wait in the same queue, so replies never overtake each
other. Only pings are answered at once in any case.

No client can keep the server to itself. A client has its turn (`paddock.server.connections.turns`).
When that is over by the clock, or much was answered, or something heavy, the rest of what it has
sent is held until its next turn. A heavy request waits for a turn in any case. It does not enter
the queue, where it would have to be answered in the middle of a batch, but is held until the queue
is empty; so is a query when the queue is long. While frames are held the connection is not read
from, and the client's silence does not count.

The stages of a connection, which only go forward:

    NEW        nothing is known of the peer; its first four bytes may be a four-letter word
    ATTACHING  the session is being created or attached; frames are held
    OPEN       requests are served
    CLOSING    the end of the session has been proposed; frames are held (the one way back is OPEN)
    CLOSED     nothing is served any more
"""

from __future__ import annotations

import logging
from typing import Final

from librt.strings import read_i32_be
from mypy_extensions import i32, i64

from paddock.errors import (
    MARSHALLING_ERROR,
    OK,
    SESSION_EXPIRED,
    SESSION_MOVED,
    UNIMPLEMENTED,
)
from paddock.protocol import opcodes, operations
from paddock.protocol.framing import LENGTH_BYTES, REQUEST_HEADER_BYTES
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import PING_XID
from paddock.server.connections.admission import AdmittedConnection
from paddock.server.connections.authentication import Answer
from paddock.server.connections.core import Core
from paddock.server.connections.replies import HEAVY_BYTES, Replies
from paddock.server.connections.reply_queue import FINAL, READY, ReplyQueue, Waiting
from paddock.server.connections.send_buffer import ConnectionWatcher, SendBuffer
from paddock.server.replication.proposals import Submitter
from paddock.server.sessions.policy import SessionPolicy
from paddock.server.sessions.tracker import Liveness
from paddock.server.statistics import SAMPLE_EVERY, Tally
from paddock.state.access import Identities
from paddock.state.entry import Entry, Refused
from paddock.state.machine import Outcome
from paddock.state.watch_setting import WatchSetting
from paddock.storage import events

logger: Final = logging.getLogger(__name__)

# How many requests are served between two looks at the clock.
_REQUESTS_A_LOOK: Final = 16
# So many gets in a row take as long as most requests.
_PLAIN_GETS_A_REQUEST: Final = 4
_WATCHES_A_LOOK: Final = 100
# The end of a turn that has none.
_NO_END: Final = 1e300

NEW: Final = 0
ATTACHING: Final = 1
OPEN: Final = 2
CLOSING: Final = 3
CLOSED: Final = 4


class RequestHandler(Submitter):
    """The part of a connection that serves requests, once there is a session.

    It is `Regulated` and a `TurnTaker` by its methods; see `Connection` for why only by these.
    """

    def __init__(
        self, core: Core, connection: AdmittedConnection, address: str, tls: object
    ) -> None:
        super().__init__()
        self.stage: i64 = NEW
        # None once it is closed: a circle of references would keep all parts in memory.
        self.connection: AdmittedConnection | None = connection
        self.address = address
        # The session, as far as its life is concerned; None for a read-only one.
        self.liveness: Liveness | None = None
        self.tally = Tally()
        # Whether the peer is not read from for now, and whether something that was read from it
        # has not been passed on yet.
        self.is_paused = False
        self.is_behind = False
        # Of the core no more than this: in plain Python an object with thirty attributes has a dict
        # of its own, with five times the memory, and a get took 4 % more. There are 28.
        self._core = core
        self._proposer = core.proposer
        self._replica = core.replica
        self._tracker = core.tracker
        self._authentication = core.authentication(address, tls)
        # The generation under which the connection is attached to its session.
        self._generation: i64 = 0
        # Frames that could not be served when they came, with their lengths; at most those of one
        # read.
        self._held: list[bytes] = []
        # Whether a frame is served when it comes. Invariant: then none is held.
        self._serves = False
        # What the session may not do; with a policy no frame is served when it comes.
        self._policy: SessionPolicy | None = None
        # Whether it has asked for its next turn, whether it has its turn now, when that ends, and
        # how many requests may be served before the next look at the clock.
        self._turn_is_due = False
        self._has_turn = False
        self._turn_end = 0.0
        self._until_look: i64 = _REQUESTS_A_LOOK
        # The watches that are being set again, turn by turn, and the xid of that request.
        self._setting: WatchSetting | None = None
        self._setting_xid = 0
        config = core.config
        self.queue = ReplyQueue(
            config.max_requests_per_connection, config.max_request_bytes_per_connection
        )
        self.buffer = SendBuffer(core.statistics, core.backlog)
        self.buffer.lease = core.lease
        self.watcher = ConnectionWatcher(core.replica, self.buffer)
        self.watcher.identities = self._authentication.start()
        self.watcher.submitter = self
        self._replies = Replies(core, self.queue, self.buffer, self.watcher)

    def about(self) -> dict[str, object]:
        """Return the fields of a log record about this connection."""
        return {"address": self.address, "session": self.watcher.session}

    # The session.

    def attach(self, generation: i64, liveness: Liveness) -> None:
        """Attach the connection to its session."""
        self._generation = generation
        liveness.is_held = self.is_paused
        liveness.connection = self.connection
        self.liveness = liveness

    def open(self, policy: SessionPolicy | None) -> None:
        """Serve requests from now on."""
        self._policy = policy
        self.stage = OPEN
        self._serve_held()

    def suspend(self) -> None:
        """Hold what comes from now on: the end of the session has been proposed."""
        if self.stage == OPEN:
            self.stage = CLOSING
            self.pause()

    def resume(self) -> None:
        """Serve what was held: the session lives."""
        if self.stage == CLOSING:
            self.stage = OPEN
            self.wake()

    def refuse_held(self) -> None:
        """Answer what was held with SESSION_EXPIRED.

        Unless writes are in flight, which the end of the session has overtaken: they will be
        refused when they are applied, and nothing behind them may be answered before.
        """
        if self.queue.length:
            return
        if self._setting is not None:
            self._replies.send(self._setting_xid, SESSION_EXPIRED)
        for frame in self._held:
            if len(frame) >= LENGTH_BYTES + REQUEST_HEADER_BYTES:
                self._replies.send(read_i32_be(frame, LENGTH_BYTES), SESSION_EXPIRED)

    def close(self) -> None:
        """Serve nothing more; what was answered can still be sent."""
        self.stage = CLOSED
        self._serves = False
        self._replies.clear()
        self._held.clear()
        self._authentication.close()
        if self._setting is not None:
            self._setting.abandon()
            self._setting = None
        self._core.backpressure.remove(self)
        liveness, connection = self.liveness, self.connection
        if liveness is not None and connection is not None and liveness.connection is connection:
            if liveness.is_held and self.buffer.peer_reads:
                # Until now we did not read; from now on silence is the client's own.
                liveness.heard = self._tracker.now()
            liveness.connection = None
            liveness.is_held = False
        self.connection = None
        self.watcher.submitter = None

    # Reading.

    def receive(self, frames: bytes, position: i64, count: i64, last: i64) -> None:
        """Serve the `count` frames of one read, or hold them.

        The length of the first one is at `position`, and the last one, without its length, at
        `last`. They are served where they are: to copy each of them took a tenth of a get.
        """
        liveness, tally = self.liveness, self.tally
        tally.received += count
        last_length: int = read_i32_be(frames, last - LENGTH_BYTES)
        if liveness is not None:
            liveness.heard = self._tracker.now()
            if last_length >= REQUEST_HEADER_BYTES:
                tally.receive(
                    read_i32_be(frames, last), read_i32_be(frames, last + 4), liveness.heard
                )
        if count > _REQUESTS_A_LOOK:
            self.buffer.expect_much()
            self._begin_turn()
        else:
            # So few fit into one turn.
            self._turn_end = _NO_END
        end = last + last_length
        while position < end:
            length: int = read_i32_be(frames, position)
            start = position + LENGTH_BYTES
            position = start + length
            if self._serves:
                position = self._request(frames, start, position, end)
            elif self.stage != CLOSED:
                self._held.append(frames[start - LENGTH_BYTES : position])
                if self._policy is not None and self.stage == OPEN:
                    self._ask_for_turn()
        if not self._serves or (
            self.queue.length and (self.queue.is_over(1) or self._proposer.is_congested(1))
        ):
            self.regulate()

    def pause(self) -> None:
        """Hold what comes from now on."""
        self._serves = False
        self.regulate()

    def wake(self) -> None:
        """Serve again, after a pause."""
        if self._held or self._turn_is_due:
            self._ask_for_turn()
        else:
            self.take_turn()

    def regulate(self) -> None:
        transport = self.buffer.transport
        if transport is None or self.stage == CLOSED:
            return
        # Reading resumes at half the length at which it paused.
        share = 2 if self.is_paused else 1
        congested = self.queue.length > 0 and self._proposer.is_congested(share)
        if congested:
            self._core.backpressure.add(self)
        pause = (
            congested
            or self.stage in (ATTACHING, CLOSING)
            or not self.buffer.peer_reads
            or self.is_behind
            or len(self._held) > 0
            or self.queue.is_over(share)
        )
        if pause == self.is_paused:
            return
        self.is_paused = pause
        if self.liveness is not None:
            self.liveness.is_held = pause
            self.liveness.heard = self._tracker.now()
        if pause:
            transport.pause_reading()
        else:
            transport.resume_reading()

    # Turns.

    def take_turn(self) -> None:
        """Serve what was held."""
        self._has_turn = True
        try:
            self._serve_held()
        except Exception:
            # Without this it would never be read from again, and never expire for that.
            logger.exception("session 0x%x: not served any more", self.watcher.session)
            self.abort()
        self._has_turn = False

    def _serve_held(self) -> None:
        """Serve what was held, as far as possible now."""
        self._turn_is_due = False
        if self.stage == OPEN and self.buffer.peer_reads and not self._authentication.is_busy:
            self._begin_turn()
            if self._setting is not None and not self._set_watches():
                return
            self._serves = self.buffer.peer_reads
            held, self._held = self._held, []
            served = 0
            while served < len(held) and self._serves:
                served += 1
                frame = held[served - 1]
                if self._policy is None:
                    self._request(frame, LENGTH_BYTES, len(frame), len(frame))
                else:
                    self._request_under(self._policy, frame)
            if self.stage == OPEN:
                # One may have been put back, to come first again.
                held[:served] = self._held
                self._held = held
            if self._policy is not None:
                self._serves = False
            self._replica.mark_dirty(self)
        self.regulate()

    def _begin_turn(self) -> None:
        self._turn_end = self._core.turns.end()
        self._until_look = _REQUESTS_A_LOOK
        self._begin_sample()

    def _look_at_clock(self) -> None:
        """End the turn, if it has lasted long enough; the request itself still belongs to it."""
        self._until_look = _REQUESTS_A_LOOK
        if self._turn_end == _NO_END:
            self._begin_sample()
        elif self._core.turns.is_over(self._turn_end):
            self._end_turn()

    def _begin_sample(self) -> None:
        """Measure how long queries take from here on, if it is time for that."""
        statistics, tally = self._core.statistics, self.tally
        if (
            statistics.packets_received >= statistics.sample_at
            and not self.queue.length
            and tally.operation in operations.READS
        ):
            statistics.sample_at = statistics.packets_received + SAMPLE_EVERY
            tally.asked_at = self._core.turns.now()
            tally.is_due = True

    def _settle(self) -> None:
        """Count what was answered since the last flush."""
        statistics, tally = self._core.statistics, self.tally
        tally.is_due = False
        if tally.writes:
            tally.settle(statistics)
        if tally.asked_at >= 0 and self._held:
            # Not all of it is answered yet.
            tally.is_due = True
        elif tally.asked_at >= 0:
            if not self.queue.length:
                statistics.sampled((self._core.turns.now() - tally.asked_at) * 1000)
            # If something is in the queue, there is a write in it, which is measured elsewhere.
            tally.asked_at = -1.0

    def _end_turn(self) -> None:
        """Let others be served before more of this client is."""
        self.flush()
        if self._serves:
            self._serves = False
            self._ask_for_turn()

    def _ask_for_turn(self) -> None:
        if not self._turn_is_due:
            self._turn_is_due = True
            self._core.turns.ask(self)

    def _put_back(self, frame: bytes) -> None:
        """Put back a frame that cannot be served now; it comes first when it can be."""
        self._serves = False
        self._held.insert(0, frame)

    # Requests.

    def _request(self, data: bytes, start: i64, end: i64, last_end: i64) -> i64:
        """Serve the request that `data` holds from `start` to `end`, its length before it.

        Returns the end of what it has taken: gets, and queries that have to wait, take others with
        them, up to `last_end`.
        """
        body = start + REQUEST_HEADER_BYTES
        if body > end:
            logger.warning(
                "%s: frame without a header; closing it", self.address, extra=self.about()
            )
            self._close(events.PROTOCOL_ERROR)
            return end
        self._until_look -= 1
        if self._until_look <= 0:
            self._look_at_clock()
        xid = read_i32_be(data, start)
        operation = read_i32_be(data, start + 4)
        # Most are one of these, or set data or create. To compare is faster than to look up.
        is_common = operation in (
            opcodes.GET_DATA,
            opcodes.EXISTS,
            opcodes.GET_CHILDREN,
            opcodes.GET_CHILDREN2,
        )
        if is_common or (
            operation not in (opcodes.SET_DATA, opcodes.CREATE) and operation in self._core.reads
        ):
            is_heavy = end - start > HEAVY_BYTES or (
                not is_common and operation in operations.HEAVY
            )
            if self.queue.length:
                if is_heavy or self._replies.must_wait(operation, data, body, end):
                    self._put_back(data[start - LENGTH_BYTES : end])
                else:
                    return self._replies.enqueue_queries(data, start - LENGTH_BYTES, end, last_end)
            elif is_heavy and not self._has_turn:
                self._put_back(data[start - LENGTH_BYTES : end])
                self._ask_for_turn()
            elif not is_common and operation in (opcodes.SET_WATCHES, opcodes.SET_WATCHES2):
                self._begin_set_watches(operation, xid, data[body:end])
            else:
                # One that wants a watch ends with another byte.
                if operation == opcodes.GET_DATA and not data[end - 1]:
                    # And as many behind it as may be served before the next look at the clock. If
                    # the last look has ended the turn, only this one still belongs to it.
                    count_max: i64 = 1
                    if self._serves:
                        count_max = self._until_look * _PLAIN_GETS_A_REQUEST
                    count, end = self._replies.answer_gets(
                        data, start - LENGTH_BYTES, last_end, count_max, self.watcher.identities
                    )
                    self._until_look -= count // _PLAIN_GETS_A_REQUEST
                else:
                    self._replies.answer(operation, xid, data, body, end, self.watcher.identities)
                if is_heavy or self.buffer.is_full():
                    self._end_turn()
        elif operation == opcodes.SET_DATA:
            self._core.operations.set_data += 1
            self._propose(operation, xid, data[body:end])
        elif operation == opcodes.CREATE:
            self._core.operations.create += 1
            self._propose(operation, xid, data[body:end])
        elif (proposed := self._core.proposed.get(operation)) is not None:
            self._core.operations.add(operation)
            self._propose(proposed, xid, data[body:end])
        elif operation == opcodes.CHANGES:
            self._pull(xid, data[start - LENGTH_BYTES : end])
        else:
            self._request_other(operation, xid, data[body:end])
        return end

    def _propose(self, operation: i32, xid: i32, body: bytes) -> None:
        watcher, flags = self.watcher, self._core.flags
        self.queue.enter_write(len(body))
        self._proposer.submit(
            Entry(
                operation,
                body,
                watcher.session,
                self._generation,
                xid,
                0,
                flags,
                watcher.identities,
            ),
            self,
        )

    def _request_other(self, operation: i32, xid: i32, body: bytes) -> None:
        """Serve a request that neither reads nor writes nodes, or refuse an unknown one."""
        if operation in operations.BY_NUMBER:
            self._core.operations.add(operation)
        if operation == opcodes.PING:
            self._replies.send(PING_XID, OK)
        elif operation in (opcodes.AUTH, opcodes.SASL):
            try:
                self._authenticate(operation, xid, Reader(body))
            except DecodeError:
                self._close(events.PROTOCOL_ERROR)
        else:
            logger.warning(
                "session 0x%x: unknown operation %d; closing its connection",
                self.watcher.session,
                operation,
                extra=self.about(),
            )
            self._reply_in_order(FINAL, xid, b"", UNIMPLEMENTED, -1)

    def _pull(self, xid: int, frame: bytes) -> None:
        """Answer a pull of a change feed, which is heavy."""
        if self.queue.length or not self._has_turn:
            self._put_back(frame)
            if not self.queue.length:
                self._ask_for_turn()
            return
        self._core.operations.add(opcodes.CHANGES)
        try:
            body = frame[LENGTH_BYTES + REQUEST_HEADER_BYTES :]
            error, answer = self._core.feeds.pull(body, self.watcher)
        except DecodeError:
            error, answer = MARSHALLING_ERROR, b""
        self._replies.send_answer(xid, error, answer)
        self._end_turn()

    def _request_under(self, policy: SessionPolicy, frame: bytes) -> None:
        has_header = len(frame) >= LENGTH_BYTES + REQUEST_HEADER_BYTES
        rejection = policy.check(read_i32_be(frame, LENGTH_BYTES + 4)) if has_header else None
        if rejection is not None:
            self._until_look -= 1
            if self._until_look <= 0:
                self._look_at_clock()
            code, is_final = rejection
            kind, xid = FINAL if is_final else READY, read_i32_be(frame, LENGTH_BYTES)
            self._reply_in_order(kind, xid, b"", code, self._core.machine.zxid)
            return
        self._request(frame, LENGTH_BYTES, len(frame), len(frame))

    def _begin_set_watches(self, operation: int, xid: int, body: bytes) -> None:
        self._core.operations.add(operation)
        try:
            self._setting = self._core.queries.watch_setting(operation, body, self.watcher)
        except Refused as refusal:
            self._replies.send(xid, refusal.code)
        except DecodeError:
            self._replies.send(xid, MARSHALLING_ERROR)
        else:
            self._setting_xid = xid
            self._set_watches()

    def _set_watches(self) -> bool:
        """Set watches as long as the turn lasts, and return whether all are set."""
        setting = self._setting
        assert setting is not None
        while setting.step(_WATCHES_A_LOOK):
            if self._core.turns.is_over(self._turn_end):
                self._serves = False
                self._ask_for_turn()
                self._replica.mark_dirty(self)
                return False
        self._setting = None
        self._replies.send(self._setting_xid, OK)
        return True

    def _authenticate(self, operation: int, xid: int, request: Reader) -> None:
        answer = self._authentication.receive(
            operation, request, self.watcher.identities, lambda late: self._resume_with(xid, late)
        )
        if answer is None:
            # What comes next may depend on who the client is.
            self.pause()
        else:
            self._conclude(xid, answer)

    def _resume_with(self, xid: int, answer: Answer) -> None:
        """Answer a token that took long, and serve what came meanwhile."""
        if self.stage == CLOSED:
            return
        try:
            self._conclude(xid, answer)
            self._replica.mark_dirty(self)
            self.wake()
        except Exception:
            # As in a turn: else it would never be read from again.
            logger.exception("session 0x%x: not served any more", self.watcher.session)
            self.abort()

    def _conclude(self, xid: int, answer: Answer) -> None:
        """Answer a packet or a token."""
        known = self.watcher.identities
        # The new identities count from here on, also for what the client has sent already.
        self.watcher.identities = answer.identities
        if self._policy is not None and self._policy.is_lifted(answer.identities):
            self._policy = None
        self._tell_identities(known, answer.identities)
        if answer.failure:
            logger.warning(
                "session 0x%x: authentication failed from %s, %s",
                self.watcher.session,
                self.address,
                answer.failure,
                extra=self.about(),
            )
        kind = FINAL if answer.is_final else READY
        self._reply_in_order(kind, xid, answer.body, answer.error, 0)

    def _tell_identities(self, known: Identities, identities: Identities) -> None:
        """Write down which identities came on top of the known ones, if any did."""
        if identities is not known:
            self._replica.journal.add(
                events.AUTHENTICATED,
                session=self.watcher.session,
                address=self.where,
                identities=Identities(identities.entries[len(known.entries) :]),
            )

    # Replies.

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        if self.stage == CLOSED:
            return
        self._replica.mark_dirty(self)
        self.queue.leave_write(len(entry.body))
        self.tally.writes += 1
        self.tally.is_due = True
        if outcome.error == SESSION_MOVED:
            self._close(events.MOVED)
            return
        self.buffer.reply(entry.xid, outcome.zxid, outcome.error, outcome.body)
        if outcome.session is not None:
            self._close(events.CLOSED)
        else:
            self._answer_queue()

    def refuse(self, entry: Entry, code: int) -> None:
        if self.stage == CLOSED:
            return
        self.queue.leave_write(len(entry.body))
        self._replies.send(entry.xid, code)
        self._answer_queue()
        self._replica.mark_dirty(self)

    def decline(self, entry: Entry, code: int) -> None:
        self.queue.withdraw_write(len(entry.body))
        self._reply_in_order(READY, entry.xid, b"", code, self._core.machine.zxid)
        self._replica.mark_dirty(self)

    def flush(self) -> None:
        if self.tally.is_due:
            self._settle()
        buffer = self.buffer
        # As long as the log has something to do, its thread may wait for us.
        buffer.flush(len(self._proposer.in_flight) > 0)
        if buffer.is_overdue and self.connection is not None:
            self.connection.drop()

    def abort(self) -> None:
        if self.connection is not None:
            self.connection.abort(events.FAULT)
        else:
            self.buffer.abort()

    def _close(self, reason: str) -> None:
        if self.connection is not None:
            self.connection.close(reason)

    def _reply_in_order(self, kind: int, xid: int, body: bytes, error: int, zxid: int) -> None:
        """Send a reply that is ready, behind everything that came before it."""
        self._replies.enqueue(Waiting(kind, body, 1, self.watcher.identities, xid, error, zxid))
        self._answer_queue()

    def _answer_queue(self) -> None:
        """Answer what is first in the queue, up to the next write."""
        if reason := self._replies.answer_waiting():
            self._close(reason)
        if self.is_paused:
            if self._held and not self.queue.length:
                # Not now, in the middle of a batch.
                self._ask_for_turn()
            self.regulate()
