"""Several servers in one virtual loop, on the model of etcd."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import paddock
from paddock.log.etcd.keys import Keys
from paddock.log.interface import LogError
from paddock.server.cluster.cluster import Cluster
from paddock.server.config.config import ServerConfig
from paddock.server.config.log_url import LogUrl
from paddock.server.connections.core import Core
from paddock.server.replication.cluster_view import ClusterView
from paddock.server.server import Server
from paddock.storage.events import FAULT
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.simulation.store_model import EtcdModel

# T in these tests: the shortest that there is.
T = 4.0
EPOCH_MS = 1_700_000_000_000


class Stage:
    """An etcd and its servers, by name."""

    def __init__(self, seed: int = 1, faults: StoreFaults | None = None) -> None:
        self.etcd = EtcdModel(seed, faults, keys=Keys("shop"))
        self.servers: dict[str, Server] = {}
        # How fast the clock of a server runs by which it measures leases.
        self.rates: dict[str, float] = {}
        # By how many milliseconds the time of day of a server is ahead.
        self.ahead_ms: dict[str, int] = {}
        # What a server could not go on without.
        self.lost: dict[str, LogError] = {}
        self._random = random.Random(seed)

    async def start(self, name: str, data: Path | None = None, **settings: Any) -> Server:
        server = self.make(name, self.config(data, **settings))
        server.on_lost = lambda error: self.lost.__setitem__(name, error)
        await server.start()
        self.servers[name] = server
        return server

    def make(self, name: str, config: ServerConfig) -> Server:
        """Return a server that is not started."""
        loop = asyncio.get_running_loop()
        return Server(
            config,
            wall_clock_ms=lambda: EPOCH_MS + int(loop.time() * 1000) + self.ahead_ms.get(name, 0),
            random_bytes=self._random.randbytes,
            lease_clock=lambda: loop.time() * self.rates.get(name, 1.0),
            store=self.etcd.store(name),
        )

    @staticmethod
    def config(data: Path | None = None, **settings: Any) -> ServerConfig:
        return ServerConfig(
            port=0,
            shared_log=LogUrl(("127.0.0.1:2379",), "shop"),
            data_directory=data,
            **{"tick_time_ms": 500, "sync_limit": 1, **settings},
        )

    async def kill(self, name: str) -> None:
        """End a server as kill -9 does: neither etcd nor a client hears of it any more."""
        server = self.servers.pop(name)
        core = self.core(server)
        core.is_open = False
        self.etcd.link(name).cut()
        server._endpoints.refuse()
        for connection in list(core.connections):
            connection.abort(FAULT)
        await self.cluster(server).close()
        core.tracker.stop()
        if server._engine is not None:
            server._engine.close()
        self.etcd.link(name).heal()

    def cluster(self, server: Server) -> Cluster:
        assert isinstance(server._backing, Cluster)
        return server._backing

    def core(self, server: Server) -> Core:
        assert server._core is not None
        return server._core

    def is_serving(self, name: str) -> bool:
        server = self.servers[name]
        return self.core(server).is_open and not self.cluster(server).lease.is_over()

    def hosts(self, *names: str) -> str:
        servers = [self.servers[name] for name in names or self.servers]
        return ",".join("{}:{}".format(*server.address) for server in servers)

    def members(self, name: str) -> list[int]:
        """Return the numbers of the members, as one server knows them."""
        roster = self.core(self.servers[name]).machine.roster
        assert roster is not None
        return [member.number for member in roster.members.values()]

    async def settle(self) -> None:
        """Wait until all servers have applied all that is in the log."""
        for _ in range(1_000):
            indices = {server.status()["index"] for server in self.servers.values()}
            if len(indices) == 1:
                break
            await asyncio.sleep(0.01)
        digests = {self.core(one).machine.shared_digest() for one in self.servers.values()}
        assert len(digests) == 1

    async def stop(self) -> None:
        for server in self.servers.values():
            await server.stop()


def view_of(stage: Stage, name: str) -> ClusterView:
    """Return what a server knows of its service."""
    view = stage.core(stage.servers[name]).cluster
    assert view is not None
    return view


@contextlib.asynccontextmanager
async def staged(
    *names: str, seed: int = 1, faults: StoreFaults | None = None, **settings: Any
) -> AsyncIterator[Stage]:
    """Start servers, and stop them in the end."""
    stage = Stage(seed, faults)
    for name in names:
        await stage.start(name, **settings)
    try:
        yield stage
    finally:
        await stage.stop()


def connect(stage: Stage, *names: str, timeout: float = 10.0) -> Any:
    return paddock.connect(stage.hosts(*names), session_timeout=timeout)
