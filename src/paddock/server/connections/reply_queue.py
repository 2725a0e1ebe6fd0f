"""The FIFO that keeps one connection's replies in the order of its requests.

Only what waits has an entry: queries behind a write, and replies that are ready but must not
overtake one. Gets and exists that come one after the other in one read share an entry, since most
of the cost of one that waits would be its entry. Writes in flight are only counted, since they are
answered in the order in which they were submitted; an entry remembers how many of them are ahead
of it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i32, i64, mypyc_attr

from paddock.errors import OK
from paddock.state.access import Identities

# What waits: queries; a reply that is ready; one after which the connection is closed.
QUERIES: Final = 0
READY: Final = 1
FINAL: Final = 2


@mypyc_attr(acyclic=True)
class Waiting:
    """Some queries in a row, or a reply, in the queue."""

    __slots__ = ("behind", "body", "count", "error", "identities", "kind", "xid", "zxid")

    def __init__(
        self,
        kind: int,
        body: bytes,
        count: i64,
        identities: Identities,
        xid: i32 = 0,
        error: i32 = OK,
        zxid: i64 = 0,
    ) -> None:
        self.kind = kind
        # The frames of queries, each with its length before it; the body of a reply that is ready.
        self.body = body
        self.count: i64 = count
        # The client's identities when it sent the request.
        self.identities = identities
        # The header of a reply that is ready.
        self.xid: i32 = xid
        self.error: i32 = error
        self.zxid: i64 = zxid
        # How many writes must be answered first.
        self.behind: i64 = 0


class ReplyQueue:
    """The requests of one connection that are not answered yet."""

    def __init__(self, length_max: int, bytes_max: int) -> None:
        # The limits on requests and on their bytes; a length of 0 is unlimited.
        self._length_max = length_max
        self._bytes_max = bytes_max
        self._waiting: deque[Waiting] = deque()
        # How many queries and replies these are.
        self.waiting_count: i64 = 0
        # Writes so far. Invariant: answered <= submitted.
        self._submitted: i64 = 0
        self._answered: i64 = 0
        # Bytes of all requests, and of those among them that wait.
        self._size: i64 = 0
        self.waiting_bytes: i64 = 0
        # Invariant: the writes in flight, and all that wait.
        self.length: i64 = 0

    def enter_write(self, size: i64) -> None:
        """Count a write that was submitted."""
        self.length += 1
        self._submitted += 1
        self._size += size

    def withdraw_write(self, size: i64) -> None:
        """Forget the last write: it was not submitted after all."""
        self.length -= 1
        self._submitted -= 1
        self._size -= size

    def leave_write(self, size: i64) -> None:
        """Count a write that is answered."""
        self.length -= 1
        self._answered += 1
        self._size -= size

    def put(self, waiting: Waiting) -> None:
        waiting.behind = self._submitted
        self._waiting.append(waiting)
        self.waiting_count += waiting.count
        self.length += waiting.count
        self._size += len(waiting.body)
        self.waiting_bytes += len(waiting.body)

    def take(self) -> Waiting:
        """Remove and return the first that waits."""
        first = self._waiting.popleft()
        self.waiting_count -= first.count
        self.length -= first.count
        self._size -= len(first.body)
        self.waiting_bytes -= len(first.body)
        return first

    def can_answer(self) -> bool:
        """Return whether the first that waits can be answered now."""
        return self.waiting_count > 0 and self._waiting[0].behind <= self._answered

    def is_over(self, share: int) -> bool:
        """Return whether a limit is exceeded: with share 1 the whole of it, with 2 half of it."""
        return 0 < self._length_max // share < self.length or self._size > self._bytes_max // share

    def clear(self) -> None:
        self._waiting.clear()
        self.waiting_count = 0
        self.waiting_bytes = 0
        self._answered = self._submitted
        self._size = 0
        self.length = 0
