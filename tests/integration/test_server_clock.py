"""A server whose clock jumps: stamps and TTLs, also after a restart."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import paddock
from paddock.server.config.config import ServerConfig
from paddock.server.server import Server
from paddock.testing.clock import run_virtually
from paddock.testing.embedded import EmbeddedServer

HOUR = 3600.0
DAY_MS = 86_400_000
BEGUN_MS = 1_700_000_000_000


def test_a_clock_that_jumps_a_day_ahead_for_a_second_leaves_ttls_as_they_are() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        jump_ms = 0

        def wall_clock_ms() -> int:
            return BEGUN_MS + int(loop.time() * 1000) + jump_ms

        async with (
            EmbeddedServer(wall_clock_ms=wall_clock_ms) as server,
            paddock.connect(server.hosts) as client,
        ):
            await client.create("/before", ttl=2 * HOUR)
            jump_ms = DAY_MS
            await client.create("/meanwhile", ttl=2 * HOUR)
            await asyncio.sleep(1)
            await client.set("/before", b"", version=-1)
            jump_ms = 0
            await asyncio.sleep(1.9 * HOUR)
            assert await client.exists("/before")
            assert await client.exists("/meanwhile")
            await asyncio.sleep(0.2 * HOUR)
            assert not await client.exists("/before")
            assert not await client.exists("/meanwhile")

    run_virtually(scenario())


def test_after_a_restart_stamps_go_on_behind_those_a_day_ahead_and_slower(tmp_path: Path) -> None:
    wall_ms, seconds = BEGUN_MS + DAY_MS, 100.0

    async def stamp_of(path: str, pause: float = 0.0) -> list[int]:
        """Start a server, create a node, and one more when this time has passed; stop it."""
        nonlocal wall_ms, seconds
        server = Server(
            ServerConfig(port=0, data_directory=tmp_path / "data"),
            wall_clock_ms=lambda: wall_ms,
            random_bytes=os.urandom,
            monotonic=lambda: seconds,
        )
        await server.start()
        stamps = []
        async with paddock.connect("{}:{}".format(*server.address)) as client:
            for name in (path, f"{path}-later"):
                await client.create(name)
                stat = await client.exists(name)
                assert stat is not None
                stamps.append(stat.ctime)
                wall_ms += int(pause * 1000)
                seconds += pause
        await server.stop()
        return stamps

    async def scenario() -> None:
        nonlocal wall_ms
        assert await stamp_of("/ahead") == [wall_ms, wall_ms]
        last_ms = wall_ms
        wall_ms -= DAY_MS
        assert await stamp_of("/after", HOUR) == [last_ms, last_ms + 3_240_000]

    asyncio.run(scenario())
