"""The state of a service in etcd: read while its servers run, or written into a new name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from paddock.log.etcd.backup import ServiceHead, SnapshotPiece, read_service, write_service
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import Manifest, ManifestReplacedError
from paddock.log.etcd.service import ID_BYTES
from paddock.log.etcd.store import Store
from paddock.log.interface import LogCorruptError, LogError, Record
from paddock.state.machine import StateMachine
from paddock.state.snapshot import Snapshot, SnapshotError, restore
from paddock.storage.cluster.shared_replay import SharedReplay
from paddock.storage.replay import within_memory

# How often the servers may trim away what is being read.
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class SharedState:
    """A state, and what it was made of."""

    head: ServiceHead
    machine: StateMachine
    # Of the log behind the snapshot.
    batches: int
    batch_bytes: int


async def load_service(store: Store, keys: Keys) -> SharedState:
    """Return the state that has all batches committed before the call. Raises LogError."""
    for _ in range(_ATTEMPTS):
        try:
            return await _load(store, keys)
        except ManifestReplacedError:
            continue
    raise LogError("the log is trimmed faster than it can be read")


async def create_service(
    store: Store, keys: Keys, machine: StateMachine, random_bytes: Callable[[int], bytes]
) -> Manifest:
    """Write the state of a single server into a name that has no service yet. Raises LogError.

    The state becomes a shared one. Its sessions have no owner: the first server that joins has.
    """
    id = random_bytes(ID_BYTES)
    machine.share(id)
    assert machine.roster is not None
    chunks = Snapshot(machine).chunks()
    return await write_service(store, keys, id, chunks, machine.roster.rules, random_bytes)


async def _load(store: Store, keys: Keys) -> SharedState:
    head: ServiceHead | None = None
    pieces: list[bytes] = []
    replay: SharedReplay | None = None
    batches = batch_bytes = 0
    async for one in read_service(store, keys):
        if isinstance(one, ServiceHead):
            head = one
        elif isinstance(one, SnapshotPiece):
            pieces.append(one.content)
        else:
            assert isinstance(one, Record)
            assert head is not None
            if replay is None:
                replay = SharedReplay(_restore(head, pieces), head.skipped)
            replay.apply(one)
            batches += 1
            batch_bytes += len(one.payload)
    assert head is not None, "it comes first"
    machine = _restore(head, pieces) if replay is None else replay.machine
    return SharedState(head, machine, batches, batch_bytes)


def _restore(head: ServiceHead, pieces: list[bytes]) -> StateMachine:
    if head.manifest is None:
        machine = StateMachine()
        machine.share(head.service.id)
        return machine
    try:
        machine = within_memory("the snapshot in etcd", lambda: restore(pieces))
    except SnapshotError as error:
        raise LogCorruptError(f"the snapshot at {head.manifest.index} in etcd: {error}") from error
    if machine.roster is None or machine.roster.service != head.service.id:
        raise LogCorruptError(f"the snapshot at {head.manifest.index} is of another service")
    return machine
