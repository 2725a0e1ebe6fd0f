"""The pending requests of a session, FIFO: those to be sent, and those in flight.

When a connection is lost, the replies of requests in flight are lost with it:

* Idempotent requests are sent again, before all others, up to a limit: they may be the reason. All
  others fail: their outcome is unknown.
* Unsent requests wait, if the connection was of use. Otherwise they count as lost, too: or they
  would wait forever for a server that drops every connection.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from paddock.client.requests.encoder import COUNTED_HEADER_BYTES, REQUEST_BYTES_MAX, REQUEST_HEADER
from paddock.client.requests.pending_request import Failure, PendingRequest
from paddock.errors import ConnectionLostError

LOST: Final = Failure(ConnectionLostError)

_XID_MAX: Final = 2**31 - 1
# How much is written at a time: enough to cost little, and not so much that the loop stands still.
_WRITE_BYTES_MAX: Final = 1 << 18
# With how many connections a request may be lost before it is given up.
_LOSSES_MAX: Final = 10


class InFlight:
    """All requests of one session whose futures are not done."""

    __slots__ = ("_xid", "sent", "unsent")

    def __init__(self, last_xid: int = 0) -> None:
        # Each in its order. Every request passes through both, and the dispatcher
        # adds to the first and takes from the second directly.
        self.unsent: deque[PendingRequest[Any]] = deque()
        self.sent: deque[PendingRequest[Any]] = deque()
        # The number of the last one that was sent.
        self._xid = last_xid

    @property
    def answered(self) -> int:
        """A number that changes with every answer."""
        return self._xid - len(self.sent)

    def take(self, now: float) -> bytes:
        """Move requests of one write in flight; return them encoded."""
        unsent, sent, xid = self.unsent, self.sent, self._xid
        frames: list[bytes] = []
        size = 0
        while unsent and size < _WRITE_BYTES_MAX:
            request = unsent.popleft()
            if request.future.cancelled():
                continue
            xid = xid + 1 if xid < _XID_MAX else 1
            request.xid = xid
            request.sent_at = now
            length = COUNTED_HEADER_BYTES + len(request.body)
            frames += (REQUEST_HEADER.pack(length, xid, request.operation), request.body)
            size += 4 + length
            sent.append(request)
        self._xid = xid
        return b"".join(frames)

    def lose_connection(self, *, was_of_use: bool) -> None:
        """Decide what is sent again on the next connection, and let the rest fail."""
        sent, unsent = self.sent, self.unsent
        self.sent, self.unsent = deque(), deque()
        for request in sent:
            self._lose(request, may_repeat=request.is_repeatable)
        if was_of_use:
            self.unsent.extend(unsent)
        else:
            for request in unsent:
                self._lose(request, may_repeat=True)

    def adapt(self) -> None:
        """Adapt unsent requests to a new connection."""
        for request in self.unsent:
            if request.on_connect is not None:
                request.on_connect()

    def fail(self, failure: Failure, unsent: Failure) -> None:
        """Fail all of them, those that were never sent with `unsent`."""
        requests = [*self.sent, *self.unsent]
        self.sent.clear()
        self.unsent.clear()
        for request in requests:
            request.fail(failure if request.xid else unsent)

    def may_set_watch(self, path: str) -> bool:
        """Return whether one of them may set or remove a watch on this path."""
        requests = (*self.sent, *self.unsent)
        return any(request.on_reply is not None and request.path == path for request in requests)

    def _lose(self, request: PendingRequest[Any], *, may_repeat: bool) -> None:
        request.losses += 1
        if may_repeat and request.losses < _LOSSES_MAX:
            self.unsent.append(request)
        else:
            request.fail(_loss_of(request))


def _loss_of(request: PendingRequest[Any]) -> Failure:
    """Describe the loss of a request that is not sent again."""
    if not request.xid:
        reason = f"it was not sent: {request.losses} servers in a row took us and dropped us"
        return Failure(ConnectionLostError, reason)
    size = len(request.body)
    hints = []
    if request.is_repeatable:
        hints.append(f"so were {request.losses - 1} before it")
    if size >= REQUEST_BYTES_MAX:
        hints.append(f"the request has {size} bytes, which may be more than the server takes")
    if not hints:
        return LOST
    return Failure(ConnectionLostError, f"{ConnectionLostError.meaning} ({', '.join(hints)})")
