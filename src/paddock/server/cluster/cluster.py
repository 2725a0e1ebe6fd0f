"""A server as one of several: what it has that a server of its own has not.

Its data folder is a cache: snapshots make the next start fast, and two of them are kept. Without a
folder they are taken for etcd alone. History is there as well: more snapshots, and the records that
this server has applied. A stop disconnects the clients in small groups, so that they
spread over the other servers, and then leaves the service.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from paddock import __version__
from paddock.log.etcd.figures import LogFigures
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import Store
from paddock.log.interface import LogError, SharedLog, TrimmedError
from paddock.log.waits import until_none
from paddock.server.cluster.connection import StartCalls, open_store
from paddock.server.cluster.duty import Duty
from paddock.server.cluster.etcd_watch import EtcdWatch
from paddock.server.cluster.former_boot import FormerBoot
from paddock.server.cluster.laggards import Laggards
from paddock.server.cluster.log_meter import LogMeter
from paddock.server.cluster.membership import JoinRefusedError, Membership
from paddock.server.cluster.recorder import Recorder
from paddock.server.cluster.shared_settings import settings_text
from paddock.server.cluster.startup import SharedStart
from paddock.server.cluster.view import ServiceView
from paddock.server.config.config import ServerConfig
from paddock.server.connections.core import Core
from paddock.server.connections.last_replies import last_replies_taken
from paddock.server.durability.backing import Backing
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.durability.startup import Engine, Restored
from paddock.server.replication.lease import Lease
from paddock.server.replication.pacing import SHARED_BATCH_BYTES_MAX, Pacing
from paddock.server.replication.proposer import Proposer
from paddock.server.replication.replica import Replica
from paddock.server.replication.shared_records import SharedRecords
from paddock.storage.events import STOPPING
from paddock.storage.replay import OtherStateError, Replay
from paddock.storage.snapshots import SnapshotStore

# How many clients are disconnected at once when the server stops, at least; in how many groups, at
# most; and the pause between two groups, in seconds.
_GROUP_MIN: Final = 16
_GROUPS_MAX: Final = 20
_GROUP_PAUSE: Final = 0.1
# How often it is looked whether a group has its last answers, in seconds.
_LOOK_PAUSE: Final = 0.01
_LOOKS_MAX: Final = 500
# Snapshots that are kept: the log is not purged with them.
_CACHED_SNAPSHOTS: Final = 2
_NEVER: Final = 1 << 62

logger: Final = logging.getLogger(__name__)


class Cluster(Backing):
    """The membership of one server, with the log that it shares."""

    def __init__(
        self,
        config: ServerConfig,
        engine: Engine,
        store: Store | None,
        lease_clock: Callable[[], float],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """Without a store, open the one of the configuration. Raises LogError."""
        # Called when this server cannot go on by itself: a new one in this process may.
        self.on_lost: Callable[[LogError], None] | None = None
        assert config.shared_log is not None
        self._lease = Lease(lease_clock, config.lease_seconds)
        self._config = config
        self._engine = engine
        self._url = config.shared_log
        self._store = open_store(config, self._url) if store is None else store
        self._keys = Keys(self._url.name)
        self._random_bytes = random_bytes
        self._former = FormerBoot(engine.cache)
        # Whether the state was found to be wrong, so that nothing of it may be kept.
        self.has_wrong_state = False
        self._start: SharedStart | None = None
        self._records: SharedRecords | None = None
        self._membership: Membership | None = None
        self._core: Core | None = None
        self._duty: Duty | None = None
        self._etcd: EtcdWatch | None = None
        self._snapshots: SnapshotStore | None = None
        # What writes history; None if none is kept.
        self._recorder: Recorder | None = None

    @property
    def lease(self) -> Lease:
        return self._lease

    @property
    def log(self) -> SharedLog:
        assert self._start is not None
        return self._start.log

    @property
    def membership(self) -> Membership:
        assert self._membership is not None
        return self._membership

    async def load(self, make_replica: Callable[[Replay], Replica]) -> tuple[Restored, Replica]:
        self._snapshots = cache = self._engine.open_cache()
        history = self._engine.open_history()
        if history is not None:
            self._recorder = Recorder(history)
        self._start = SharedStart(
            self._store,
            self._keys,
            self._lease,
            self._random_bytes,
            make_replica,
            cache,
            StartCalls(self._url),
            self._recorder,
        )
        replica, self._records = await self._start.load()
        return Restored(replica.replay, replica.replay.index, replica.machine.zxid), replica

    def prepare(self, proposer: Proposer, monotonic: Callable[[], float]) -> None:
        proposer.pacing = Pacing(monotonic, SHARED_BATCH_BYTES_MAX)
        proposer.drop()

    def snapshotter(self, replica: Replica, restored: Restored) -> Snapshotter:
        config, is_kept = self._config, self._engine.keeps_snapshots()
        assert self._snapshots is not None
        recorder = self._recorder
        snapshotter = Snapshotter(
            replica,
            None if recorder is None else recorder.files,
            self._snapshots,
            config.snapshot_every if is_kept else _NEVER,
            _CACHED_SNAPSHOTS,
            restored,
            config.snapshot_every_kib << 10 if is_kept else 0,
            self._random_bytes(1)[0] / 256,
            None if recorder is None else recorder.files.retention(config.history_seconds),
        )
        if recorder is not None and not self._snapshots.has(restored.index):
            # The state came from etcd. History can be read from the first snapshot on.
            snapshotter.wants_one = True
        return snapshotter

    def assemble(self, core: Core, snapshotter: Snapshotter | None) -> None:
        core.is_open = False
        assert snapshotter is not None
        assert self._records is not None
        assert self._start is not None
        self._core = core
        self._records.on_failed = self._fail
        self._membership = membership = Membership(
            core,
            self._records,
            self.log,
            self._random_bytes,
            version=__version__,
            settings=settings_text(self._config),
        )
        membership.on_admitted = self._former.write
        membership.on_refused = self._fail
        assert self._snapshots is not None
        meter = LogMeter(core.replica)
        self._duty = Duty(
            self._store,
            self._keys,
            core.replica,
            snapshotter,
            self._snapshots.folder,
            membership,
            meter,
            self._random_bytes,
            core.wall_clock_ms,
            compacts=self._url.compacts,
        )
        membership.disputes.on_outvoted = self._give_up_state
        membership.disputes.on_upheld = self._renew_snapshot
        self._duty.is_in_doubt = membership.disputes.is_open
        self._observe(core, membership, self._start.log.figures, meter)

    def _observe(
        self, core: Core, membership: Membership, figures: LogFigures, meter: LogMeter
    ) -> None:
        """Look after what slows writers down or refuses them, and let others report it."""
        pacing, roster = core.proposer.pacing, core.machine.roster
        assert pacing is not None
        assert roster is not None
        self._etcd = EtcdWatch(
            self._store, self._keys, pacing, self._config.etcd_quota_bytes, core.wall_clock_ms
        )
        assert self._duty is not None
        self._duty.is_pressed = self._etcd.is_tight
        self._duty.room_bytes = self._etcd.room_bytes
        membership.on_look = Laggards(
            roster,
            pacing,
            self._lease.seconds,
            membership.silence.seconds,
            membership.announcer.name,
        ).look
        core.cluster = ServiceView(core, membership, figures, self._etcd, meter)

    def use_endpoints(self, endpoints: Sequence[str]) -> None:
        """Find etcd at other addresses."""
        self._store.use_endpoints(endpoints)

    async def open(self) -> None:
        """Become a member. Raises LogError if the service does not take us in."""
        await self.membership.join(self._former.read())
        assert self._core is not None
        self._core.is_open = True

    def is_on_duty(self) -> bool:
        return self.membership.is_on_duty()

    async def drain(self) -> None:
        assert self._core is not None
        await self._spread_clients(self._core)
        await last_replies_taken(self._core.admission)
        await self._leave()

    async def settle(self) -> None:
        assert self._core is not None
        await until_none(self._core.replica.catch_up)

    def keeps_state(self) -> bool:
        assert self._core is not None
        # What is held stays so: the log is followed no more.
        return self._engine.keeps_snapshots() and self._core.replica.is_between_batches()

    async def close(self) -> None:
        """Follow the log no more, and let go of everything."""
        if self._duty is not None:
            await self._duty.stop()
        if self._etcd is not None:
            await self._etcd.stop()
        if self._membership is not None:
            self._membership.stop()
        if self._start is not None:
            await self._start.log.close()
        if self._recorder is not None:
            await self._recorder.close()
        await self._store.close()
        if self.has_wrong_state and self._snapshots is not None:
            self._snapshots.set_aside()

    async def _spread_clients(self, core: Core) -> None:
        """Close the clients' connections in small groups, so that they spread over the others."""
        connections = list(core.connections)
        if self._lease.is_over():
            # Clients that only read, if any.
            for connection in connections:
                connection.close(STOPPING)
            return
        group = max(_GROUP_MIN, -(-len(connections) // _GROUPS_MAX))
        for start in range(0, len(connections), group):
            some = connections[start : start + group]
            for connection in some:
                connection.hold()
            for _ in range(_LOOKS_MAX):
                if self._lease.is_over() or not any(one.report().queued for one in some):
                    break
                await asyncio.sleep(_LOOK_PAUSE)
            for connection in some:
                connection.close(STOPPING)
            await asyncio.sleep(_GROUP_PAUSE)

    async def _leave(self) -> None:
        """Hand our sessions on, be no member any more, and follow the log no more."""
        if self._duty is not None:
            await self._duty.stop()
            self._duty = None
        if self._membership is not None:
            has_left = await self._membership.leave()
            if has_left and not self.has_wrong_state:
                self._former.clear()
        if self._start is not None:
            await self._start.log.close()

    def _give_up_state(self, error: OtherStateError) -> None:
        """End the boot at once: nothing of this state may be told to anybody."""
        self.has_wrong_state = True
        self._lease.end()
        asyncio.get_running_loop().call_soon(self._fail, error)

    def _renew_snapshot(self) -> None:
        if self._duty is not None:
            self._duty.wants_snapshot = True

    def _fail(self, error: LogError) -> None:
        """End the boot: the log cannot be followed any more."""
        if self._membership is not None and self._membership.is_joining:
            # Who waits for that is told, and comes back here unless the server only starts.
            self._membership.fail(error)
            return
        if isinstance(error, TrimmedError):
            logger.warning("the log was trimmed before it was read: %s", error)
        elif isinstance(error, OtherStateError | JoinRefusedError):
            logger.critical("%s", error)
        else:
            logger.critical("the log cannot be followed: %s", error)
        if self._membership is not None:
            self._membership.lose(str(error), for_good=True)
        if self.on_lost is not None:
            self.on_lost(error)
