"""The server: its parts, assembled, started in order and stopped in reverse order."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, cast

from paddock import __version__
from paddock.log.file.disk import Disk
from paddock.log.interface import LogError
from paddock.log.waits import until_none
from paddock.server.admin.audit import AuditLog
from paddock.server.admin.audit_format import FAILURE, INVOKED, SERVER_START, SERVER_STOP, SUCCESS
from paddock.server.admin.four_letter_words import FourLetterWords
from paddock.server.admin.health import Health
from paddock.server.admin.metrics import Metrics
from paddock.server.admin.rate_limits import AdminLimits
from paddock.server.config.config import ServerConfig
from paddock.server.config.settings import differing
from paddock.server.connections.connection import Connection
from paddock.server.connections.core import Core
from paddock.server.connections.descriptors import within_descriptors
from paddock.server.connections.last_replies import last_replies_taken
from paddock.server.durability.backing import Backing
from paddock.server.durability.own_log import OwnLog
from paddock.server.durability.past_changes import HistoryPages
from paddock.server.durability.past_state import PastState
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.durability.startup import Engine, Restored
from paddock.server.endpoints import Endpoints
from paddock.server.journal.event_writer import EventWriter
from paddock.server.journal.journal import Journal
from paddock.server.replication.proposer import Proposer
from paddock.server.replication.replica import Replica
from paddock.server.replication.service_clock import ServiceClock
from paddock.server.sasl.conversation import Offer
from paddock.server.sasl.offer import make_offer
from paddock.server.sessions.reaper import Reaper
from paddock.server.statistics import Statistics, where
from paddock.state.machine import StateMachine
from paddock.state.watches import Watches
from paddock.storage import events
from paddock.storage.replay import Replay

if TYPE_CHECKING:
    from paddock.log.etcd.store import Store

logger: Final = logging.getLogger(__name__)


class Server:
    """A ZooKeeper server in this process.

        server = Server(ServerConfig(port=0), wall_clock_ms=…, random_bytes=…)
        await server.start()
        … server.address …
        await server.stop()

    Time of day, randomness and the disk are parameters, so that tests can control them. `monotonic`
    is the clock by which work is shared out and the time of day is checked; the default is the
    loop's time, which on some loops stands still within a pass.

    With `past` it serves that state, for reading only, and has no log.

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
        past: StateMachine | None = None,
    ) -> None:
        self._config = config
        self._past = past
        self._wall_clock_ms = wall_clock_ms
        self._monotonic = monotonic
        self._random_bytes = random_bytes
        self._disk = disk
        self._on_fatal = on_fatal
        self._lease_clock = lease_clock
        self._store = store
        # Called when a shared log cannot be followed any more.
        self.on_lost: Callable[[LogError], None] | None = None
        self._engine: Engine | None = None
        # Its log: one of its own, or one that it shares.
        self._backing: Backing | None = None
        self._audit: AuditLog | None = None
        self._journal = Journal()
        # What clients may authenticate by in several steps.
        self._sasl: Offer | None = None
        self._core: Core | None = None
        # What it says of itself; None before it is started.
        self._words: FourLetterWords | None = None
        self._snapshotter: Snapshotter | None = None
        self._past_changes: HistoryPages | None = None
        self._reaper: Reaper | None = None
        self._health: Health | None = None
        self._endpoints = Endpoints(config, wall_clock_ms)
        # The supervisor hands the same one to each server that it runs.
        self.admin_limits = AdminLimits(config.admin_rate_limit_interval_ms / 1000)

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens; the secure port if there is no other."""
        return self._endpoints.address

    @property
    def secure_address(self) -> tuple[str, int] | None:
        """Where the server listens with TLS, if it does."""
        return self._endpoints.secure_address

    @property
    def admin_address(self) -> tuple[str, int]:
        """Where the admin server listens."""
        return self._endpoints.admin_address

    @property
    def metrics_address(self) -> tuple[str, int]:
        """Where the metrics have a port of their own."""
        return self._endpoints.metrics_address

    def config_with_ports(self) -> ServerConfig:
        """Return the settings with the ports that the system has assigned, for the next server."""
        return self._endpoints.config_with_ports()

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

    def say(self, word: str) -> Iterator[bytes] | None:
        """Return the answer to a four-letter word, in pieces; None if there is none."""
        return None if self._words is None else self._words.say(word)

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

    def use_endpoints(self, endpoints: Sequence[str]) -> None:
        """Find the etcd with the shared log at other addresses."""
        if self._backing is not None:
            self._backing.use_endpoints(endpoints)

    async def stop(self) -> None:
        """Close the port, answer what is in flight, write a snapshot, release everything."""
        core, backing = self._core, self._backing
        assert core is not None, "the server has not been started"
        assert backing is not None, "the server has been stopped"
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self._audit_server(SERVER_STOP, INVOKED)
        self._journal.add(events.SERVER_STOPPING)
        assert self._health is not None
        self._health.is_stopping = True
        if core.replica.is_dead():
            await self._stop_failed(core)
            return
        await self._endpoints.shut()
        core.is_open = False
        core.tracker.stop()
        if self._reaper is not None:
            self._reaper.stop()
        await backing.drain()
        for connection in list(core.connections):
            connection.hold()
        await until_none(core.proposer.drain)
        if core.replica.is_dead():
            await self._stop_failed(core)
            return
        drained = loop.time() - begun
        await backing.settle()
        for connection in list(core.connections):
            connection.close(events.STOPPING)
        if self._snapshotter is not None:
            if backing.keeps_state():
                await self._snapshotter.close()
            else:
                await self._snapshotter.give_up()
        await last_replies_taken(core.admission)
        self._journal.add(events.SERVER_STOPPED, seconds=loop.time() - begun)
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
        self._journal.stop()
        self._journal.close()

    async def _stop_failed(self, core: Core) -> None:
        """Release everything: there is nothing to answer, and no state to write."""
        core.tracker.stop()
        if self._snapshotter is not None:
            await self._snapshotter.give_up()
        await self._close_all()

    def _fail(self, reason: str) -> None:
        """Disconnect all clients without a reply: the state is not what the log says."""
        logger.critical(
            "a request that is in the log cannot be applied here: %s. The server ends before it"
            " answers anything. All that was acknowledged is in the log: start it again, with more"
            " memory if that was missing; if it cannot start, it says how to go on",
            reason,
            extra={"reason": reason},
        )
        self._journal.add(events.SERVER_FAILED, text=reason)
        if self._on_fatal is not None:
            self._on_fatal()
        core = self._core
        if core is None:
            # Who starts it is told.
            return
        core.is_open = False
        self._endpoints.refuse()
        for connection in list(core.connections):
            connection.abort(events.NOT_SERVING)
        if self._reaper is not None:
            self._reaper.stop()

    async def _start(self) -> None:
        config = self._config
        loop = asyncio.get_running_loop()
        begun = loop.time()
        engine = await self._open_resources()
        _log_start(config)
        self._backing = backing = self._choose_backing(engine)
        restored, replica = await backing.load(self._make_replica)
        load_seconds = loop.time() - begun
        if engine.snapshots is not None:
            restored.tell(load_seconds)
        core = self._assemble(backing, restored, replica)
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
        self._words = FourLetterWords(metrics)
        core.words = self._words.answer
        self._health = health = Health(core)
        await self._start_admin(metrics, health)
        core.tracker.start()
        assert self._reaper is not None
        self._reaper.start()
        await backing.open()
        await self._endpoints.open(core, self._connection)
        health.is_starting = False
        self._audit_server(SERVER_START, SUCCESS)
        host, port = self.address
        shown = {"host": host, "port": port, "seconds": loop.time() - begun}
        logger.info("ready: serving on %s:%d, %.2f s after the start", *shown.values(), extra=shown)
        at = where(host, port)
        self._journal.add(events.SERVER_STARTED, address=at, version=__version__, pid=os.getpid())

    async def _open_resources(self) -> Engine:
        """Open the ports, the data folder and the audit log.

        Clients cannot connect yet: that comes when the state has been loaded. All that may fail
        comes before the folder is made, so that a failed start leaves none behind.
        """
        config = self._config
        self._endpoints.load()
        self._sasl = make_offer(config, self._random_bytes)
        # Before the ports: the error about a folder in use names the server that has both.
        Engine.check(config)
        await self._endpoints.bind(self._connection)
        engine = self._engine = Engine(config, self._disk)
        if config.audit_enabled:
            file = config.audit_file
            if file is None and engine.directory is not None:
                file = engine.directory.path / "audit.log"
            self._audit = AuditLog(file, config.log_format, self._wall_clock_ms)
        return engine

    def _choose_backing(self, engine: Engine) -> Backing:
        """Return the kind of log that the configuration asks for. Raises LogError."""
        if self._past is not None:
            return PastState(self._past, engine)
        if self._config.shared_log is None:
            return OwnLog(self._config, engine)
        # Imported only where it is asked for, as is what speaks with etcd.
        from paddock.server.cluster.cluster import Cluster

        clock = self._lease_clock or self._monotonic or asyncio.get_running_loop().time
        cluster = Cluster(self._config, engine, self._store, clock, self._random_bytes)
        cluster.on_lost = self.on_lost
        return cluster

    def _make_replica(self, replay: Replay) -> Replica:
        config = self._config
        watches = Watches(
            config.max_watches_per_session, config.max_watch_bytes_per_session, config.max_watches
        )
        replica = Replica(replay, watches, Statistics(), self._monotonic)
        replica.on_fatal = self._fail
        return replica

    def _assemble(self, backing: Backing, restored: Restored, replica: Replica) -> Core:
        """Assemble the parts that serve the state."""
        config, machine = self._config, replica.machine
        monotonic = self._monotonic or asyncio.get_running_loop().time
        clock = ServiceClock(self._wall_clock_ms, monotonic, machine.time_ms)
        assert self._engine is not None
        directory = self._engine.directory
        if directory is not None and config.history_seconds:
            writer = EventWriter(
                directory.path / events.FOLDER,
                clock.time_ms,
                lambda: machine.zxid,
                keep_ms=config.history_seconds * 1000,
            )
            writer.watch_stalls(monotonic, self._wall_clock_ms)
            self._journal = replica.journal = writer
        proposer = Proposer(
            replica, backing.log, clock.time_ms, config.max_requests, config.max_request_bytes
        )
        proposer.slow_sync = config.slow_sync_ms / 1000
        backing.prepare(proposer, monotonic)
        if self._audit is not None:
            replica.on_entry = self._audit.take
        self._snapshotter = backing.snapshotter(replica, restored)
        if self._snapshotter is not None:
            replica.on_applied = self._snapshotter.look
        self._reaper = Reaper(proposer, machine.tree, config, clock.time_ms)
        self._reaper.is_on_duty = backing.is_on_duty
        self._core = Core(
            within_descriptors(config),
            replica,
            proposer,
            self._wall_clock_ms,
            self._random_bytes,
            monotonic,
            backing.lease,
        )
        self._core.credentials.sasl = self._sasl
        backing.assemble(self._core, self._snapshotter)
        if directory is not None and config.history_seconds:
            self._past_changes = HistoryPages(directory.path)
            self._core.feeds.past = self._past_changes
        return self._core

    def _audit_server(self, operation: str, result: str) -> None:
        if self._audit is not None:
            self._audit.add(operation, result)

    async def _start_admin(self, metrics: Metrics, health: Health) -> None:
        """Start the admin server and the port of metrics, if there are any."""
        admin, port = self._endpoints.admin, self._endpoints.metrics
        if admin is None and port is None:
            return
        from paddock.server.admin.prometheus import Exposition

        exposition = Exposition(metrics, health.is_ready, with_process=self._config.metrics_process)
        if port is not None:
            await port.start(exposition)
        if admin is not None:
            from paddock.server.admin.commands import AdminCommands
            from paddock.server.admin.data_commands import DataCommands

            limits = self.admin_limits
            limits.on_audit = None if self._audit is None else self._audit.add
            data_commands = DataCommands(self._config, self._snapshotter, limits)
            await admin.start(AdminCommands(metrics), data_commands, health, exposition)

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
        if self._core is not None:
            self._core.feeds.stop()
        if self._past_changes is not None:
            await self._past_changes.close()
            self._past_changes = None
        # The supervisor keeps it, and it would keep the state.
        self.admin_limits.on_audit = None
        await self._endpoints.close()
        if self._sasl is not None:
            self._sasl.close()
        if self._backing is not None:
            await self._backing.close()
        # These wait for threads.
        self._journal.stop()
        for kept in (self._audit, self._journal, self._engine):
            if kept is not None:
                await self._in_thread(kept.close)
        self._audit = self._engine = self._backing = None
        self._journal = Journal()


def _log_start(config: ServerConfig) -> None:
    different = differing(config)
    logger.info(
        "Paddock %s starts as process %d; its settings, where not the default: %s",
        __version__,
        os.getpid(),
        " ".join(f"{name}={value}" for name, value in different.items()) or "none",
        extra={"version": __version__, "pid": os.getpid(), "settings": different},
    )
