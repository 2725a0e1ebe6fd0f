"""What a server does before it serves: load the newest snapshot, replay the log behind it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from paddock.log.interface import WAY_ON, Log, LogCorruptError, ends_before_snapshot
from paddock.state.machine import StateMachine
from paddock.state.snapshot import SnapshotError, restore
from paddock.storage.replay import Replay, within_memory
from paddock.storage.snapshots import Damaged, SnapshotStore

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state as it was, and how it was found."""

    machine: StateMachine
    # The last batch in it.
    index: int
    # The last batch in the snapshot that it was loaded from; 0 without one.
    snapshot_index: int
    # The last zxid in it; -1 without one.
    snapshot_zxid: int
    # The entries behind the snapshot: the next start replays them too, until there is a newer one.
    replayed_entries: int
    # Their bytes in the log.
    replayed_bytes: int = 0


def recover_state(log: Log, store: SnapshotStore | None) -> Recovered:
    """Find out what was acknowledged.

    Raises LogCorruptError, or TooMuchForThisMachineError if there is not enough memory.
    """
    return within_memory("what is stored", lambda: _recover_state(log, store))


def _recover_state(log: Log, store: SnapshotStore | None) -> Recovered:
    machine, index, zxid = StateMachine(), 0, -1
    damaged: tuple[Damaged, ...] = ()
    if store is not None:
        newest = store.newest()
        damaged = newest.damaged
        for one in damaged:
            logger.warning("snapshot %s is damaged and passed over: %s", one.path, one.reason)
        if newest.snapshot is not None:
            snapshot = newest.snapshot
            index = snapshot.index
            try:
                machine = within_memory(
                    f"{snapshot.path}: the snapshot", lambda: restore(snapshot.chunks())
                )
                zxid = machine.zxid
            except SnapshotError as error:
                raise LogCorruptError(f"{snapshot.path}: {error}. {WAY_ON}") from error
    torn = log.torn
    replay = Replay(machine, index)
    for record in log.records(index):
        replay.apply(record)
    for one in damaged:
        if one.index > replay.index:
            # It was whole once, and so was the log up to it.
            raise LogCorruptError(
                f"{one.path}: {one.reason}; and the log ends at record {replay.index}, before what"
                f" was in it. {WAY_ON}"
            )
    if log.last_index < index:
        # Nothing gets into a snapshot that was not in the log before.
        where = "" if torn is None else f"{torn.path}: offset {torn.offset}: "
        raise LogCorruptError(
            f"{where}{ends_before_snapshot(log.last_index, index, torn)}. {WAY_ON}"
        )
    if torn is not None:
        logger.warning(
            "%s: offset %d: dropped a torn tail of %d bytes behind record %d, from a write that was"
            " interrupted and not acknowledged; if there was no crash, it may be the last"
            " acknowledged write, damaged since",
            torn.path,
            torn.offset,
            torn.size_bytes,
            log.last_index,
            extra={"file": str(torn.path), "offset": torn.offset, "bytes": torn.size_bytes},
        )
    return Recovered(machine, replay.index, index, zxid, replay.entries, replay.size_bytes)
