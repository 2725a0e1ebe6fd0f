"""`paddock demo cluster`: three etcd and three servers on this machine, of which some are killed.

Each scene kills a process while a client counts, waits until it counts on, says what was seen, and
starts the process again. Nothing that is said is made up: times are those of the clients, and what
is claimed is checked. In the end everything is stopped, and the folder is gone.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from paddock.cli.cluster.folder import HOST, opened
from paddock.cli.cluster.processes import ClusterProcess
from paddock.cli.cluster.up import LocalCluster
from paddock.cli.demo.cluster_clients import COUNT, Counter, Watcher, counting, watching
from paddock.cli.demo.stage import deadline
from paddock.cli.output import CannotBeDone

SCENES: Final = ("server", "etcd")
# T is 4 s with it, the shortest that there is.
_CONFIG: Final = "tickTime=1000\nsyncLimit=4\n"
# How far a scene counts before and after something is killed.
_COUNTS: Final = 50


class ClusterDemo:
    """The cluster, its clients, and what is told of them."""

    def __init__(self, cluster: LocalCluster, counter: Counter, watcher: Watcher) -> None:
        self._cluster = cluster
        self._counter = counter
        self._watcher = watcher
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    def tell(self, who: str, what: str) -> None:
        """Print a line as the other acts do."""
        click.echo(f"{'cluster':<10} {self._loop.time() - self._began:6.2f}  {who:<9} {what}")
        # A reader of lines is to have it now.
        sys.stdout.flush()

    async def play(self, scene: str) -> None:
        """Play a scene. Raises CannotBeDone if it does not go as it should."""
        counter, watcher = self._counter, self._watcher
        await self._counts_on()
        victim = await self._victim(scene)
        count, disconnections = counter.count, watcher.disconnections
        killed_at = self._loop.time()
        self.tell("demo", f"kills with SIGKILL: {self._described(scene, victim)}")
        victim.signal(signal.SIGKILL)
        await victim.wait()
        await self._counts_on()
        await self._watches_on()
        without = counter.seconds_without_server(killed_at)
        pause = counter.longest_pause(killed_at)
        if without is None:
            lost = "its connection was never lost"
        else:
            lost = f"it had no server for {without:.2f} s, and has its session again"
        self.tell("counter", f"saw that {lost}; it waited {pause:.2f} s for a write, at most")
        _check(counter.grant.is_held, "the lock is still held")
        _check(counter.count > count, "it counts on")
        self.tell("counter", f"still holds the lock, and is at {counter.count}")
        _check(watcher.seen == sorted(set(watcher.seen)), "the count that is watched only grows")
        gone = watcher.disconnections - disconnections
        self.tell(
            "watcher",
            "saw that its connection was never lost, and the count only grew"
            if not gone
            else "saw that the count only grew, though it had to connect again",
        )
        await victim.start()
        await victim.wait_until_it_serves()
        self.tell("demo", f"has started {victim.name} again: it serves")

    async def sum_up(self) -> None:
        """Compare what was counted with what the service has."""
        await self._counts_on()
        data, stat = await self._watcher.client.get(COUNT)
        # Every write has raised both by one.
        _check(int(data) == stat.version, "no write was lost, and none done twice")
        self.tell(
            "demo", f"saw that {stat.version} writes made the count {int(data)}: each done once"
        )

    async def _counts_on(self) -> None:
        async with deadline("nothing was written"):
            await self._counter.goes_on(self._counter.count + _COUNTS)

    async def _watches_on(self) -> None:
        """Wait until the watcher has seen where the counter is now."""
        async with deadline("the watcher has seen nothing"):
            await self._watcher.sees(self._counter.count)

    async def _victim(self, scene: str) -> ClusterProcess:
        if scene == "server":
            return await server_of(self._cluster.servers, self._counter.client.session_id)
        return await _leader(self._cluster.etcd)

    def _described(self, scene: str, victim: ClusterProcess) -> str:
        what = "the server of the counter" if scene == "server" else "etcd's leader"
        return f"{victim.name}, {what}, process {victim.pid}"


async def play_cluster(scenes: Sequence[str]) -> None:
    """Start everything, play scenes, and stop everything."""
    with tempfile.TemporaryDirectory(prefix="paddock-demo-") as name:
        config = Path(name) / "zoo.cfg"
        config.write_text(_CONFIG, encoding="utf-8")
        with opened(Path(name) / "cluster", 3, None) as folder:
            cluster = LocalCluster(folder, config)
            try:
                await cluster.start()
                await _play(cluster, scenes)
            finally:
                await cluster.stop()


async def _play(cluster: LocalCluster, scenes: Sequence[str]) -> None:
    async with counting(cluster.folder.hosts) as counter:
        first = await server_of(cluster.servers, counter.client.session_id)
        others = ",".join(f"{HOST}:{one.port}" for one in cluster.servers if one is not first)
        async with watching(others) as watcher:
            demo = ClusterDemo(cluster, counter, watcher)
            demo.tell("demo", "three etcd and three servers run on this machine")
            demo.tell("counter", f"is connected to {first.name}; holds a lock, and counts")
            demo.tell("watcher", "watches the count through another server")
            for scene in scenes:
                await demo.play(scene)
            await demo.sum_up()


async def server_of(servers: Sequence[ClusterProcess], session: int) -> ClusterProcess:
    """Return the server that a session is connected to."""
    async with deadline("no server has the session of the counter"):
        while True:
            for server in servers:
                if f"sid=0x{session:x}," in await _asked(server, b"cons"):
                    return server
            await asyncio.sleep(0.1)


async def _leader(members: Sequence[ClusterProcess]) -> ClusterProcess:
    async with deadline("no member of etcd leads"):
        while True:
            for member in members:
                said = await _asked(member, b"GET /metrics HTTP/1.0\r\n\r\n")
                if "\netcd_server_is_leader 1\n" in said:
                    return member
            await asyncio.sleep(0.1)


async def _asked(process: ClusterProcess, question: bytes) -> str:
    """Return what a process answers on its port; nothing if it does not."""
    try:
        reader, writer = await asyncio.open_connection(HOST, process.port)
        try:
            writer.write(question)
            return (await reader.read()).decode(errors="replace")
        finally:
            writer.close()
    except OSError:
        return ""


def _check(is_so: bool, claim: str) -> None:
    if not is_so:
        raise CannotBeDone(f"cluster: it does not hold that {claim}")
