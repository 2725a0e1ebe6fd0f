"""A change feed that begins in the past: from history, and on from what the server remembers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from paddock import Client, connect
from paddock.errors import PaddockError
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer


async def taken(client: Client, since: int, count: int) -> list[tuple[int, bytes | None]]:
    found: list[tuple[int, bytes | None]] = []
    async with asyncio.timeout(60):
        async for change in client.changes("/n", since=since):
            found.append((change.zxid, change.data))
            if len(found) == count:
                break
    return found


def test_a_feed_goes_from_the_past_to_the_present(tmp_path: Path) -> None:
    async def main() -> None:
        config = ServerConfig(port=0, snapshot_every=50)
        written: list[tuple[int, bytes | None]] = []
        for run in range(3):
            # Each time the server has forgotten what it had in memory.
            async with EmbeddedServer(tmp_path, config) as server, connect(server.hosts) as client:
                if run == 0:
                    created = await client.create_with_stat("/n", b"first")
                    written.append((created.stat.czxid, b"first"))
                for number in range(100):
                    data = b"%d-%d" % (run, number)
                    written.append(((await client.set("/n", data)).mzxid, data))
                if run == 2:
                    feed = asyncio.create_task(taken(client, 0, len(written) + 50))
                    middle = asyncio.create_task(taken(client, written[70][0], len(written) - 21))
                    for number in range(50):
                        data = b"live-%d" % number
                        written.append(((await client.set("/n", data)).mzxid, data))
                    assert await feed == written
                    assert await middle == written[71:]

    asyncio.run(main())


def test_without_history_the_past_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        config = ServerConfig(port=0, history_seconds=0)
        async with EmbeddedServer(tmp_path, config) as server, connect(server.hosts) as client:
            await client.create("/n", b"first")
            with pytest.raises(PaddockError, match="oldest"):
                await taken(client, 0, 1)

    asyncio.run(main())
