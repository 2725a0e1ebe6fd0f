"""Servers of a world: machines with a disk and a clock, and at most one server process each.

A machine that wants to serve starts its server again when that ends by itself, as systemd does.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Final

from paddock.log.file.disk import Disk
from paddock.log.interface import (
    ForbiddenError,
    LogCorruptError,
    LogError,
    OtherHistoryError,
    TrimmedError,
)
from paddock.server.cluster.cluster import Cluster
from paddock.server.config.config import ServerConfig
from paddock.server.config.log_url import LogUrl
from paddock.server.server import Server
from paddock.storage.snapshots import snapshot_index
from paddock.testing.simulation.disk import SimulatedDisk
from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import ProcessLoop, new_process
from paddock.testing.simulation.remote_store import RemoteStore, WorldEtcd
from paddock.testing.simulation.world_loop import WorldLoop

PORT: Final = 2181
# The time of day at the beginning of every world.
_EPOCH_MS: Final = 1_700_000_000_000
TICK_MS: Final = 500
_REAP_MS: Final = 1_000
LEASE_SECONDS: Final = ServerConfig(tick_time_ms=TICK_MS).lease_seconds
# Some clients wait for longer than a lease for a server that is silent.
_SESSION_TIMEOUT_MAX_MS: Final = 15_000
# How long it takes until a server that has ended by itself is started again.
_RESTART_SECONDS: Final = 2.0
_SNAPSHOT_EVERY: Final = 100
# What never passes by itself, so no world may bring it about.
_UNEXPECTED: Final = (OtherHistoryError, ForbiddenError, LogCorruptError)


class Machine:
    """One machine of a world."""

    def __init__(
        self,
        world: WorldLoop,
        network: SimulatedNetwork,
        seed: str,
        number: int,
        *,
        rate: float,
    ) -> None:
        self.number = number
        self.name = f"s{number}"
        self.host = f"10.0.0.{number}"
        self.process: ProcessLoop | None = None
        # What the processes of this machine have raised and should not have.
        self.failures: list[str] = []
        self.counts: Counter[str] = Counter()
        # How far its time of day is from the right one.
        self.jump_ms = 0
        # Whether there is, or was, a copy of it; and whether its log was replaced by an older one.
        self.is_copied = False
        self.is_outdone = False
        self.seed = f"{seed} {self.name}"
        self._world = world
        self._network = network
        self._rate = rate
        self._boots = 0
        self._is_wanted = False
        self._server: Server | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and not self.process.is_dead

    def start(self) -> None:
        """Start a process, if none runs."""
        self._is_wanted = True
        if not self.is_running:
            self._boots += 1
            self.process = new_process(
                self._world, self._network, self.name, self.host, rate=self._rate
            )
            self._start_server(self.process)

    def stop(self) -> None:
        """Begin to stop the server in good order."""
        self._is_wanted = False
        if self.process is not None and self.is_running and not self.process.is_paused:
            assert self._server is not None
            self.process.spawn(self._stop(self.process, self._server))

    def kill(self, *, silently: bool) -> str:
        """Kill the process; return what became of what it had not stored."""
        self._is_wanted = False
        if self.process is None or self.process.is_dead:
            return "it was not running"
        self._end(self.process, silently=silently)
        return ""

    def stay_down(self) -> None:
        """Do not start the server again when it ends by itself."""
        self._is_wanted = False

    def pause(self) -> None:
        if self.process is not None:
            self.process.pause()

    def resume(self) -> None:
        if self.process is not None:
            self.process.resume()

    def count(self) -> None:
        """Count what the present server has met."""

    def collect(self, process: ProcessLoop | None) -> None:
        """Keep what a process has raised."""
        if process is not None:
            for context in process.failures:
                problem = context.get("exception")
                self.failures.append(f"{self.name}: {context['message']}: {problem!r}")
            process.failures.clear()

    # For the kinds of servers.

    def make_server(self, process: ProcessLoop, draw: random.Random) -> Server:
        raise NotImplementedError

    def let_go(self) -> None:
        """Release what the operating system releases when a process ends."""
        engine = None if self._server is None else self._server._engine
        if engine is not None and engine.directory is not None:
            engine.directory.close()

    def wall_clock_ms(self) -> int:
        assert self.process is not None
        return _EPOCH_MS + int(self.process.time() * 1000) + self.jump_ms

    # The life of a process.

    def _start_server(self, process: ProcessLoop) -> None:
        draw = random.Random(f"{self.seed} boot {self._boots}")
        with process.enter():
            server = self._server = self.make_server(process, draw)
        server.on_lost = lambda error: self._lose(process, error)
        process.spawn(self._boot(process, server))

    async def _boot(self, process: ProcessLoop, server: Server) -> None:
        try:
            await server.start()
        except LogError as error:
            self._exit(process, error)
        except Exception as error:
            self.failures.append(f"{self.name}: it does not start: {error!r}")

    async def _stop(self, process: ProcessLoop, server: Server) -> None:
        # One that has not come up yet cannot be stopped in good order.
        if server._core is None or server._endpoints.listener is None:
            self._end(process)
            return
        try:
            await server.stop()
        except Exception as error:
            self.failures.append(f"{self.name}: it does not stop: {error!r}")
        self._end(process)
        # It may have been wanted again before it had stopped.
        self._world.call_later(_RESTART_SECONDS, self._restart)

    def _lose(self, process: ProcessLoop, error: LogError) -> None:
        """Do what the supervisor does when a server cannot follow its log."""
        self.counts[f"lost its log: {type(error).__name__}"] += 1
        if isinstance(error, TrimmedError):
            process.spawn(self._start_again(process))
        else:
            self._exit(process, error)

    async def _start_again(self, process: ProcessLoop) -> None:
        assert self._server is not None
        self.count()
        await self._server.stop()
        self._boots += 1
        self._start_server(process)

    def _exit(self, process: ProcessLoop, error: Exception) -> None:
        """End the process by itself; it is started again."""
        self.counts[f"ended by itself: {type(error).__name__}"] += 1
        is_meant = (self.is_copied and isinstance(error, ForbiddenError)) or (
            self.is_outdone and isinstance(error, OtherHistoryError)
        )
        if isinstance(error, _UNEXPECTED) and not is_meant:
            self.failures.append(f"{self.name}: it ended: {error!r}")
        self._end(process)
        self._world.call_later(_RESTART_SECONDS, self._restart)

    def _restart(self) -> None:
        if self._is_wanted:
            self.start()

    def _end(self, process: ProcessLoop, *, silently: bool = False) -> None:
        process.kill()
        self.count()
        self._network.die(process, silently=silently)
        self.collect(process)
        self.let_go()


class SingleMachine(Machine):
    """A machine with a server of its own, on a simulated disk."""

    def __init__(
        self,
        world: WorldLoop,
        network: SimulatedNetwork,
        seed: str,
        number: int,
        *,
        rate: float,
        sync_max: float,
        folder: Path,
    ) -> None:
        super().__init__(world, network, seed, number, rate=rate)
        # Half of them write as a compiled server does.
        has_writer = random.Random(f"{self.seed} disk writer").random() < 0.5
        self.disk = SimulatedDisk(self.seed, sync_max, world.time, has_writer=has_writer)
        self._folder = folder / self.name

    def make_server(self, process: ProcessLoop, draw: random.Random) -> Server:
        config = ServerConfig(
            host=self.host,
            port=PORT,
            tick_time_ms=TICK_MS,
            max_session_timeout_ms=_SESSION_TIMEOUT_MAX_MS,
            container_check_interval_ms=_REAP_MS,
            data_directory=self._folder,
            snapshot_every=_SNAPSHOT_EVERY,
            # The times of files are not those of the world.
            history_seconds=0,
        )
        return Server(
            config,
            wall_clock_ms=self.wall_clock_ms,
            random_bytes=draw.randbytes,
            disk=self.disk,
            monotonic=process.time,
            on_fatal=lambda: self.failures.append(f"{self.name}: its state was given up"),
        )

    def count(self) -> None:
        self.counts += self.disk.witness.counts
        self.disk.witness.counts.clear()

    def kill(self, *, silently: bool) -> str:
        said = super().kill(silently=silently)
        return said or (self.disk.cut_power() if silently else "")

    def let_go(self) -> None:
        self.disk.let_go()
        super().let_go()


class MemberMachine(Machine):
    """A machine whose server shares its log with others. Its data folder is a cache."""

    def __init__(
        self,
        world: WorldLoop,
        network: SimulatedNetwork,
        seed: str,
        number: int,
        *,
        rate: float,
        etcd: WorldEtcd,
        folder: Path,
    ) -> None:
        super().__init__(world, network, seed, number, rate=rate)
        self.etcd = etcd
        self._folder = folder / self.name
        self._store: RemoteStore | None = None

    def make_server(self, process: ProcessLoop, draw: random.Random) -> Server:
        config = ServerConfig(
            host=self.host,
            port=PORT,
            tick_time_ms=TICK_MS,
            max_session_timeout_ms=_SESSION_TIMEOUT_MAX_MS,
            container_check_interval_ms=_REAP_MS,
            shared_log=LogUrl(("etcd:2379",), "model"),
            data_directory=self._folder,
            snapshot_every=_SNAPSHOT_EVERY,
            # The times of files are not those of the world.
            history_seconds=0,
        )
        self._store = RemoteStore(process, self.etcd, self.name)
        return Server(
            config,
            wall_clock_ms=self.wall_clock_ms,
            random_bytes=draw.randbytes,
            disk=_QuickDisk(),
            monotonic=process.time,
            lease_clock=process.time,
            store=self._store,
            on_fatal=lambda: self.failures.append(f"{self.name}: its state was given up"),
        )

    def clone(self, number: int) -> MemberMachine:
        """Start again, and a copy of this machine with it, which has the same randomness.

        Clients do not know the copy. One of the two has to notice it, and ends.
        """
        copy = MemberMachine(
            self._world,
            self._network,
            "",
            100 * (number + 1) + self.number,
            rate=self._rate,
            etcd=self.etcd,
            folder=self._folder.parent,
        )
        copy.seed, copy._boots = self.seed, self._boots
        copy.jump_ms = self.jump_ms
        copy.is_copied = self.is_copied = True
        if self._folder.exists():
            shutil.copytree(self._folder, copy._folder)
        self.start()
        copy.start()
        return copy

    def count(self) -> None:
        cluster = None if self._server is None else self._server._backing
        if isinstance(cluster, Cluster) and cluster._start is not None:
            figures = cluster._start.log.figures
            self.counts["log: watches opened again"] += figures.reopenings
            self.counts["log: read in pages"] += figures.page_reads

    def cached_index(self) -> int:
        """Return the index of the newest snapshot in the data folder; 0 if there is none."""
        indices = (snapshot_index(path.name) for path in self._folder.rglob("*"))
        return max((index for index in indices if index is not None), default=0)

    def lose_cache(self) -> None:
        """Lose the data folder, while no process runs."""
        if not self.is_running:
            shutil.rmtree(self._folder, ignore_errors=True)

    def let_go(self) -> None:
        if self._store is not None:
            self._store.abandon()
        super().let_go()


class _QuickDisk(Disk):
    """A real disk that syncs nothing: what a process wrote outlives it, and machines do not fail.

    A cache may be lost altogether, which is what `lose_cache` does.
    """

    def sync(self, file: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass
