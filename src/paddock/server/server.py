"""The server: its parts, assembled, started in order and stopped in reverse order."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import resource
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, cast

from paddock import __version__
from paddock.log.file.disk import Disk
from paddock.log.interface import Log, LogError, SharedLog
from paddock.server.admin.audit import AuditLog
from paddock.server.admin.audit_format import FAILURE, INVOKED, SERVER_START, SERVER_STOP, SUCCESS
from paddock.server.admin.cluster_metrics import cluster_status
from paddock.server.admin.four_letter_words import FourLetterWords
from paddock.server.admin.metrics import Metrics
from paddock.server.admin.rate_limits import AdminLimits
from paddock.server.config.config import ServerConfig
from paddock.server.config.settings import differing
from paddock.server.connections.connection import Connection
from paddock.server.connections.core import Core
from paddock.server.connections.ports import address_of, explained, start_listening
from paddock.server.durability.log_recovery import LogRecovery
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.durability.startup import Engine, Restored, restore_newest
from paddock.server.replication.cluster_view import ClusterView
from paddock.server.replication.pacing import SHARED_BATCH_BYTES_MAX, Pacing
from paddock.server.replication.proposer import Proposer
from paddock.server.replication.replica import Replica
from paddock.server.replication.service_clock import ServiceClock
from paddock.server.sessions.reaper import Reaper
from paddock.server.statistics import Statistics
from paddock.state.watches import Watches
from paddock.storage.replay import Replay, within_memory
from paddock.storage.snapshots import SnapshotStore

if TYPE_CHECKING:
    from paddock.log.etcd.store import Store
    from paddock.server.admin.http import AdminServer
    from paddock.server.cluster.cluster import Cluster
    from paddock.server.config.log_url import LogUrl
    from paddock.server.tls.ports import TlsPorts

logger: Final = logging.getLogger(__name__)

# Seconds that a stop waits at most for clients that do not take their last replies.
_LAST_REPLIES: Final = 15.0
_LAST_REPLIES_LOGGED_AFTER: Final = 0.5
# Snapshots that a server keeps that shares its log.
_CACHED_SNAPSHOTS: Final = 2
_NEVER: Final = 1 << 62
# Descriptors that are not connections: the log, snapshots, listeners, Python's own.
_DESCRIPTORS_RESERVED: Final = 64


class Server:
    """A ZooKeeper server in this process.

        server = Server(ServerConfig(port=0), wall_clock_ms=…, random_bytes=…)
        await server.start()
        … server.address …
        await server.stop()

    Time of day, randomness and the disk are parameters, so that tests can control them. `monotonic`
    is the clock by which work is shared out and the time of day is checked; the default is the
    loop's time, which on some loops stands still within a pass.

    Where servers share a log in etcd, `lease_clock` is a clock that goes on while the machine
    sleeps, and `store` is the etcd; the default is the one of the configuration.

    If the machine cannot hold the state, no client is served any more, and `on_fatal` is called: a
    process that only serves ends then, at once.
    """

    def __init__(
        self,
        config: ServerConfig,
        *,
        wall_clock_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes],
        disk: Disk | None = None,
        on_fatal: Callable[[], None] | None = None,
        monotonic: Callable[[], float] | None = None,
        lease_clock: Callable[[], float] | None = None,
        store: Store | None = None,
    ) -> None:
        self._config = config
        self._wall_clock_ms = wall_clock_ms
        self._monotonic = monotonic
        self._random_bytes = random_bytes
        self._disk = disk
        self._on_fatal = on_fatal
        self._lease_clock = lease_clock
        self._store = store
        # Called when a shared log cannot be followed any more.
        self.on_lost: Callable[[LogError], None] | None = None
        self._cluster: Cluster | None = None
        self._engine: Engine | None = None
        self._audit: AuditLog | None = None
        self._core: Core | None = None
        self._snapshotter: Snapshotter | None = None
        self._reaper: Reaper | None = None
        # The plain port, and those on which TLS is spoken.
        self._listener: asyncio.Server | None = None
        self._admin: AdminServer | None = None
        self._secure: TlsPorts | None = None
        self._recovery: LogRecovery | None = None
        # The supervisor hands the same one to each server that it runs.
        self.admin_limits = AdminLimits(config.admin_rate_limit_interval_ms / 1000)

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens; the secure port if there is no other."""
        if self._listener is not None:
            return address_of(self._listener.sockets)
        assert self._secure is not None, "the server has not been started"
        address = self._secure.unified.address or self._secure.secure.address
        assert address is not None, "the server has not been started"
        return address

    @property
    def secure_address(self) -> tuple[str, int] | None:
        """Where the server listens with TLS, if it does."""
        return None if self._secure is None else self._secure.secure.address

    @property
    def admin_address(self) -> tuple[str, int]:
        """Where the admin server listens."""
        assert self._admin is not None, "there is no admin server"
        return self._admin.address

    def config_with_ports(self) -> ServerConfig:
        """Return the settings with the ports that the system has assigned, for the next server."""
        config, secure = self._config, self.secure_address
        return dataclasses.replace(
            config,
            port=None if config.port is None else self.address[1],
            secure_port=config.secure_port if secure is None else secure[1],
            admin_port=config.admin_port if self._admin is None else self.admin_address[1],
        )

    async def start(self) -> None:
        """Restore the state and open the port.

        Raises PaddockError if the data folder, a TLS file or a port cannot be used.
        """
        try:
            await self._start()
        except BaseException:
            self._audit_server(SERVER_START, FAILURE)
            await self._close_all()
            raise

    async def take_snapshot(self) -> int:
        """Write the state as it is now to a snapshot; return its index. Raises LogError."""
        if self._snapshotter is None:
            raise LogError("a server in memory takes no snapshots")
        return await self._snapshotter.take_now()

    def status(self) -> dict[str, int]:
        """Return how far the state is.

        `index` is that of the last batch that is applied as a whole. The rest is consistent, as of
        one entry: in the middle of a batch it is ahead of `index`.
        """
        core = self._core
        assert core is not None, "the server has not been started"
        machine = core.machine
        return {
            "index": core.replica.applied,
            "zxid": machine.zxid,
            "last_session": machine.sessions.last_id,
            "nodes": len(machine.tree),
            "sessions": len(machine.sessions.by_id),
        }

    def cluster_view(self) -> ClusterView:
        """Return what there is to know of the other servers. Raises LogError if it is alone."""
        core = self._core
        assert core is not None, "the server has not been started"
        if core.cluster is None:
            raise LogError("this server shares its log with no others")
        return core.cluster

    def cluster_status(self) -> dict[str, object]:
        """Return how this server sees its service. Raises LogError if it is alone."""
        view = self.cluster_view()
        assert self._core is not None
        return cluster_status(self._core, view)

    def use_endpoints(self, endpoints: Sequence[str]) -> None:
        """Find the etcd with the shared log at other addresses."""
        if self._cluster is not None:
            self._cluster.use_endpoints(endpoints)

    async def stop(self) -> None:
        """Close the port, answer what is in flight, write a snapshot, release everything."""
        core = self._core
        assert core is not None, "the server has not been started"
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self._audit_server(SERVER_STOP, INVOKED)
        if core.replica.is_dead():
            await self._stop_failed(core)
            return
        if self._listener is not None:
            self._listener.close()
        if self._secure is not None:
            await self._secure.close()
        core.is_open = False
        core.tracker.stop()
        if self._reaper is not None:
            self._reaper.stop()
        if self._recovery is not None:
            await self._recovery.stop()
        if self._cluster is not None:
            await self._cluster.spread_clients()
            await self._await_last_replies(core)
            await self._cluster.leave()
        for connection in list(core.connections):
            connection.hold()
        await core.proposer.drain()
        if core.replica.is_dead():
            await self._stop_failed(core)
            return
        drained = loop.time() - begun
        if self._recovery is not None:
            # The log may have failed just now.
            await self._recovery.stop()
        for connection in list(core.connections):
            connection.close()
        if self._cluster is not None:
            await core.replica.catch_up()
        if self._snapshotter is not None:
            # What is held stays so: the log is followed no more.
            is_whole = self._cluster is None or core.replica.is_between_batches()
            if self._engine is not None and self._engine.keeps_snapshots() and is_whole:
                await self._snapshotter.close()
            else:
                await self._snapshotter.give_up()
        await self._await_last_replies(core)
        await self._close_all()
        shown = {"seconds": loop.time() - begun, "draining": drained}
        logger.info(
            "stopped in %.2f s (%.2f s for requests in flight)",
            *shown.values(),
            extra=shown,
        )

    def abandon(self) -> None:
        """Write what would be lost if the process ended now; for the log, that is nothing."""
        audit, self._audit = self._audit, None
        if audit is not None:
            audit.close()

    async def _stop_failed(self, core: Core) -> None:
        """Release everything: there is nothing to answer, and no state to write."""
        core.tracker.stop()
        if self._snapshotter is not None:
            await self._snapshotter.give_up()
        await self._close_all()

    def _fail(self, reason: str) -> None:
        """Disconnect all clients without a reply: the state is not what the log says."""
        logger.critical(
            "this machine is not enough for a request that is in the log: %s. The server ends"
            " before it answers anything. All that was acknowledged is in the log: start it again,"
            " with more memory if there is any; if it cannot start, it says how to go on",
            reason,
            extra={"reason": reason},
        )
        if self._on_fatal is not None:
            self._on_fatal()
        core = self._core
        if core is None:
            # Who starts it is told.
            return
        core.is_open = False
        if self._listener is not None:
            self._listener.close()
        for connection in list(core.connections):
            connection.abort()
        if self._reaper is not None:
            self._reaper.stop()

    async def _await_last_replies(self, core: Core) -> None:
        """Wait until every client has its last replies, or has had its time to take them."""
        empty = asyncio.Event()
        core.admission.on_empty = empty.set
        if core.admission.is_empty():
            return
        told = asyncio.get_running_loop().call_later(
            _LAST_REPLIES_LOGGED_AFTER,
            logger.info,
            "waiting for clients to take their last answers",
        )
        with contextlib.suppress(TimeoutError):
            # A connection gives its client less than this: it is a safeguard.
            async with asyncio.timeout(_LAST_REPLIES):
                await empty.wait()
        told.cancel()

    async def _start(self) -> None:
        config = self._config
        loop = asyncio.get_running_loop()
        begun = loop.time()
        engine = await self._open_resources()
        _log_start(config)
        log: Log | SharedLog
        if config.shared_log is not None:
            log, restored, replica = await self._load_shared(engine, config.shared_log)
        else:
            own = log = engine.open()
            restored, replica = within_memory(
                "what is stored", lambda: self._load(own, engine.snapshots)
            )
        load_seconds = loop.time() - begun
        if engine.snapshots is not None or config.shared_log is not None:
            _log_loaded(restored, load_seconds)
        core = self._assemble(log, engine.snapshots, restored, replica)
        secure = self.secure_address
        metrics = Metrics(
            core,
            engine.directory,
            -1 if config.port is None else self.address[1],
            loop.time,
            secure_port=-1 if secure is None else secure[1],
            snapshotter=self._snapshotter,
            load_seconds=load_seconds,
            replayed_entries=restored.replay.entries,
        )
        core.words = FourLetterWords(metrics).answer
        if self._admin is not None:
            await self._start_admin(self._admin, metrics)
        core.tracker.start()
        assert self._reaper is not None
        self._reaper.start()
        if self._cluster is not None:
            await self._cluster.join()
            core.is_open = True
        if self._listener is not None:
            assert config.port is not None
            with explained(config.host, config.port):
                await start_listening(self._listener)
        if self._secure is not None:
            self._secure.start(core, self._connection)
        self._audit_server(SERVER_START, SUCCESS)
        host, port = self.address
        shown = {"host": host, "port": port, "seconds": loop.time() - begun}
        logger.info("ready: serving on %s:%d, %.2f s after the start", *shown.values(), extra=shown)

    async def _open_resources(self) -> Engine:
        """Open the ports, the data folder and the audit log.

        Clients cannot connect yet: that comes when the state has been loaded. All that may fail
        comes before the folder is made, so that a failed start leaves none behind.
        """
        config = self._config
        if config.speaks_tls():
            # Imported only where it is asked for.
            from paddock.server.tls.ports import TlsPorts

            self._secure = TlsPorts(config, self._wall_clock_ms)
        # Before the ports: the error about a folder in use names the server that has both.
        Engine.check(config)
        if config.port is not None and not config.port_unification:
            with explained(config.host, config.port):
                self._listener = await asyncio.get_running_loop().create_server(
                    self._connection,
                    config.host,
                    config.port,
                    backlog=config.listen_backlog,
                    start_serving=False,
                )
        if self._secure is not None:
            await self._secure.bind()
        if config.admin_address is not None:
            await self._bind_admin(*config.admin_address)
        engine = self._engine = Engine(config, self._disk)
        if config.audit_enabled:
            file = config.audit_file
            if file is None and engine.directory is not None:
                file = engine.directory.path / "audit.log"
            self._audit = AuditLog(file, config.log_format, self._wall_clock_ms)
        return engine

    async def _load_shared(
        self, engine: Engine, url: LogUrl
    ) -> tuple[SharedLog, Restored, Replica]:
        """Bring a replica to the end of a log that several servers share."""
        # Imported only where it is asked for, as is what speaks with etcd.
        from paddock.server.cluster.cluster import Cluster
        from paddock.server.cluster.connection import open_store

        config = self._config
        store = open_store(config, url) if self._store is None else self._store
        clock = self._lease_clock or self._monotonic or asyncio.get_running_loop().time
        self._cluster = Cluster(config, store, clock, self._random_bytes, engine.cache)
        self._cluster.on_lost = self.on_lost
        replica = await self._cluster.load(self._make_replica, engine.open_cache())
        restored = Restored(replica.replay, replica.replay.index, replica.machine.zxid)
        return self._cluster.log, restored, replica

    def _make_replica(self, replay: Replay) -> Replica:
        config = self._config
        watches = Watches(
            config.max_watches_per_session, config.max_watch_bytes_per_session, config.max_watches
        )
        replica = Replica(replay, watches, Statistics(), self._monotonic)
        replica.on_fatal = self._fail
        return replica

    def _load(self, log: Log, store: SnapshotStore | None) -> tuple[Restored, Replica]:
        """Bring a replica to the end of the log."""
        restored = restore_newest(log, store)
        replica = self._make_replica(restored.replay)
        replica.follow(log)
        return restored, replica

    def _assemble(
        self,
        log: Log | SharedLog,
        store: SnapshotStore | None,
        restored: Restored,
        replica: Replica,
    ) -> Core:
        """Assemble the parts that serve the state."""
        config, machine = self._config, replica.machine
        monotonic = self._monotonic or asyncio.get_running_loop().time
        clock = ServiceClock(self._wall_clock_ms, monotonic, machine.time_ms)
        proposer = Proposer(
            replica, log, clock.time_ms, config.max_requests, config.max_request_bytes
        )
        proposer.slow_sync = config.slow_sync_ms / 1000
        cluster = self._cluster
        if cluster is not None:
            proposer.pacing = Pacing(monotonic, SHARED_BATCH_BYTES_MAX)
            proposer.drop()
        if self._audit is not None:
            replica.on_entry = self._audit.take
        if store is not None:
            assert self._engine is not None
            # Without a data folder, snapshots are taken for etcd alone.
            is_kept = self._engine.keeps_snapshots()
            self._snapshotter = Snapshotter(
                replica,
                None if cluster is not None else cast(Log, log),
                store,
                config.snapshot_every if is_kept else _NEVER,
                self._retained(),
                restored,
                config.snapshot_every_kib << 10 if is_kept else 0,
                0.0 if cluster is None else self._random_bytes(1)[0] / 256,
            )
            replica.on_applied = self._snapshotter.look
        self._reaper = Reaper(proposer, machine.tree, config, clock.time_ms)
        self._core = Core(
            _within_descriptors(config),
            replica,
            proposer,
            self._wall_clock_ms,
            self._random_bytes,
            monotonic,
            None if cluster is None else cluster.lease,
        )
        if cluster is None:
            self._recovery = LogRecovery(self._core, cast(Log, log))
            proposer.on_unknown = self._recovery.begin
        else:
            self._core.is_open = False
            assert self._snapshotter is not None
            cluster.assemble(self._core, self._reaper, self._snapshotter)
        return self._core

    def _retained(self) -> int | None:
        """Return how many snapshots a purge leaves; None never purges."""
        config = self._config
        if config.shared_log is not None:
            # A cache: the log is not purged with it.
            return _CACHED_SNAPSHOTS
        return config.purge_retain_count if config.purge_interval_hours else None

    def _audit_server(self, operation: str, result: str) -> None:
        if self._audit is not None:
            self._audit.add(operation, result)

    async def _bind_admin(self, host: str, port: int) -> None:
        # Imported here: most servers have none, and need no HTTP.
        from paddock.server.admin.http import AdminServer
        from paddock.server.admin.origin import AdminHosts

        config = self._config
        self._admin = AdminServer(
            config.admin_url,
            config.admin_idle_timeout_ms / 1000,
            self._wall_clock_ms,
            AdminHosts(host, config.admin_allowed_hosts),
        )
        await self._admin.bind(host, port)

    async def _start_admin(self, admin: AdminServer, metrics: Metrics) -> None:
        from paddock.server.admin.commands import AdminCommands
        from paddock.server.admin.data_commands import DataCommands

        limits = self.admin_limits
        limits.on_audit = None if self._audit is None else self._audit.add
        await admin.start(
            AdminCommands(metrics), DataCommands(self._config, self._snapshotter, limits)
        )

    def _connection(self) -> asyncio.Protocol:
        assert self._core is not None
        return cast(asyncio.Protocol, Connection(self._core))

    async def _in_thread(self, close: Callable[[], None]) -> None:
        """Call a blocking function in a thread, if the event loop serves clients."""
        if self._core is None:
            # The start has failed, perhaps for want of memory: there is none for a thread either.
            close()
        else:
            await asyncio.get_running_loop().run_in_executor(None, close)

    async def _close_all(self) -> None:
        # The supervisor keeps it, and it would keep the state.
        self.admin_limits.on_audit = None
        for server in (self._admin, self._secure):
            if server is not None:
                await server.close()
        if self._listener is not None:
            self._listener.close()
        if self._cluster is not None:
            await self._cluster.close()
        # These wait for threads.
        for kept in (self._audit, self._engine):
            if kept is not None:
                await self._in_thread(kept.close)
        self._admin = self._secure = self._listener = self._audit = self._engine = None
        self._cluster = None


def _log_start(config: ServerConfig) -> None:
    different = differing(config)
    logger.info(
        "Paddock %s starts as process %d; its settings, where not the default: %s",
        __version__,
        os.getpid(),
        " ".join(f"{name}={value}" for name, value in different.items()) or "none",
        extra={"version": __version__, "pid": os.getpid(), "settings": different},
    )


def _log_loaded(restored: Restored, seconds: float) -> None:
    machine = restored.replay.machine
    shown = {
        "nodes": len(machine.tree),
        "sessions": len(machine.sessions.by_id),
        "zxid": machine.zxid,
        "seconds": seconds,
        "snapshot": restored.index,
        "replayed": restored.replay.entries,
    }
    logger.info(
        "loaded %d nodes and %d sessions at zxid 0x%x in %.2f s: the snapshot at %d and %d entries"
        " of the log",
        *shown.values(),
        extra=shown,
    )


def _within_descriptors(config: ServerConfig) -> ServerConfig:
    """Limit the connections by the descriptors that the system allows.

    A connection over that limit could not even be refused, and neither a snapshot nor the next
    segment of the log could be opened.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    affordable = max(files - _DESCRIPTORS_RESERVED, 1)
    if files == resource.RLIM_INFINITY or 0 < config.max_connections <= affordable:
        return config
    logger.info(
        "at most %d connections at a time, since only %d files may be open", affordable, files
    )
    return dataclasses.replace(config, max_connections=affordable)
