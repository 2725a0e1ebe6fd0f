"""Servers of a world: machines with a disk and a clock, and at most one server process each."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from paddock.log.file.disk import Disk
from paddock.log.interface import Log
from paddock.server.config.config import ServerConfig
from paddock.server.durability.startup import Engine
from paddock.server.server import Server
from paddock.testing.simulation.disk_log import DiskLog, SimulatedDisk
from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import ProcessLoop, new_process

PORT: Final = 2181
# The time of day at the beginning of every world.
_EPOCH_MS: Final = 1_700_000_000_000
TICK_MS: Final = 500


class _DiskEngine(Engine):
    """An engine whose log is on a simulated disk."""

    def __init__(self, config: ServerConfig, log: Log) -> None:
        super().__init__(config)
        self._log = log

    def open(self) -> Log:
        assert self._log is not None
        return self._log


class _DiskServer(Server):
    """The server itself, with another log."""

    log: Log

    async def _open_resources(self) -> Engine:
        await super()._open_resources()
        self._engine = _DiskEngine(self._config, self.log)
        return self._engine


class Machine:
    """One machine of a world with a server of its own."""

    def __init__(
        self,
        world: asyncio.AbstractEventLoop,
        network: SimulatedNetwork,
        seed: str,
        number: int,
        *,
        rate: float,
        sync_max: float,
    ) -> None:
        self.number = number
        self.name = f"s{number}"
        self.host = f"10.0.0.{number}"
        self.disk = SimulatedDisk(f"{seed} {self.name}", sync_max)
        self.process: ProcessLoop | None = None
        # What the processes of this machine have raised.
        self.failures: list[str] = []
        # How far its time of day is from the right one.
        self.jump_ms = 0
        self._world = world
        self._network = network
        self._seed = seed
        self._rate = rate
        self._boots = 0
        self._server: Server | None = None
        self._stopping: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and not self.process.is_dead

    def start(self) -> None:
        """Start a process, if none runs."""
        if self.is_running:
            return
        self._boots += 1
        process = self.process = new_process(
            self._world, self._network, self.name, self.host, rate=self._rate
        )
        draw = random.Random(f"{self._seed} {self.name} boot {self._boots}")
        config = ServerConfig(
            host=self.host,
            port=PORT,
            tick_time_ms=TICK_MS,
            container_check_interval_ms=5_000,
        )
        server = _DiskServer(
            config,
            wall_clock_ms=lambda: _EPOCH_MS + int(process.time() * 1000) + self.jump_ms,
            random_bytes=draw.randbytes,
            disk=Disk(),
            monotonic=process.time,
        )
        server.log = DiskLog(self.disk, process)
        self._server = server
        process.spawn(self._boot(server))

    async def _boot(self, server: Server) -> None:
        try:
            await server.start()
        except Exception as error:
            self.failures.append(f"{self.name}: it does not start: {error!r}")

    def stop(self) -> None:
        """Begin to stop the server in good order."""
        if self.is_running and self.process is not None and not self.process.is_paused:
            assert self._server is not None
            process, server = self.process, self._server

            async def stop() -> None:
                # One that has not come up yet cannot be stopped in good order.
                if server._core is not None:
                    try:
                        await server.stop()
                    except Exception as error:
                        self.failures.append(f"{self.name}: it does not stop: {error!r}")
                    self._end(process)

            self._stopping = process.spawn(stop())

    def kill(self, *, silently: bool) -> str:
        """Kill the process; return what became of the disk."""
        if self.process is None or self.process.is_dead:
            return "it was not running"
        self._end(self.process, silently=silently)
        return self.disk.crash(self._world.time())

    def pause(self) -> None:
        if self.process is not None:
            self.process.pause()

    def resume(self) -> None:
        if self.process is not None:
            self.process.resume()

    def _end(self, process: ProcessLoop, *, silently: bool = False) -> None:
        process.kill()
        self._network.die(process, silently=silently)
        self.collect(process)

    def collect(self, process: ProcessLoop | None) -> None:
        """Keep what a process has raised."""
        if process is not None:
            for context in process.failures:
                self.failures.append(
                    f"{self.name}: {context['message']}: {context.get('exception')!r}"
                )
            process.failures.clear()
