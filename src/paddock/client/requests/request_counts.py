"""Counts of the requests of a session, for `Client.metrics`.

They are always on, so nothing is counted for a single request that succeeds: what is sent is
counted once for each write, and what is answered follows from it.
"""

from __future__ import annotations


class RequestCounts:
    """How many requests were sent, and how many ended otherwise than with a result."""

    __slots__ = ("failed", "lost", "refused", "sent", "settled")

    def __init__(self) -> None:
        # A request that is sent again counts again.
        self.sent = 0
        # Those whose reply did not come on the connection that they were sent on; and of these
        # those whose reply the next one has brought.
        self.lost = 0
        self.settled = 0
        # Replies with an error, and requests without a reply, by the name of the error.
        self.refused: dict[str, int] = {}
        self.failed: dict[str, int] = {}

    def refuse(self, name: str) -> None:
        """Count a reply with an error."""
        self.refused[name] = self.refused.get(name, 0) + 1

    def fail(self, name: str) -> None:
        """Count a request that fails without a reply."""
        self.failed[name] = self.failed.get(name, 0) + 1

    def answered(self, in_flight: int) -> int:
        """Return how many have a reply, if so many wait for theirs."""
        return self.sent - self.lost + self.settled - in_flight
