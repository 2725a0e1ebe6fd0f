"""Proposals: who submits entries, the batches on their way, and what the replica knows of them.

The proposer keeps the proposals; a server that only follows its log has none.
"""

from __future__ import annotations

import asyncio

from mypy_extensions import i64

from paddock.log.interface import Record
from paddock.state.entry import Entry
from paddock.state.machine import Outcome


class Submitter:
    """The origin of entries: a connection, or a part of the server that decides by itself.

    This one ignores what becomes of them.
    """

    def __init__(self) -> None:
        # Whether it is among those to be flushed when the batch has been applied.
        self.is_dirty = False
        # The address of the client, and the same with its port; empty for the server itself.
        self.address = ""
        self.where = ""

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        """Take the outcome of an entry that has just been applied."""

    def refuse(self, entry: Entry, code: int) -> None:
        """Take the news that an entry was surely not written."""

    def decline(self, entry: Entry, code: int) -> None:
        """Take the news that the entry being submitted is not even proposed.

        Others that were submitted before it may still be on their way.
        """
        self.refuse(entry, code)

    def flush(self) -> None:
        """Send what has gathered."""

    def abort(self) -> None:
        """Give up: an outcome could not be delivered, so no client may go on waiting for it."""


class AwaitedOutcome(Submitter):
    """Waits for the outcome of one entry; None if nobody will ever know it."""

    def __init__(self) -> None:
        super().__init__()
        self._outcome: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()

    def wait(self) -> asyncio.Future[Outcome | None]:
        """Return a future of the outcome."""
        return self._outcome

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        self._settle(outcome)

    def refuse(self, entry: Entry, code: int) -> None:
        self._settle(None)

    def abort(self) -> None:
        self._settle(None)

    def _settle(self, outcome: Outcome | None) -> None:
        if not self._outcome.done():
            self._outcome.set_result(outcome)


class PendingBatch:
    """A batch on its way: proposed by us, or told by the log; then being applied."""

    def __init__(self, entries: list[Entry], submitters: list[Submitter], size: int) -> None:
        self.entries = entries
        # The submitter of each entry; empty if they are not of this process.
        self.submitters = submitters
        # Bytes of the batch in the log.
        self.size = size
        # What to decode the entries from, unless we have them.
        self.record: Record | None = None
        # Whether this server proposed it.
        self.is_ours = False
        # When it was proposed and when the log was done with it, by the replica's clock.
        self.begun = 0.0
        self.synced = 0.0
        # Its index, how many of its entries are applied, and how long earlier slices took.
        self.index = 0
        self.applied: i64 = 0
        self.seconds = 0.0

    def take_in(self, proposed: PendingBatch) -> None:
        """Add a batch of ours that is applied together with this one."""
        self.entries += proposed.entries
        self.submitters += proposed.submitters
        self.begun, self.synced = proposed.begun, proposed.synced


class Proposals:
    """The proposals of this server, as its replica sees them. This one makes none."""

    def claim(self, number: int, now: float) -> PendingBatch | None:
        """Hand over a batch in flight: the log is done with it."""
        return None

    def doubt(self, now: float) -> None:
        """Let go of all batches in flight: their outcome is unknown."""

    def begin(self, batch: PendingBatch) -> None:
        """Note that a committed batch is about to be applied; none is half applied now."""

    def refuse(self, batch: PendingBatch, reason: str) -> None:
        """Tell the submitters of a batch that it was not written."""

    def halt(self, reason: str) -> None:
        """Propose nothing more until the log has been recovered."""

    def learn(self, batch: PendingBatch, seconds: float) -> None:
        """Note how long a batch took to be applied."""

    def go_on(self, is_behind: bool) -> None:
        """Propose what has gathered, unless the replica is behind what the log has told."""

    def stop(self) -> None:
        """Propose nothing any more: the state was given up."""
