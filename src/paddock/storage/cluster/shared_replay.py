"""A shared state that follows the log without a server: each record is taken, checked and applied.

It is what servers do while they serve, one record at once, and nobody waits for it:

* The roster decides which batches a record releases; they are applied as one.
* A batch names the digest of the state that its proposer had. If it differs from ours, one of the
  two is wrong, and nothing is built on ours.
* A record that is skipped has no effect, but its number counts: its proposer's next ones follow.
"""

from __future__ import annotations

from paddock.log.interface import LogCorruptError, Record
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

    def apply(self, record: Record) -> list[tuple[int, list[Outcome]]]:
        """Apply the next record; return what it has released, as numbers and outcomes.

        Raises LogCorruptError. The state is of no use any more then.
        """
        assert record.server is not None, "a shared log knows who has proposed"
        index = record.index
        if index != self.roster.index + 1:
            raise LogCorruptError(f"batch {self.roster.index + 1} is missing before {index}")
        payload = b"" if index in self._skipped else record.payload
        released = self.roster.take(index, record.revision, record.server, record.number, payload)
        if released:
            self.machine.begin_batch(record.server)
        applied = [(number, self._apply(at, payload)) for number, payload, at in released]
        self._batches.applied(index, self.machine.shared_digest())
        return applied

    def _apply(self, index: int, payload: bytes) -> list[Outcome]:
        if not payload:
            # Skipped, here or by the log.
            return []
        batch = self._batches.decode(index, payload)
        if self._batches.differs(batch):
            raise OtherStateError(
                f"batch {index}: its server had another state at {batch.digest_index} than"
                " replaying the log gives here. Keep the data folders and report it"
            )
        outcomes = [self.machine.apply(entry) for entry in batch.entries]
        while self.machine.take_roster_change() is not None:
            # Nobody asks here.
            pass
        return outcomes
