"""The FIFO that keeps one connection's replies in the order of its requests.

Only what waits has an entry: queries behind a write, and replies that are ready but must not
overtake one. Writes in flight are only counted, since they are answered in the order in which they
were submitted; an entry remembers how many of them are ahead of it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from paddock.errors import OK
from paddock.state.access import Identities

# In place of an operation: a reply that is ready; after a final one the connection is closed.
READY: Final = -1000
FINAL: Final = -1001


@mypyc_attr(acyclic=True)
class Waiting:
    """A query or a reply in the queue."""

    __slots__ = ("behind", "body", "error", "identities", "operation", "xid", "zxid")

    def __init__(
        self,
        operation: int,
        xid: int,
        body: bytes,
        identities: Identities,
        error: int = OK,
        zxid: int = 0,
    ) -> None:
        self.operation = operation
        self.xid = xid
        # The request of a query; the body of a reply that is ready.
        self.body = body
        # The client's identities when it sent the request.
        self.identities = identities
        # The header of a reply that is ready.
        self.error = error
        self.zxid = zxid
        # How many writes must be answered first.
        self.behind = 0


class ReplyQueue:
    """The requests of one connection that are not answered yet."""

    def __init__(self, length_max: int, bytes_max: int) -> None:
        # The limits on requests and on their bytes; a length of 0 is unlimited.
        self._length_max = length_max
        self._bytes_max = bytes_max
        self._waiting: deque[Waiting] = deque()
        # Writes so far. Invariant: answered <= submitted.
        self._submitted = 0
        self._answered = 0
        # Bytes of all requests, and of those among them that wait.
        self._size = 0
        self.waiting_bytes = 0
        # Invariant: the writes in flight, and all that wait.
        self.length = 0

    def enter_write(self, size: int) -> None:
        """Count a write that was submitted."""
        self.length += 1
        self._submitted += 1
        self._size += size

    def withdraw_write(self, size: int) -> None:
        """Forget the last write: it was not submitted after all."""
        self.length -= 1
        self._submitted -= 1
        self._size -= size

    def leave_write(self, size: int) -> None:
        """Count a write that is answered."""
        self.length -= 1
        self._answered += 1
        self._size -= size

    def put(self, waiting: Waiting) -> None:
        waiting.behind = self._submitted
        self._waiting.append(waiting)
        self.length += 1
        self._size += len(waiting.body)
        self.waiting_bytes += len(waiting.body)

    def take(self) -> Waiting:
        """Remove and return the first that waits."""
        first = self._waiting.popleft()
        self.length -= 1
        self._size -= len(first.body)
        self.waiting_bytes -= len(first.body)
        return first

    def waiting_count(self) -> int:
        return len(self._waiting)

    def can_answer(self) -> bool:
        """Return whether the first that waits can be answered now."""
        waiting = self._waiting
        return len(waiting) > 0 and waiting[0].behind <= self._answered

    def is_over(self, share: int) -> bool:
        """Return whether a limit is exceeded: with share 1 the whole of it, with 2 half of it."""
        return 0 < self._length_max // share < self.length or self._size > self._bytes_max // share

    def clear(self) -> None:
        self._waiting.clear()
        self.waiting_bytes = 0
        self._answered = self._submitted
        self._size = 0
        self.length = 0
