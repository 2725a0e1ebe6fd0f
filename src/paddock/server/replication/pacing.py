"""When the next batch is proposed to a log that several servers share.

A commit takes milliseconds there, and costs every server something. So a batch waits for company,
but not for long: it goes when it is full, or when its eldest entry has waited for half of the time
that a commit takes lately. If nothing is in flight a sixteenth is enough: clients that were told
together ask again together. While a member cannot keep up, there is a pause between two batches in
any case (`paddock.server.cluster.laggards`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

from paddock.state.entry import Entry

SHARED_BATCH_BYTES_MAX: Final = 64 << 10
"""A batch in a shared log; etcd keeps thousands of them in memory."""

LAG_MAX: Final = 1_000
"""A member that is more records behind has writers held back."""

# Why clients' writes are refused: etcd has little room, so that only what makes the state smaller
# is accepted; or the members have different states, and nothing is.
TIGHT: Final = 1
DISPUTED: Final = 2

# The commit time to begin with, and its limits, in seconds.
_COMMIT_START: Final = 0.004
_COMMIT_MIN: Final = 0.001
_COMMIT_MAX: Final = 0.1
# How long a batch waits for company, in terms of it: behind others, and if nothing is in flight.
_SHARE_BEHIND: Final = 1 / 2
_SHARE_ALONE: Final = 1 / 16
# How much of a new measurement counts.
_WEIGHT: Final = 0.125


class Pacing:
    """Decides whether a batch may go; `full_bytes` is how many bytes make it full."""

    def __init__(self, now: Callable[[], float], full_bytes: int) -> None:
        self.full_bytes = full_bytes
        # When the proposer looks again, for a pause to end; infinite if it does not.
        self.look_at = inf
        # Whether a batch should go, though it be empty, to renew our lease.
        self.is_renewing = False
        # The entry that a new boot begins with, until it is proposed.
        self.joining: Entry | None = None
        # Why clients' writes are refused, if they are: a sum of the reasons above.
        self.restraint = 0
        # The pause between two batches; 0 for none.
        self.hold_seconds = 0.0
        self._now = now
        self._commit = _COMMIT_START
        # When the eldest entry came that has not been proposed.
        self._since: float | None = None
        self._proposed_at = now()

    def restrain(self, reason: int, holds: bool) -> None:
        """Note whether there is a reason to refuse clients' writes."""
        self.restraint = self.restraint | reason if holds else self.restraint & ~reason

    def gathered(self) -> None:
        """Note that something waits to be proposed."""
        if self._since is None:
            self._since = self._now()

    def proposed(self, has_more: bool) -> None:
        """Note that a batch went, and whether something was left behind."""
        self._proposed_at = self._now()
        self._since = self._proposed_at if has_more else None

    def is_urgent(self) -> bool:
        """Return whether a batch waits that our lease depends on."""
        return self.is_renewing or self.joining is not None

    def idle_seconds(self) -> float:
        """Return for how long no batch went."""
        return self._now() - self._proposed_at

    def committed(self, seconds: float) -> None:
        """Note how long a commit took."""
        self._commit += (seconds - self._commit) * _WEIGHT
        self._commit = min(max(self._commit, _COMMIT_MIN), _COMMIT_MAX)

    def pause(self, in_flight: int, size: int) -> float:
        """Return for how long the batch should wait; 0 if it may go."""
        if self.hold_seconds > 0:
            held = self._proposed_at + self.hold_seconds - self._now()
            if held > 0:
                return held
        if size >= self.full_bytes or self._since is None:
            return 0.0
        share = _SHARE_BEHIND if in_flight else _SHARE_ALONE
        return max(self._since + self._commit * share - self._now(), 0.0)
