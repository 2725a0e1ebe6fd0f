"""What a server does before it serves: load the newest snapshot, replay the log behind it.

A replay must give what was acknowledged. Batches carry the digest of the state that their proposer
had, and it is compared here; a state that differs is not served.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from paddock.log.interface import Log, LogCorruptError
from paddock.log.snapshots import SnapshotStore
from paddock.protocol.jute import DecodeError
from paddock.state.access import Identities
from paddock.state.entry import Batch
from paddock.state.machine import StateMachine
from paddock.state.snapshot import SnapshotError, restore

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state as it was, and how it was found."""

    machine: StateMachine
    # The last batch in it.
    index: int
    # The last batch in the snapshot that it was loaded from; 0 without one.
    snapshot_index: int
    # The entries behind the snapshot: the next start replays them too, until there is a newer one.
    replayed_entries: int


def recover_state(log: Log, store: SnapshotStore | None) -> Recovered:
    """Find out what was acknowledged. Raises LogCorruptError."""
    machine, index = StateMachine(), 0
    if store is not None:
        newest = store.newest()
        for damaged in newest.damaged:
            logger.warning(
                "snapshot %s is damaged and passed over: %s", damaged.path, damaged.reason
            )
        if newest.snapshot is not None:
            index = newest.snapshot.index
            try:
                machine = restore(newest.snapshot.chunks())
            except SnapshotError as error:
                raise LogCorruptError(
                    f"{newest.snapshot.path}: {error}; move the file away to start from an older"
                    " snapshot and the log"
                ) from error
    last_index, replayed_entries = _replay(machine, index, log)
    return Recovered(machine, last_index, index, replayed_entries)


def _replay(machine: StateMachine, index: int, log: Log) -> tuple[int, int]:
    """Apply every batch behind `index`; give the index of the last one, and count the entries."""
    replayed_entries = 0
    known: dict[bytes, Identities] = {}
    # The digests of the last states: a batch is proposed before the one ahead of it is applied.
    digests = {index: machine.digest()}
    for record in log.records(index):
        try:
            batch = Batch.decode(record.payload, known)
        except DecodeError as error:
            raise LogCorruptError(
                f"batch {record.index} of the log cannot be read: {error}; it was written by"
                " another version of Paddock, which can start from this folder"
            ) from error
        expected = digests.get(batch.digest_index)
        if expected is not None and expected != batch.digest:
            raise LogCorruptError(
                f"replaying the log gave another state at batch {batch.digest_index} than the one"
                " that was served then; start from a backup, or keep this folder and report it"
            )
        for entry in batch.entries:
            machine.apply(entry)
        index = record.index
        replayed_entries += len(batch.entries)
        digests = {index - 1: digests.get(index - 1, batch.digest), index: machine.digest()}
    return index, replayed_entries
