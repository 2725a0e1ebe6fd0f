"""The counters of a server and of its connections.

All of them are on the path of a request, so they are plain numbers, and a whole read or a whole
batch is counted at once wherever possible. The rules:

* The latency of a write goes from the proposal of its batch to its reply. Each batch is measured.
* The latency of a query goes from the moment when it is begun until its reply is sent, with all
  that came in the same read. One in `SAMPLE_EVERY` requests, or in more, is measured, and stands
  for the queries since the last one. A query that waits for a turn is measured until then; one
  behind a write of its client waits for that, and is not measured.
* A histogram has fixed buckets. What is in them goes up until the counters are reset.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import Final, NamedTuple

from mypy_extensions import i64

from paddock.state.operation_counts import OperationCounts

# The last operation of a connection that has not had any.
NO_OPERATION: Final = -1000

# The upper bounds of the buckets: of times in milliseconds, and of numbers of writes.
TIMES_MS: Final[list[float]] = [
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0),
    *(1_000.0, 2_500.0, 5_000.0, 10_000.0),
]
SIZES: Final[list[float]] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0]

# How many requests are received, at least, between two that are measured.
SAMPLE_EVERY: Final = 64


class Summary:
    """Count, sum, minimum and maximum of some numbers."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.min = 0.0
        self.max = 0.0

    def add(self, number: float, times: int = 1) -> None:
        """Add a number, or several that are equal."""
        if self.count == 0 or number < self.min:
            self.min = number
        if number > self.max:
            self.max = number
        self.count += times
        self.total += number * times

    def average(self) -> float:
        return self.total / self.count if self.count else 0.0


class Histogram(Summary):
    """A summary that also counts how many numbers are in each bucket.

    Most numbers are in the bucket of the one before. So these are counted apart, until one is not.
    """

    def __init__(self, bounds: list[float], buckets: list[int] | None = None) -> None:
        super().__init__()
        # The upper bounds, in order; above the last one there is one bucket more.
        self.bounds = bounds
        self._buckets = [0] * (len(bounds) + 1) if buckets is None else buckets
        # The bucket of the last number: where it begins and ends, and what is not in it yet.
        self._bucket = 0
        self._above = 0.0
        self._up_to = 0.0
        self._more: i64 = 0

    def add(self, number: float, times: int = 1) -> None:
        # As above: a call of that would take longer than all of this.
        if self.count == 0 or number < self.min:
            self.min = number
        if number > self.max:
            self.max = number
        self.count += times
        self.total += number * times
        if self._above < number <= self._up_to:
            self._more += times
        else:
            self._change_bucket(number, times)

    def buckets(self) -> list[int]:
        """Return how many numbers are in each bucket."""
        self._buckets[self._bucket] += self._more
        self._more = 0
        return list(self._buckets)

    def _change_bucket(self, number: float, times: int) -> None:
        self._buckets[self._bucket] += self._more
        bounds = self.bounds
        bucket = bisect_left(bounds, number)
        self._bucket = bucket
        self._above = bounds[bucket - 1] if bucket else -inf
        self._up_to = bounds[bucket] if bucket < len(bounds) else inf
        self._more = times


class Statistics:
    """The counters of a server since its start, or since they were reset."""

    def __init__(self) -> None:
        # Stays the same object: it is reached from many places.
        self.operations = OperationCounts()
        # Of the last batch: its latency, and its end in the event loop's time.
        self.last_latency_ms = 0.0
        self.last_batch_at = 0.0
        self.reset()

    def batch(self, writes: int, seconds: float, sync_seconds: float, now: float) -> None:
        """Count a batch of writes that is answered now, by the event loop's time."""
        milliseconds = seconds * 1000
        self.last_latency_ms = milliseconds
        self.last_batch_at = now
        self.latency_ms.add(milliseconds, writes)
        self.sync_ms.add(sync_seconds * 1000)
        self.batch_sizes.add(float(writes))

    def reset(self) -> None:
        """Begin to count anew."""
        self.operations.reset()
        self.packets_received = 0
        # With so many packets a query is measured again.
        self.sample_at = 1
        self._queries_measured = 0
        self.packets_sent = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        # Connections that were refused, and those closed by the handshake timeout.
        self.connections_rejected = 0
        self.connections_timed_out = 0
        # Handshakes, and how many of them named an existing session.
        self.handshakes = 0
        self.handshakes_again = 0
        self.sessions_expired = 0
        # Change feeds: pulls that were answered, the changes in the answers, and feeds that asked
        # for what history does not have any more.
        self.feed_pulls = 0
        self.feed_changes = 0
        self.feeds_gone = 0
        # Of each write; of each batch until it was durable; and the writes in each batch.
        self.latency_ms = Histogram(TIMES_MS)
        self.sync_ms = Histogram(TIMES_MS)
        self.batch_sizes = Histogram(SIZES)
        # Of queries, by samples.
        self.read_ms = Histogram(TIMES_MS)
        self.snapshot_ms = Summary()

    def sampled(self, milliseconds: float) -> None:
        """Count the latency of a query for all queries since the last one that was measured."""
        queries = self.operations.queries()
        if queries > self._queries_measured:
            self.read_ms.add(milliseconds, queries - self._queries_measured)
            self._queries_measured = queries


class Tally:
    """The counters of a connection."""

    def __init__(self) -> None:
        # When the connection was made, in ms of the wall clock.
        self.established_ms = 0
        # Packets received.
        self.received = 0
        # The last request: its operation, and its xid unless it was a special one.
        self.operation = NO_OPERATION
        self.xid = 0
        # When requests last came, in the time in which silence is counted, and when writes were
        # last answered, in the event loop's.
        self.heard_at = 0.0
        self.answered_at = 0.0
        self.latency_ms = Summary()
        self.last_latency_ms = 0.0
        # Writes that were answered and whose latency is not counted yet.
        self.writes = 0
        # When a query was begun that is measured, by the clock of turns; else below 0.
        self.asked_at = -1.0
        # Whether there is one, or writes that are not counted yet.
        self.is_due = False

    def receive(self, xid: int, operation: int, now: float) -> None:
        """Remember the last request of a read."""
        if xid >= 0:
            self.xid = xid
        self.operation = operation
        self.heard_at = now

    def settle(self, statistics: Statistics) -> None:
        """Count the latency of the writes that were answered with the last batch."""
        self.last_latency_ms = statistics.last_latency_ms
        self.answered_at = statistics.last_batch_at
        self.latency_ms.add(self.last_latency_ms, self.writes)
        self.writes = 0

    def restarted(self) -> Tally:
        """Return the tally of the same connection from now on."""
        new = Tally()
        new.established_ms, new.writes = self.established_ms, self.writes
        new.is_due = self.is_due
        # Upstream's value for none.
        new.xid = -1
        return new


class ConnectionReport(NamedTuple):
    """The state of a connection at this moment."""

    address: str
    port: int
    # What we wait for, in the bits of Java's selectors: 1 to read, 4 to write.
    interest: int
    # Requests that are not answered yet.
    queued: int
    # Packets sent.
    sent: int
    # 0 without one.
    session: int
    timeout_ms: int
    last_zxid: int
    tally: Tally
    # When it was last answered, and until when it may be silent, in the event loop's time.
    responded_at: float
    silent_until: float
    is_secure: bool

    def where(self) -> str:
        """Return the peer's address, as Java writes it."""
        return where(self.address, self.port)


def where(address: str, port: int) -> str:
    """Return an address with its port."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
