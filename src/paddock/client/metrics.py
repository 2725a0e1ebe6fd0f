"""What a client knows of itself: the metrics of its session, as `Client.metrics` returns them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from paddock.client.states import SessionState


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """How long servers took to answer, by the event loop's clock (uvloop's counts milliseconds).

    One round trip is measured for each write, which may have many requests: from the write to the
    first reply to it.
    """

    #: Each bucket has its upper bound in seconds and a count; the last one has no bound, but inf.
    buckets: tuple[tuple[float, int], ...]
    #: In seconds, of all of them together.
    total: float
    longest: float

    @property
    def count(self) -> int:
        """How many were measured."""
        return sum(count for _, count in self.buckets)

    @property
    def mean(self) -> float:
        """The mean in seconds; 0 if there was none."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> float:
        """Return the seconds within which this share of them was, such as 0.99; 0 without any.

        It is the upper bound of a bucket, but at most the longest.
        """
        wanted, seen = math.ceil(share * self.count), 0
        for bound, count in self.buckets:
            seen += count
            if seen >= wanted and seen:
                return min(bound, self.longest)
        return 0.0


@dataclass(frozen=True, slots=True)
class ClientMetrics:
    """The metrics of a client at one moment. Counts begin with the client, and only grow.

    Requests are those on the wire: a call may take several, and one that lost its connection is
    sent again.
    """

    state: SessionState
    #: For how long, in seconds.
    state_seconds: float
    session_id: int
    #: The server that has the session, as the connection string names it; None without one.
    server: str | None
    #: How many connections have had the session; all but the first are reconnects.
    connections: int
    #: How many attempts to get one have failed.
    failed_attempts: int
    #: Requests that wait for their reply, and those that wait to be sent.
    in_flight: int
    queued: int
    #: Requests that were sent, each time that they were.
    sent: int
    #: Replies, with a result or an error.
    answered: int
    #: Replies with an error, by its name: `{"NoNodeError": 3}`.
    refused: Mapping[str, int]
    #: Requests that failed without a reply, by the error, such as `ConnectionLostError`.
    failed: Mapping[str, int]
    #: Paths with a watch, by what has set it: `data` (get, exists), `exists` (on a node that does
    #: not exist), `children`, `persistent`, `recursive`.
    watches: Mapping[str, int]
    #: Events of watches that have come.
    events: int
    round_trips: RoundTrips
    #: The largest zxid seen.
    last_zxid: int

    @property
    def reconnects(self) -> int:
        """How many connections there were after the first."""
        return max(self.connections - 1, 0)

    @property
    def succeeded(self) -> int:
        """Replies without an error."""
        return self.answered - sum(self.refused.values())
