"""Counts of the requests of a session, for `Client.metrics`.

They are always on, so nothing is counted for a request that succeeds: how many were sent is known
by their numbers (`in_flight`), and how many were answered follows from the rest.
"""

from __future__ import annotations


class RequestCounts:
    """How many requests ended otherwise than with a result."""

    __slots__ = ("failed", "lost", "refused", "settled")

    def __init__(self) -> None:
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
