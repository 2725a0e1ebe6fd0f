"""The line in which a connection's requests wait, so that replies never overtake each other.

Only what waits has a place: queries that came behind a write, and replies that need no work but
have to wait for their turn. The writes under way are just counted, since they are answered in the
order in which they were submitted; a place remembers how many of them were ahead of it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from paddock.errors import OK
from paddock.state.access import Identities

# Operations in the line that are not the client's: replies that only wait for their turn; after a
# goodbye the connection is closed.
READY: Final = -1000
GOODBYE: Final = -1001


@mypyc_attr(acyclic=True)
class Waiting:
    """A place in the line."""

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
        # The request of a query; the reply's body for what is answered already.
        self.body = body
        # Who asked, as of when it asked.
        self.identities = identities
        # The reply's header, for what is answered already.
        self.error = error
        self.zxid = zxid
        # How many writes must have been answered before it is its turn.
        self.behind = 0


class Line:
    """First come, first served."""

    __slots__ = (
        "_answered",
        "_bytes_max",
        "_length_max",
        "_places",
        "_places_size",
        "_size",
        "_submitted",
        "length",
    )

    def __init__(self, length_max: int, bytes_max: int) -> None:
        # How many requests may be in line, and how many bytes of them, before it is too long; a
        # length of 0 is any.
        self._length_max = length_max
        self._bytes_max = bytes_max
        self._places: deque[Waiting] = deque()
        # Writes so far. Invariant: answered <= submitted.
        self._submitted = 0
        self._answered = 0
        # Bytes of all requests in line, and of those among them that have a place.
        self._size = 0
        self._places_size = 0
        # How many there are. Invariant: the writes that are not answered, and all places.
        self.length = 0

    def enter_write(self, size: int) -> None:
        """Count a write that has been submitted."""
        self.length += 1
        self._submitted += 1
        self._size += size

    def leave_write(self, size: int) -> None:
        """Count a write that is answered."""
        self.length -= 1
        self._answered += 1
        self._size -= size

    def put(self, place: Waiting) -> None:
        place.behind = self._submitted
        self._places.append(place)
        self.length += 1
        self._size += len(place.body)
        self._places_size += len(place.body)

    def take(self) -> Waiting:
        """Take the first place."""
        place = self._places.popleft()
        self.length -= 1
        self._size -= len(place.body)
        self._places_size -= len(place.body)
        return place

    def places(self) -> int:
        """Count those that wait in line."""
        return len(self._places)

    def can_answer(self) -> bool:
        """Tell whether somebody's turn has come."""
        places = self._places
        return len(places) > 0 and places[0].behind <= self._answered

    def is_longer_than(self, share: int) -> bool:
        """Tell whether it is longer than this share of the limit: 1 all of it, 2 half of it."""
        return 0 < self._length_max // share < self.length or self._size > self._bytes_max // share

    def places_size(self) -> int:
        """Count the bytes of those that wait in line."""
        return self._places_size

    def clear(self) -> None:
        self._places.clear()
        self._places_size = 0
        self._answered = self._submitted
        self._size = 0
        self.length = 0
