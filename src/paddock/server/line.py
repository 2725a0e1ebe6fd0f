"""The line in which a connection's requests wait, so that replies never overtake each other.

Writes under way stand in it, queries that came behind them, and replies that need no work but have
to wait for their turn. Nobody stands in a line that has no write in front.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.state.access import Identities

# How many requests may be in line, and how many bytes of them, before it is too long.
LENGTH_MAX: Final = 10_000
BYTES_MAX: Final = 16 << 20

# Operations in the line that are not the client's: replies that only wait for their turn; after a
# goodbye the connection is closed.
READY: Final = -1000
GOODBYE: Final = -1001


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
        # The request of a query; the reply's body for what is answered already.
        self.body = body
        # Who asked, as of when it asked.
        self.identities = identities
        # The bytes of the request, wherever they are kept.
        self.size = size
        # The reply's header, for what is answered already.
        self.error = error
        self.zxid = zxid


class Line:
    """The places, first come, first served."""

    __slots__ = ("_places", "_size")

    def __init__(self) -> None:
        self._places: deque[Waiting] = deque()
        # Invariant: the sum of the places' sizes.
        self._size = 0

    def __len__(self) -> int:
        return len(self._places)

    def put(self, place: Waiting) -> None:
        self._places.append(place)
        self._size += place.size

    def take(self) -> Waiting:
        """Take the first place."""
        place = self._places.popleft()
        self._size -= place.size
        return place

    def can_answer(self) -> bool:
        """Tell whether the first in line waits for nothing but its turn."""
        places = self._places
        return len(places) > 0 and places[0].operation not in opcodes.WRITES

    def is_longer_than(self, share: int) -> bool:
        """Tell whether it is longer than this share of the limit: 1 all of it, 2 half of it."""
        return len(self._places) > LENGTH_MAX // share or self._size > BYTES_MAX // share

    def clear(self) -> None:
        self._places.clear()
        self._size = 0
