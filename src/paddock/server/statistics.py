"""What a server and its connections count about themselves, for those who ask.

Latency is that of writes, from the proposal of their batch to their answer. Queries are answered in
the same pass of the loop in which they come, so there is nothing to measure. What is counted here
is counted for a whole read or a whole batch at once wherever that is possible: nobody should wait
for the figures.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be

# Stands for the last operation of a connection that has not had any.
NO_OPERATION: Final = -1000


class Summary:
    """How many numbers there were, their sum, the smallest and the largest."""

    __slots__ = ("count", "max", "min", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.min = 0.0
        self.max = 0.0

    def add(self, number: float, times: int = 1) -> None:
        """Count a number, or so many that are equal."""
        if self.count == 0 or number < self.min:
            self.min = number
        if number > self.max:
            self.max = number
        self.count += times
        self.total += number * times

    def average(self) -> float:
        return self.total / self.count if self.count else 0.0

    def reset(self) -> None:
        self.count = 0
        self.total = 0.0
        self.min = 0.0
        self.max = 0.0


class Statistics:
    """What a server counted since its start, or since somebody reset it."""

    def __init__(self) -> None:
        # Of each write; of each batch until it was on the disk; and the writes in each.
        self.latency_ms = Summary()
        self.sync_ms = Summary()
        self.batch_sizes = Summary()
        self.snapshot_ms = Summary()
        # Of the last batch: how long it took, and when it was over in the event loop's time.
        self.last_latency_ms = 0.0
        self.last_batch_at = 0.0
        self.reset()

    def batch(self, writes: int, begun: float, synced: float, now: float) -> None:
        """Count a batch of writes that are answered now; times are the event loop's."""
        milliseconds = (now - begun) * 1000
        self.last_latency_ms = milliseconds
        self.last_batch_at = now
        self.latency_ms.add(milliseconds, writes)
        self.sync_ms.add((synced - begun) * 1000)
        self.batch_sizes.add(float(writes))

    def reset(self) -> None:
        """Begin to count anew."""
        self.packets_received = 0
        self.packets_sent = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        # Connections that were refused, and those that were closed because they asked for nothing.
        self.connections_rejected = 0
        self.connections_timed_out = 0
        # Handshakes, and how many of them were for a session that was there already.
        self.handshakes = 0
        self.handshakes_again = 0
        self.sessions_expired = 0
        self.latency_ms.reset()
        self.sync_ms.reset()
        self.batch_sizes.reset()
        self.snapshot_ms.reset()


class Tally:
    """What a connection remembers of its requests."""

    __slots__ = (
        "answered_at",
        "established_ms",
        "heard_at",
        "last_latency_ms",
        "latency_ms",
        "operation",
        "received",
        "writes",
        "xid",
    )

    def __init__(self) -> None:
        # When the connection was made, in ms of the wall clock.
        self.established_ms = 0
        # Packets received.
        self.received = 0
        # The last request: its operation, and its number, if it was not one of the special ones.
        self.operation = NO_OPERATION
        self.xid = 0
        # When requests last came, in the time in which silence is counted, and when writes were
        # last answered, in the event loop's.
        self.heard_at = 0.0
        self.answered_at = 0.0
        self.latency_ms = Summary()
        self.last_latency_ms = 0.0
        # Writes that were answered and whose time has not been counted.
        self.writes = 0

    def receive(self, frames: list[bytes], now: float) -> None:
        """Count the frames of one read, of which the last one is remembered."""
        self.received += len(frames)
        last = frames[-1]
        if len(last) >= 8:
            xid = read_i32_be(last, 0)
            if xid >= 0:
                self.xid = xid
            self.operation = read_i32_be(last, 4)
            self.heard_at = now

    def settle(self, statistics: Statistics) -> None:
        """Count the time of the writes that were answered with the last batch."""
        self.last_latency_ms = statistics.last_latency_ms
        self.answered_at = statistics.last_batch_at
        self.latency_ms.add(self.last_latency_ms, self.writes)
        self.writes = 0

    def reset(self) -> None:
        self.received = 0
        self.operation = NO_OPERATION
        # What stands for none, as upstream has it.
        self.xid = -1
        self.heard_at = 0.0
        self.answered_at = 0.0
        self.latency_ms.reset()
        self.last_latency_ms = 0.0


class ConnectionReport:
    """What can be said of a connection, as it is at this moment."""

    __slots__ = (
        "address",
        "interest",
        "is_secure",
        "last_zxid",
        "port",
        "queued",
        "responded_at",
        "sent",
        "session",
        "silent_until",
        "tally",
        "timeout_ms",
    )

    def __init__(
        self,
        address: str,
        port: int,
        interest: int,
        queued: int,
        sent: int,
        session: int,
        timeout_ms: int,
        last_zxid: int,
        tally: Tally,
        responded_at: float,
        silent_until: float,
        is_secure: bool,
    ) -> None:
        self.address = address
        self.port = port
        # What we wait for, in the bits of Java's selectors: 1 to read, 4 to write.
        self.interest = interest
        # Requests that are not answered yet.
        self.queued = queued
        # Packets sent.
        self.sent = sent
        # 0 if it has none.
        self.session = session
        self.timeout_ms = timeout_ms
        self.last_zxid = last_zxid
        self.tally = tally
        # When it was last answered, and until when it may be silent, in the event loop's time.
        self.responded_at = responded_at
        self.silent_until = silent_until
        # Whether it speaks TLS.
        self.is_secure = is_secure

    def where(self) -> str:
        """Give the other end, as Java writes it."""
        bracketed = f"[{self.address}]" if ":" in self.address else self.address
        return f"{bracketed}:{self.port}"
