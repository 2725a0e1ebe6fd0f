"""Replaying batches of the log on a state, which must give what was served when they were written.

A batch carries the digest of the state that its proposer had, and it is compared here: a state that
differs is not used.
"""

from __future__ import annotations

from paddock.log.interface import WAY_ON, LogCorruptError, Record
from paddock.protocol.jute import DecodeError
from paddock.state.access import Identities
from paddock.state.entry import Batch
from paddock.state.machine import StateMachine


class UnreadableBatchError(LogCorruptError):
    """A batch is as it was written, but not by a version that we understand."""


class OtherStateError(LogCorruptError):
    """A batch shows that the state is not the one that was served."""


class Replay:
    """A state on its way from one index of the log to the last."""

    def __init__(self, machine: StateMachine, index: int) -> None:
        self.machine = machine
        # The last batch that was applied.
        self.index = index
        self.entries = 0
        # The last batch whose state was compared with a digest, and how many were.
        self.verified_index = index
        self.verified = 0
        self._known: dict[bytes, Identities] = {}
        # The digests of the last states: a batch is proposed before the one ahead of it is applied.
        self._digests = {index: machine.digest()}

    def apply(self, record: Record) -> None:
        """Apply the next batch. Raises LogCorruptError, and then nothing of it was applied."""
        assert record.index == self.index + 1
        try:
            batch = Batch.decode(record.payload, self._known)
        except DecodeError as error:
            raise UnreadableBatchError(
                f"batch {record.index} of the log cannot be read: {error}; it was written by"
                " another version of Paddock, which can start from this folder"
            ) from error
        expected = self._digests.get(batch.digest_index)
        if expected is not None:
            if expected != batch.digest:
                raise OtherStateError(
                    f"replaying the log gave another state at batch {batch.digest_index} than the"
                    f" one that was served then; keep this folder and report it. {WAY_ON}"
                )
            self.verified_index = batch.digest_index
            self.verified += 1
        for entry in batch.entries:
            self.machine.apply(entry)
        self.index = record.index
        self.entries += len(batch.entries)
        self._digests = {
            self.index - 1: self._digests.get(self.index - 1, batch.digest),
            self.index: self.machine.digest(),
        }
