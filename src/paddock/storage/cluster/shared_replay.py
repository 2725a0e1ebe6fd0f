"""A shared state that follows the log without a server: each record is taken, checked and applied.

It is what servers do while they serve, one record at once, and nobody waits for it:

* The roster decides which batches a record releases; they are applied as one.
* A batch names the digest of the state that its proposer had. If it differs from ours, one of the
  two is wrong, and nothing is built on ours. That is no fault of the log: while members with
  different states vote, and until who is outvoted starts again, its batches count like any others.
* A record that is skipped has no effect, but its number counts: its proposer's next ones follow.
"""

from __future__ import annotations

from collections.abc import Iterator

from paddock.log.interface import LogCorruptError, Record
from paddock.state.entry import Entry
from paddock.state.machine import Outcome, StateMachine
from paddock.storage.cluster.shared_batches import SharedBatches
from paddock.storage.replay import OtherStateError


class SharedReplay:
    """A shared state on its way along the log."""

    def __init__(self, machine: StateMachine, skipped: frozenset[int] = frozenset()) -> None:
        assert machine.roster is not None, "the state is a shared one"
        self.machine = machine
        self.roster = machine.roster
        self._skipped = skipped
        self._batches = SharedBatches(self.roster.index, machine.shared_digest())

    @property
    def index(self) -> int:
        """The last record that was taken."""
        return self.roster.index

    def apply(self, record: Record) -> list[tuple[int, list[Outcome]]]:
        """Apply the next record; return what it has released, as numbers and outcomes.

        Raises LogCorruptError. The state is of no use any more then.
        """
        applied = [
            (number, [self._apply(entry) for entry in self._entries(at, payload)])
            for number, payload, at in self._take(record)
        ]
        self._batches.applied(record.index, self.machine.shared_digest())
        return applied

    def each(self, record: Record) -> Iterator[Entry]:
        """Yield what the next record releases, each to be applied before the next one is asked."""
        for _, payload, at in self._take(record):
            for entry in self._entries(at, payload):
                yield entry
                self._forget_roster_changes()
        self._batches.applied(record.index, self.machine.shared_digest())

    def _take(self, record: Record) -> list[tuple[int, bytes, int]]:
        """Take a record; return what it releases, as numbers, payloads and indices."""
        assert record.server is not None, "a shared log knows who has proposed"
        index = record.index
        if index != self.roster.index + 1:
            raise LogCorruptError(f"batch {self.roster.index + 1} is missing before {index}")
        payload = b"" if index in self._skipped else record.payload
        released = self.roster.take(index, record.revision, record.server, record.number, payload)
        if released:
            self.machine.begin_batch(record.server)
        return released

    def _entries(self, index: int, payload: bytes) -> list[Entry]:
        if not payload:
            # Skipped, here or by the log.
            return []
        batch = self._batches.decode(index, payload)
        if self._batches.differs(batch):
            raise OtherStateError(
                f"batch {index}: its server had another state at {batch.digest_index} than"
                " replaying the log gives here. Keep the data folders and report it"
            )
        return batch.entries

    def _apply(self, entry: Entry) -> Outcome:
        outcome = self.machine.apply(entry)
        self._forget_roster_changes()
        return outcome

    def _forget_roster_changes(self) -> None:
        while self.machine.take_roster_change() is not None:
            # Nobody asks here.
            pass
