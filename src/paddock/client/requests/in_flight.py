"""The pending requests of a session, FIFO: those to be sent, and those in flight.

When a connection is lost, the replies of requests in flight are lost with it:

* Idempotent requests are sent again, before all others, up to a limit: they may be the reason. All
  others fail: their outcome is unknown.
* A write that was sent to a server in read-only mode had no effect, and is sent again, too.
* Unsent requests wait, if the connection was of use. Otherwise they count as lost, too: or they
  would wait forever for a server that drops every connection.

In an exact session (`paddock.protocol.exact`) no write fails for that:

* What was in flight is undecided, until the next connection has terms. What they list was applied,
  and is answered with its own reply. The rest was not, and never will be: it is sent again, in its
  order and before all others.
* A read is sent again in its place among what was not applied. So it may see a write that was sent
  after it.
* At most a window of writes is in flight; what follows them waits.
* A patient request waits for that, however long it takes; all others fail when the session may be
  over.
* The outcome stays unknown if the terms cannot be about this connection: the service was restored,
  or somebody else has written in the session.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any, Final

from paddock.client.requests.encoder import COUNTED_HEADER_BYTES, REQUEST_BYTES_MAX, REQUEST_HEADER
from paddock.client.requests.pending_request import Failure, PendingRequest
from paddock.client.requests.request_counts import RequestCounts
from paddock.errors import OK, ConnectionLostError, NotAppliedError, ReplyLostError
from paddock.protocol.exact import ExactTerms, KeptReply
from paddock.protocol.jute import DecodeError, Reader

LOST: Final = Failure(ConnectionLostError)
_REPLY_LOST: Final = Failure(ReplyLostError)

_XID_MAX: Final = 2**31 - 1
# How much is written at a time: enough to cost little, and not so much that the loop stands still.
_WRITE_BYTES_MAX: Final = 1 << 18
# With how many connections a request may be lost before it is given up.
_LOSSES_MAX: Final = 10
_ROOM_MIN: Final = 64
# The upper half of a zxid, which changes when a service is restored.
_EPOCH_BITS: Final = 32


class InFlight:
    """All requests of one session whose futures are not done."""

    __slots__ = (
        "_epoch",
        "_generation",
        "_is_read_only",
        "_lost_generation",
        "_room",
        "_settled",
        "_undecided",
        "_window",
        "_writes_max",
        "_xid",
        "_xid_before",
        "_xids_before",
        "counts",
        "is_held",
        "sent",
        "unsent",
        "writes",
    )

    def __init__(self, last_xid: int = 0) -> None:
        # Each in its order. Every request passes through both, and the dispatcher
        # adds to the first and takes from the second directly.
        self.unsent: deque[PendingRequest[Any]] = deque()
        self.sent: deque[PendingRequest[Any]] = deque()
        self.counts = RequestCounts()
        # The number of the last one that was sent, and of the last one before the first; and how
        # many went before number 1, each time that it came again.
        self._xid = last_xid
        self._xid_before = last_xid
        self._xids_before = 0
        # How many writes are in flight, how many may be, now and in general, and whether the first
        # unsent request is a write that has to wait for that. The dispatcher counts down.
        self.writes = 0
        self._writes_max = _XID_MAX
        self._window = _XID_MAX
        self.is_held = False
        # What the last connection has as an exact one: the generation (0: it is not exact), and
        # the epoch of its zxids.
        self._generation = 0
        self._epoch = 0
        # Whether its server is in read-only mode.
        self._is_read_only = False
        # What was in flight on a lost connection, and its generation.
        self._undecided: deque[PendingRequest[Any]] = deque()
        self._lost_generation = 0
        # Writes that were applied, with their replies, which are to be answered.
        self._settled: list[tuple[PendingRequest[Any], KeptReply]] = []
        # How many may wait without a connection before those that are done are looked for.
        self._room = _ROOM_MIN

    @property
    def answered(self) -> int:
        """A number that changes with every answer."""
        return self._xid - len(self.sent)

    @property
    def queued(self) -> int:
        """How many are to be sent, or may have to be once more."""
        # Those that have failed already are taken out later.
        unsent = sum(not request.future.done() for request in self.unsent)
        return unsent + len(self._undecided)

    @property
    def sent_in_all(self) -> int:
        """How many were sent; one that is sent again counts again."""
        return self._xids_before + self._xid - self._xid_before

    @property
    def answered_in_all(self) -> int:
        """How many have a reply, with a result or an error."""
        return self.sent_in_all - len(self.sent) - self.counts.lost + self.counts.settled

    def open_window(self, is_open: bool) -> None:
        """Let more writes be in flight than the window has, for as long as it is open."""
        self._writes_max = _XID_MAX if is_open else self._window

    def wait(self, request: PendingRequest[Any]) -> None:
        """Let a request wait for the next connection, until it is done."""
        if len(self.unsent) >= self._room:
            # Else what callers have given up, or we have, would pile up.
            self.unsent = deque(one for one in self.unsent if not one.future.done())
            self._room = max(_ROOM_MIN, 2 * len(self.unsent))
        self.unsent.append(request)

    def take(self, now: float) -> bytes:
        """Move requests of one write in flight; return them encoded."""
        unsent, sent, xid = self.unsent, self.sent, self._xid
        self.is_held = False
        frames: list[bytes] = []
        size = 0
        while unsent and size < _WRITE_BYTES_MAX:
            request = unsent.popleft()
            if request.future.done():
                continue
            if not request.is_repeatable:
                if self.writes >= self._writes_max:
                    unsent.appendleft(request)
                    self.is_held = True
                    break
                self.writes += 1
            xid = xid + 1 if xid < _XID_MAX else self._first_again()
            request.xid = xid
            request.sent_at = now
            length = COUNTED_HEADER_BYTES + len(request.body)
            frames.append(REQUEST_HEADER.pack(length, xid, request.operation))
            frames.append(request.body)
            size += 4 + length
            sent.append(request)
        self._xid = xid
        return b"".join(frames)

    def _first_again(self) -> int:
        """Return the number after the last one."""
        self._xids_before += _XID_MAX
        return 1

    def lose_connection(self, *, was_of_use: bool) -> None:
        """Decide what is sent again on the next connection, and let the rest fail.

        In an exact session that is decided by `begin`.
        """
        sent, unsent = self.sent, self.unsent
        self.sent, self.unsent = deque(), deque()
        self.counts.lost += len(sent)
        self.writes = 0
        if self._generation:
            self._undecided, self._lost_generation = sent, self._generation
        elif self._is_read_only:
            for request in sent:
                self._lose_again(request, self.unsent)
        else:
            for request in sent:
                self._lose(request, may_repeat=request.is_repeatable)
        if was_of_use:
            self.unsent.extend(unsent)
        else:
            for request in unsent:
                self._lose(request, may_repeat=True)

    def begin(self, terms: ExactTerms | None, *, is_read_only: bool = False) -> None:
        """Begin with a connection; decide what was undecided.

        What was applied is answered by `deliver`. A server in read-only mode has no terms: reads
        are sent to it, and writes stay undecided.
        """
        undecided, self._undecided = self._undecided, deque()
        again: deque[PendingRequest[Any]] = deque()
        replies = self._replies_to_lost(terms)
        for request in undecided:
            if request.is_repeatable:
                self._lose_again(request, again)
            elif terms is None and is_read_only:
                self._undecided.append(request)
            elif replies is None or terms is None:
                self.fail_one(request, LOST)
            elif request.xid in replies:
                self._settled.append((request, replies[request.xid]))
            elif request.xid <= self._confirmed(terms):
                self.fail_one(request, LOST)
            else:
                self._lose_again(request, again)
        again.extend(self.unsent)
        self.unsent = again
        self._generation = 0
        self._is_read_only = is_read_only
        self._window = _XID_MAX
        if terms is not None:
            self._generation, self._window = terms.generation, terms.window
            self._epoch = terms.zxid >> _EPOCH_BITS
        self._writes_max = self._window

    def deliver(self) -> None:
        """Answer the writes that were applied before the connection was lost."""
        settled, self._settled = self._settled, []
        for request, reply in settled:
            if reply.body is None and reply.error == OK:
                self.fail_one(request, _REPLY_LOST)
                continue
            self.counts.settled += 1
            error, body = reply.error, reply.body or b""
            if 0 <= reply.failed < len(request.body):
                # The header of such a reply says OK.
                error, body = OK, reply.refusal()
            # What cannot be decoded has told its future so.
            with suppress(DecodeError):
                refused = request.answer(error, Reader(body))
                if refused is not None:
                    self.counts.refuse(refused)

    def _replies_to_lost(self, terms: ExactTerms | None) -> dict[int, KeptReply] | None:
        """Return the replies to writes of the lost connection; None if nobody knows them."""
        lost = self._lost_generation
        if (
            terms is None
            or terms.zxid >> _EPOCH_BITS != self._epoch
            or terms.generation <= lost
            or terms.kept_generation > lost
        ):
            return None
        if terms.kept_generation < lost:
            return {}
        return {reply.xid: reply for reply in terms.replies()}

    def _confirmed(self, terms: ExactTerms) -> int:
        """Return the xid up to which replies to writes of the lost connection are forgotten."""
        return terms.confirmed if terms.kept_generation == self._lost_generation else 0

    def _lose_again(self, request: PendingRequest[Any], again: deque[PendingRequest[Any]]) -> None:
        """Have a request that had no effect sent again, up to a limit."""
        request.losses += 1
        if request.losses >= _LOSSES_MAX:
            self.fail_one(request, _loss_of(request, is_known=True))
            return
        if not request.is_repeatable:
            # As if it had never been sent.
            request.xid = 0
        again.append(request)

    def adapt(self) -> None:
        """Adapt unsent requests to a new connection."""
        for request in self.unsent:
            if request.on_connect is not None:
                request.on_connect()

    def fail(self, failure: Failure, unsent: Failure, *, also_patient: bool = True) -> None:
        """Fail all of them, those that have surely no effect with `unsent`.

        Without `also_patient` there is no connection, and patient ones wait for the next.
        """

        def stays(request: PendingRequest[Any]) -> bool:
            return request.is_patient and not also_patient

        self.deliver()
        requests = [*self._undecided, *self.sent, *self.unsent]
        self._undecided = deque(filter(stays, self._undecided))
        self.unsent = deque(filter(stays, self.unsent))
        self.counts.lost += len(self.sent)
        self.sent.clear()
        self.writes = 0
        for request in requests:
            if not stays(request):
                self.fail_one(request, failure if request.xid else unsent)

    def fail_one(self, request: PendingRequest[Any], failure: Failure) -> None:
        """Fail a request that is none of them any more, unless it is done."""
        if not request.future.done():
            self.counts.fail(failure.kind.__name__)
            request.fail(failure)

    def may_set_watch(self, path: str) -> bool:
        """Return whether one of them may set or remove a watch on this path."""
        requests = (*self._undecided, *self.sent, *self.unsent)
        return any(request.on_reply is not None and request.path == path for request in requests)

    def _lose(self, request: PendingRequest[Any], *, may_repeat: bool) -> None:
        request.losses += 1
        if may_repeat and request.losses < _LOSSES_MAX:
            self.unsent.append(request)
        else:
            self.fail_one(request, _loss_of(request))


def _loss_of(request: PendingRequest[Any], is_known: bool = False) -> Failure:
    """Describe the loss of a request that is not sent again; it may be known to have no effect."""
    kind: type[ConnectionLostError] = ConnectionLostError
    reason, hints = kind.meaning, []
    may_be_applied = True
    if is_known and not request.is_repeatable:
        kind, may_be_applied = NotAppliedError, False
        reason = f"it had no effect: {request.losses} connections were lost with it"
    elif not request.xid:
        reason = f"it was not sent: {request.losses} servers in a row took us and dropped us"
        return Failure(kind, reason, may_be_applied=False)
    elif request.is_repeatable:
        hints.append(f"so were {request.losses - 1} before it")
    size = len(request.body)
    if size >= REQUEST_BYTES_MAX:
        hints.append(f"the request has {size} bytes, which may be more than the server takes")
    if hints:
        reason = f"{reason} ({', '.join(hints)})"
    return Failure(kind, reason, may_be_applied=may_be_applied)
