"""A server with a log of its own: what it loads, keeps, and does when its log fails."""

from __future__ import annotations

from collections.abc import Callable

from paddock.log.interface import Log
from paddock.server.config.config import ServerConfig
from paddock.server.connections.core import Core
from paddock.server.durability.backing import Backing
from paddock.server.durability.log_recovery import LogRecovery
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.durability.startup import Engine, Restored, restore_newest
from paddock.server.replication.replica import Replica
from paddock.storage.replay import Replay, within_memory
from paddock.storage.retention import Retention


class OwnLog(Backing):
    """The log that the engine opens."""

    def __init__(self, config: ServerConfig, engine: Engine) -> None:
        self._config = config
        self._engine = engine
        self._log: Log | None = None
        self._recovery: LogRecovery | None = None

    @property
    def log(self) -> Log:
        assert self._log is not None, "it was not loaded"
        return self._log

    async def load(self, make_replica: Callable[[Replay], Replica]) -> tuple[Restored, Replica]:
        self._log = self._engine.open()
        return within_memory("what is stored", lambda: self._load(make_replica))

    def snapshotter(self, replica: Replica, restored: Restored) -> Snapshotter | None:
        config, store, directory = self._config, self._engine.snapshots, self._engine.directory
        if store is None:
            return None
        history = None
        if config.history_seconds:
            assert directory is not None, "snapshots are in a data folder"
            history = Retention(config.history_seconds, config.history_bytes, directory.log_path)
        return Snapshotter(
            replica,
            self.log,
            store,
            config.snapshot_every,
            config.purge_retain_count if config.purge_interval_hours else None,
            restored,
            config.snapshot_every_kib << 10,
            history=history,
        )

    def assemble(self, core: Core, snapshotter: Snapshotter | None) -> None:
        self._recovery = LogRecovery(core, self.log)
        core.proposer.on_unknown = self._recovery.begin

    async def drain(self) -> None:
        assert self._recovery is not None
        await self._recovery.stop()

    async def settle(self) -> None:
        assert self._recovery is not None
        # The log may have failed since.
        await self._recovery.stop()

    def keeps_state(self) -> bool:
        return True

    async def close(self) -> None:
        if self._log is not None:
            self._log.leave_loop()

    def _load(self, make_replica: Callable[[Replay], Replica]) -> tuple[Restored, Replica]:
        restored = restore_newest(self.log, self._engine.snapshots)
        replica = make_replica(restored.replay)
        replica.follow(self.log)
        return restored, replica
