"""Change feeds that wait while their server is cut off from etcd, comes back, or stops."""

from __future__ import annotations

import asyncio

import paddock
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, connect, staged


async def follow(client: paddock.Client, count: int) -> list[str]:
    """Return the paths of the next changes below /app."""
    found = []
    async for change in client.changes("/app"):
        found.append(change.path)
        if len(found) == count:
            break
    return found


async def waits(stage: Stage, *names: str) -> str:
    """Wait until a feed waits on one of these servers, and return which one."""
    async with asyncio.timeout(20 * T):
        while True:
            for name in names:
                if stage.core(stage.servers[name]).feeds.waiting_count():
                    return name
            await asyncio.sleep(0.1)


@in_virtual_time
async def test_a_feed_waits_on_while_its_server_only_reads() -> None:
    async with staged("a", "b", read_only_mode_enabled=True) as stage, connect(stage, "b") as other:
        await other.create("/app")
        hosts = stage.hosts("a")
        async with paddock.connect(hosts, session_timeout=60, read_only=True) as client:
            feed = asyncio.create_task(follow(client, 4))
            await waits(stage, "a")
            await other.create("/app/before")
            await waits(stage, "a")
            core = stage.core(stage.servers["a"])
            stage.etcd.link("a").cut()
            await asyncio.sleep(2 * T)
            # The wait of its first connection has ended with that, and it waits on another one.
            await waits(stage, "a")
            assert (core.is_read_only, len(core.feeds)) == (True, 1)
            await other.create("/app/meanwhile")
            await other.create("/app/also")
            stage.etcd.link("a").heal()
            await asyncio.sleep(3 * T)
            assert stage.is_serving("a")
            await waits(stage, "a")
            await other.create("/app/after")
            async with asyncio.timeout(10 * T):
                found = await feed
        assert found == [f"/app/{name}" for name in ("before", "meanwhile", "also", "after")]


@in_virtual_time
async def test_a_feed_leaves_a_server_that_is_cut_off_or_stops() -> None:
    async with staged("a", "b", "c") as stage, connect(stage, "c") as other:
        await other.create("/app")
        async with connect(stage, "a", "b", timeout=60) as client:
            feed = asyncio.create_task(follow(client, 3))
            home = await waits(stage, "a", "b")
            stage.etcd.link(home).cut()
            next_home = await waits(stage, *{"a", "b"} - {home})
            await other.create("/app/one")
            stage.etcd.link(home).heal()
            await asyncio.sleep(3 * T)
            assert stage.is_serving(home)
            await waits(stage, next_home)
            stopping = asyncio.create_task(stage.servers.pop(next_home).stop())
            await other.create("/app/two")
            await stopping
            assert await waits(stage, home) == home
            await other.create("/app/three")
            async with asyncio.timeout(20 * T):
                assert await feed == ["/app/one", "/app/two", "/app/three"]
