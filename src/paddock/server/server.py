"""The server: everything put together, started in order and stopped in the reverse one."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import resource
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from paddock import __version__
from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.log.interface import Log, LogError
from paddock.log.memory import MemoryLog
from paddock.server.admin.audit import AuditLog
from paddock.server.admin.audit_format import FAILURE, INVOKED, SERVER_START, SERVER_STOP, SUCCESS
from paddock.server.admin.four_letter_words import FourLetterWords
from paddock.server.admin.metrics import Metrics
from paddock.server.admin.rate_limits import AdminLimits
from paddock.server.config.config import ServerConfig
from paddock.server.config.settings import differing
from paddock.server.connections.connection import Connection
from paddock.server.connections.ports import address_of, explained, start_listening
from paddock.server.core import Service
from paddock.server.durability.log_recovery import Outages
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.durability.startup import Recovered, recover_state
from paddock.server.replication.pipeline import Pipeline
from paddock.server.replication.service_clock import ServiceClock
from paddock.server.sessions.reaper import Reaper
from paddock.server.statistics import Statistics
from paddock.state.access import Identities
from paddock.state.watches import Watches
from paddock.storage.data_directory import DataDirectory, look_before_claim
from paddock.storage.snapshots import SnapshotStore

if TYPE_CHECKING:
    from paddock.server.admin.http import AdminServer
    from paddock.server.tls.ports import TlsPorts

logger: Final = logging.getLogger(__name__)

# How long a stop waits at most for clients that do not take their last answers.
_GOODBYES: Final = 15.0
_GOODBYES_TOLD_AFTER: Final = 0.5
# Files that are not connections: the log, snapshots, listeners, what Python has open.
_DESCRIPTORS_RESERVED: Final = 64


class Server:
    """A ZooKeeper server in this process.

        server = Server(ServerConfig(port=0), wall_clock_ms=…, random_bytes=…)
        await server.start()
        … server.address …
        await server.stop()

    Time of day and randomness are handed in, so that a test can decide what they are; so is the
    disk, if a test wants one that fails. `monotonic` gives the seconds by which work is shared out
    and the time of day is judged; the default is the loop's time, which on some loops stands still
    within a step.

    If the machine is not enough for the state, nobody is served any more, and `on_fatal` is called:
    a process that is nothing but a server ends then, at once.
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
    ) -> None:
        self._config = config
        self._wall_clock_ms = wall_clock_ms
        self._monotonic = monotonic
        self._random_bytes = random_bytes
        self._disk = disk
        self._on_fatal = on_fatal
        self._directory: DataDirectory | None = None
        self._log: Log | None = None
        self._audit: AuditLog | None = None
        self._service: Service | None = None
        self._snapshotter: Snapshotter | None = None
        self._reaper: Reaper | None = None
        # The plain port, and those on which TLS is spoken.
        self._listener: asyncio.Server | None = None
        self._admin: AdminServer | None = None
        self._secure: TlsPorts | None = None
        self._outages: Outages | None = None
        # The supervisor hands the same one to each server that it runs.
        self.admin_limits = AdminLimits(config.admin_rate_limit_interval_ms / 1000)

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens; the secure port, if there is no other."""
        if self._listener is not None:
            return address_of(self._listener.sockets)
        assert self._secure is not None, "the server has not been started"
        address = self._secure.unified_address or self._secure.address
        assert address is not None, "the server has not been started"
        return address

    @property
    def secure_address(self) -> tuple[str, int] | None:
        """Where the server listens with TLS, if it does."""
        return None if self._secure is None else self._secure.address

    @property
    def admin_address(self) -> tuple[str, int]:
        """Where the admin server listens."""
        assert self._admin is not None, "there is no admin server"
        return self._admin.address

    def config_with_ports(self) -> ServerConfig:
        """Give the settings with the ports that the system has chosen, for the next server."""
        config = self._config
        if config.port is not None:
            config = dataclasses.replace(config, port=self.address[1])
        if self.secure_address is not None:
            config = dataclasses.replace(config, secure_port=self.secure_address[1])
        if self._admin is not None:
            config = dataclasses.replace(config, admin_port=self.admin_address[1])
        return config

    async def start(self) -> None:
        """Restore the state and open the port.

        Raises PaddockError if the data folder, a file of TLS or a port cannot be used.
        """
        try:
            await self._start()
        except BaseException:
            self._tell_audit(SERVER_START, FAILURE)
            await self._let_go()
            raise

    async def serve_until(self, stop: asyncio.Event) -> None:
        """Serve until told to stop, then stop."""
        await stop.wait()
        await self.stop()

    async def take_snapshot(self) -> int:
        """Write the state as it is now to a snapshot; give its index. Raises LogError."""
        if self._snapshotter is None:
            raise LogError("a server in memory takes no snapshots")
        return await self._snapshotter.take_now()

    def status(self) -> dict[str, int]:
        """Return how far the state is.

        `index` is that of the last batch that is applied as a whole. The rest belongs together, as
        it is right after one entry: in the middle of a batch it is ahead of `index`.
        """
        service = self._service
        assert service is not None, "the server has not been started"
        machine = service.machine
        return {
            "index": service.pipeline.applied,
            "zxid": machine.zxid,
            "last_session": machine.sessions.last_id,
            "nodes": len(machine.tree),
            "sessions": len(machine.sessions.by_id),
        }

    async def stop(self) -> None:
        """Close the port, answer what is under way, write a snapshot, let go of everything."""
        service, outages = self._service, self._outages
        assert service is not None, "the server has not been started"
        assert outages is not None
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self._tell_audit(SERVER_STOP, INVOKED)
        if service.pipeline.is_dead():
            await self._bury(service)
            return
        if self._listener is not None:
            self._listener.close()
        if self._secure is not None:
            await self._secure.close()
        service.is_open = False
        service.tracker.stop()
        if self._reaper is not None:
            self._reaper.stop()
        await outages.stop()
        for connection in list(service.connections):
            connection.hold()
        await service.pipeline.drain()
        if service.pipeline.is_dead():
            await self._bury(service)
            return
        drained = loop.time() - begun
        # The log may have failed just now.
        await outages.stop()
        for connection in list(service.connections):
            connection.close()
        if self._snapshotter is not None:
            await self._snapshotter.close()
        await self._say_goodbye(service)
        await self._let_go()
        seconds = loop.time() - begun
        logger.info(
            "stopped after %.2f s, %.2f s of them for what was under way",
            seconds,
            drained,
            extra={"seconds": seconds, "draining": drained},
        )

    def abandon(self) -> None:
        """Keep what would be lost if the process ended now; for the log, that is nothing."""
        audit, self._audit = self._audit, None
        if audit is not None:
            audit.close()

    async def _bury(self, service: Service) -> None:
        """Let go of everything: there is nothing to be answered, and no state to be written."""
        service.tracker.stop()
        if self._snapshotter is not None:
            await self._snapshotter.give_up()
        await self._let_go()

    def _die(self, reason: str) -> None:
        """Serve nobody any more, unanswered: the state is not what the log says."""
        logger.critical(
            "this machine is not enough for a request that is in the log: %s. The server ends"
            " before it answers anything. All that was acknowledged is in the log: start it again,"
            " with more memory if there is any; if it cannot start, it says how to go on",
            reason,
            extra={"reason": reason},
        )
        if self._on_fatal is not None:
            self._on_fatal()
        service = self._service
        assert service is not None
        service.is_open = False
        if self._listener is not None:
            self._listener.close()
        for connection in list(service.connections):
            connection.abort()
        if self._reaper is not None:
            self._reaper.stop()

    async def _say_goodbye(self, service: Service) -> None:
        """Wait until every client has the last of its answers, or had its time to take it."""
        deserted = asyncio.Event()
        service.on_deserted = deserted.set
        if service.is_deserted():
            return
        told = asyncio.get_running_loop().call_later(
            _GOODBYES_TOLD_AFTER, logger.info, "waiting for clients to take their last answers"
        )
        with contextlib.suppress(TimeoutError):
            # A connection gives its client less than this; it is for what nobody thought of.
            async with asyncio.timeout(_GOODBYES):
                await deserted.wait()
        told.cancel()

    async def _start(self) -> None:
        config = self._config
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await self._open_places()
        _tell_start(config)
        store: SnapshotStore | None = None
        if self._directory is None:
            log: Log = MemoryLog(keep=False)
        else:
            store = SnapshotStore(self._directory.snapshots_path, disk=self._disk)
            log = FileLog(self._directory.log_path, disk=self._disk)
        self._log = log
        recovered = recover_state(log, store)
        load_seconds = loop.time() - begun
        if store is not None:
            _tell_loaded(recovered, load_seconds)
        service = self._assemble(log, store, recovered)
        metrics = self._metrics(service, recovered, load_seconds)
        service.words = FourLetterWords(metrics).answer
        if self._admin is not None:
            await self._start_admin(self._admin, metrics)
        service.tracker.start()
        assert self._reaper is not None
        self._reaper.start()
        if self._listener is not None:
            assert config.port is not None
            with explained(config.host, config.port):
                await start_listening(self._listener)
        if self._secure is not None:
            self._secure.start(service, self._connection)
        self._tell_audit(SERVER_START, SUCCESS)
        host, port = self.address
        seconds = loop.time() - begun
        logger.info(
            "ready: serving on %s:%d, %.2f s after the start",
            host,
            port,
            seconds,
            extra={"host": host, "port": port, "seconds": seconds},
        )

    async def _open_places(self) -> None:
        """Have the ports, the folder and the audit log, or find out now that they cannot be had.

        Nobody can connect yet: that comes when everything has been loaded. Whatever may be refused
        comes before the folder is made, so that a start that fails leaves none behind.
        """
        config = self._config
        if config.speaks_tls():
            # Imported only where it is asked for.
            from paddock.server.tls.ports import TlsPorts

            self._secure = TlsPorts(config, self._wall_clock_ms)
        if config.data_directory is not None:
            # Before the ports: what is said of the folder names the server that has both.
            look_before_claim(config.data_directory, config.data_log_directory)
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
        if config.data_directory is not None:
            self._directory = DataDirectory(config.data_directory, config.data_log_directory)
        if config.audit_enabled:
            self._audit = self._open_audit()

    def _assemble(self, log: Log, store: SnapshotStore | None, recovered: Recovered) -> Service:
        """Put the parts together that serve the state."""
        config, machine = self._config, recovered.machine
        statistics = Statistics()
        monotonic = self._monotonic or asyncio.get_running_loop().time
        clock = ServiceClock(self._wall_clock_ms, monotonic, machine.time_ms)
        watches = Watches(
            config.max_watches_per_session,
            config.max_watch_bytes_per_session,
            config.max_watches,
        )
        pipeline = Pipeline(
            machine,
            watches,
            log,
            recovered.index,
            statistics,
            clock.time_ms,
            config.max_requests,
            config.max_request_bytes,
            monotonic,
        )
        pipeline.slow_sync = config.slow_sync_ms / 1000
        if self._audit is not None:
            pipeline.on_entry = self._audit.take
        if store is not None:
            retain = config.purge_retain_count if config.purge_interval_hours else None
            self._snapshotter = Snapshotter(
                pipeline,
                log,
                store,
                config.snapshot_every,
                retain,
                recovered,
                config.snapshot_every_kib << 10,
            )
            pipeline.on_applied = self._snapshotter.look
        self._reaper = Reaper(pipeline, config, clock.time_ms)
        self._service = Service(
            _within_descriptors(config),
            machine,
            watches,
            pipeline,
            statistics,
            self._wall_clock_ms,
            self._random_bytes,
            monotonic,
        )
        self._outages = Outages(self._service, log)
        pipeline.on_unknown = self._outages.begin
        pipeline.on_fatal = self._die
        return self._service

    def _metrics(self, service: Service, recovered: Recovered, load_seconds: float) -> Metrics:
        secure = self.secure_address
        return Metrics(
            service,
            self._directory,
            -1 if self._config.port is None else self.address[1],
            asyncio.get_running_loop().time,
            secure_port=-1 if secure is None else secure[1],
            snapshotter=self._snapshotter,
            load_seconds=load_seconds,
            replayed_entries=recovered.replayed_entries,
        )

    def _open_audit(self) -> AuditLog:
        file = self._config.audit_file
        if file is None and self._directory is not None:
            file = self._directory.path / "audit.log"
        return AuditLog(file, self._config.log_format)

    def _tell_audit(self, operation: str, result: str) -> None:
        if self._audit is not None:
            self._audit.server(operation, result, self._wall_clock_ms())

    async def _bind_admin(self, host: str, port: int) -> None:
        # Imported now, not above: most servers have none, and need no HTTP.
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
        if self._audit is not None:
            limits.on_audit = self._tell_admin_audit
        data_commands = DataCommands(self._config, self._snapshotter, limits)
        await admin.start(AdminCommands(metrics), data_commands)

    def _tell_admin_audit(
        self, operation: str, result: str, identities: Identities, address: str
    ) -> None:
        if self._audit is not None:
            self._audit.admin(operation, result, identities, address, self._wall_clock_ms())

    def _connection(self) -> asyncio.Protocol:
        assert self._service is not None
        return cast(asyncio.Protocol, Connection(self._service))

    async def _beside(self, close: Callable[[], None]) -> None:
        """Call what blocks beside the event loop, if anybody is served by it."""
        if self._service is None:
            # The start has failed, perhaps since there is no memory: not for a thread either.
            close()
        else:
            await asyncio.get_running_loop().run_in_executor(None, close)

    async def _let_go(self) -> None:
        # It outlives us, and would hold the state.
        self.admin_limits.on_audit = None
        if self._admin is not None:
            await self._admin.close()
            self._admin = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._secure is not None:
            await self._secure.close()
            self._secure = None
        # They wait for threads of their own.
        if self._log is not None:
            await self._beside(self._log.close)
            self._log = None
        if self._audit is not None:
            await self._beside(self._audit.close)
            self._audit = None
        if self._directory is not None:
            self._directory.close()
            self._directory = None


def _tell_start(config: ServerConfig) -> None:
    different = differing(config)
    logger.info(
        "Paddock %s starts as process %d; its settings, where not the default: %s",
        __version__,
        os.getpid(),
        " ".join(f"{name}={value}" for name, value in different.items()) or "none",
        extra={"version": __version__, "pid": os.getpid(), "settings": different},
    )


def _tell_loaded(recovered: Recovered, seconds: float) -> None:
    machine = recovered.machine
    nodes, sessions = len(machine.tree), len(machine.sessions.by_id)
    logger.info(
        "loaded %d nodes and %d sessions at zxid 0x%x in %.2f s: the snapshot at %d and %d entries"
        " of the log",
        nodes,
        sessions,
        machine.zxid,
        seconds,
        recovered.snapshot_index,
        recovered.replayed_entries,
        extra={
            "nodes": nodes,
            "sessions": sessions,
            "zxid": machine.zxid,
            "seconds": seconds,
            "snapshot": recovered.snapshot_index,
            "replayed": recovered.replayed_entries,
        },
    )


def _within_descriptors(config: ServerConfig) -> ServerConfig:
    """Bound the connections by the files that the system lets us open.

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
