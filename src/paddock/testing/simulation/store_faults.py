"""What goes wrong between a server and the model of etcd, and how often.

A probability is that of one request or of one record. Without any the model is a fast, quiet etcd.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

Span = tuple[float, float]


@dataclass(slots=True)
class StoreFaults:
    """How often and for how long; it may be changed while the model runs."""

    # One way of a message, and a commit.
    latency_s: Span = (0.0005, 0.002)
    commit_s: Span = (0.001, 0.004)
    # An append is committed before one that was sent before it, by the same server. With four in
    # flight that happened to a fifth of those that etcd was given.
    swapped: float = 0.0
    # A request does not arrive; it arrives and its reply does not. The caller hears of half of them
    # at once (the connection broke), and of the others by its deadline.
    request_lost: float = 0.0
    reply_lost: float = 0.0
    # A request is carried out so much later that its caller has given it up.
    late: float = 0.0
    late_s: Span = (1.0, 60.0)
    # An election begins: nothing is committed.
    election: float = 0.0
    election_s: Span = (0.9, 2.1)
    # A stream breaks, is behind for a while, or shows nothing any more without a word.
    stream_broken: float = 0.0
    stream_behind: float = 0.0
    stream_behind_s: Span = (0.01, 0.8)
    stream_silent: float = 0.0
    # A page is shorter than was asked for.
    page_cut: float = 0.0

    def calm(self) -> None:
        """Let nothing go wrong from now on."""
        for field in fields(self):
            setattr(self, field.name, field.default)

    @classmethod
    def rough(cls) -> StoreFaults:
        """Return faults of every kind, each often enough to occur in a short run."""
        return cls(
            swapped=0.2,
            request_lost=0.02,
            reply_lost=0.03,
            late=0.01,
            election=0.005,
            stream_broken=0.01,
            stream_behind=0.03,
            stream_silent=0.005,
            page_cut=0.3,
        )
