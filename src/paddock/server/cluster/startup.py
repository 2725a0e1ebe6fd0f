"""The start of a server on a shared log: find a state, follow the log from there, to its end.

etcd alone is durable. A data folder is a cache: the local snapshot in it counts if the log still
has the record that it ends with. Otherwise the newest snapshot in etcd counts, and if there is none
the log from its beginning.

A local snapshot of another service means that etcd was wiped, or that the folder belongs elsewhere.
An empty service would be served in its place, so the server refuses to start.

A local snapshot that the log knows nothing of means that etcd was restored from an older backup.
Clients have seen zxids that would be used again. So the server refuses to start, unless the service
has begun a new epoch since (`paddock cluster epoch`); then the snapshots are set aside.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from paddock.log.etcd.calls import UNPACED, Calls
from paddock.log.etcd.etcd_log import EtcdLog
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import (
    Manifest,
    ManifestReplacedError,
    read_manifest,
)
from paddock.log.etcd.service import find_or_create_service, find_service
from paddock.log.etcd.snapshots import download
from paddock.log.etcd.store import Store
from paddock.log.interface import LogCorruptError, LogError, OtherHistoryError, TrimmedError
from paddock.log.waits import until_none
from paddock.server.cluster.recorder import Recorder
from paddock.server.replication.lease import Lease
from paddock.server.replication.replica import Replica
from paddock.server.replication.shared_records import SharedRecords
from paddock.state.epoch import epoch_of
from paddock.state.machine import StateMachine
from paddock.state.snapshot import SnapshotError, restore
from paddock.storage.load import restored_state
from paddock.storage.replay import Replay, within_memory
from paddock.storage.snapshots import SnapshotStore

logger: Final = logging.getLogger(__name__)

# How often a snapshot may be replaced or trimmed away while we take it.
_ATTEMPTS: Final = 5


class SharedStart:
    """Brings a replica to the end of a shared log."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        lease: Lease,
        random_bytes: Callable[[int], bytes],
        make_replica: Callable[[Replay], Replica],
        cache: SnapshotStore,
        calls: Calls = UNPACED,
        recorder: Recorder | None = None,
    ) -> None:
        self.store = store
        self.keys = keys
        self.log = EtcdLog(store, keys)
        self._lease = lease
        self._random_bytes = random_bytes
        self._make_replica = make_replica
        self._cache = cache
        # How etcd is asked first.
        self._calls = calls
        # What writes history; None if nothing does.
        self._recorder = recorder

    async def load(self) -> tuple[Replica, SharedRecords]:
        """Return a replica that follows the log, and has all that was committed before the call.

        Raises LogError.
        """
        cached = self._cached_state()
        if cached is not None:
            await self._check_service(cached)
        service = await find_or_create_service(
            self.store, self.keys, self._random_bytes, self._calls
        )
        if cached is None:
            return await self._load_stored(service.id)
        try:
            return await self._follow(cached)
        except TrimmedError as error:
            logger.info("the snapshot in the data folder is not used: %s", error)
            return await self._load_stored(service.id)
        except OtherHistoryError:
            # Nothing of this log follows what was written down, if it is to be followed at all.
            recorder, self._recorder = self._recorder, None
            replica, records = await self._load_stored(service.id)
            if epoch_of(replica.machine.zxid) <= epoch_of(cached.zxid):
                raise
            logger.warning("the snapshot in the data folder is of an earlier epoch, and not used")
            # Their indices may be above those of the log as it is now. A purge would take them for
            # newer than each snapshot to come.
            self._cache.set_aside()
            if recorder is not None:
                await recorder.set_aside()
                records.on_record = recorder.take
            return replica, records

    async def _load_stored(self, service: bytes) -> tuple[Replica, SharedRecords]:
        """Start from what etcd has."""
        for _ in range(_ATTEMPTS):
            try:
                return await self._follow(await self._stored_state(service))
            except (TrimmedError, ManifestReplacedError) as error:
                logger.info("a newer snapshot is taken: %s", error)
        raise LogError("snapshots are replaced faster than they can be loaded")

    async def _follow(self, machine: StateMachine) -> tuple[Replica, SharedRecords]:
        roster = machine.roster
        assert roster is not None
        replica = self._make_replica(Replay(machine, roster.index))
        records = SharedRecords(replica, roster, self._lease)
        replica.sharing = records
        if self._recorder is not None:
            self._recorder.follow(roster.service)
            records.on_record = self._recorder.take
        # A server that has not started yet does not end: its start fails, and says why.
        failures: list[str] = []
        on_fatal, replica.on_fatal = replica.on_fatal, failures.append
        await self.log.follow(records, records.position())
        await until_none(replica.catch_up)
        if replica.failure is not None:
            reason = str(replica.failure) or type(replica.failure).__name__
            raise LogCorruptError(f"the log cannot be applied: {reason}") from replica.failure
        if records.failure is not None:
            raise records.failure
        replica.on_fatal = on_fatal
        return replica, records

    def _cached_state(self) -> StateMachine | None:
        """Return the state of the newest snapshot in the data folder; None if there is none."""
        try:
            snapshot = self._cache.newest(restored_state).snapshot
        except LogCorruptError as error:
            logger.warning("the newest snapshot is passed over: %s", error)
            return None
        if snapshot is None:
            return None
        machine = snapshot.content
        return None if machine.roster is None else machine

    async def _check_service(self, cached: StateMachine) -> None:
        """Refuse a cache that is not of the service in etcd."""
        service = await find_service(self.store, self.keys, self._calls)
        assert cached.roster is not None
        if service is None or service.id != cached.roster.service:
            found = "is none" if service is None else "is another one"
            raise OtherHistoryError(
                f"{self._cache.folder}: is the cache of a service that etcd does not have: there"
                f" {found} under this name. If etcd was wiped, restore a backup of it, or of the"
                " service with paddock restore. If this folder belongs to another service, take"
                " another one, or delete it"
            )

    async def _stored_state(self, service: bytes) -> StateMachine:
        """Return the state of the newest snapshot in etcd; an empty one if there is none."""
        manifest: Manifest | None = await read_manifest(self.store, self.keys)
        if manifest is None:
            machine = StateMachine()
            machine.share(service)
            return machine
        pieces = [piece async for piece in download(self.store, self.keys, manifest)]
        try:
            return within_memory("the snapshot in etcd", lambda: restore(pieces))
        except SnapshotError as error:
            raise LogCorruptError(f"the snapshot at {manifest.index} in etcd: {error}") from error
