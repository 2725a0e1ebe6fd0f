"""A rolling restart of a cluster with 200 sessions that write all the time.

Nobody's session ends, each keeps its ephemeral node, and nothing is refused. The sessions are
exact, so no write fails because its connection was lost: each has happened once.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final

import pytest

import paddock
from paddock import Client, SessionState
from tests.support.paddock_cluster import PaddockCluster
from tests.support.recipes import until

pytestmark = pytest.mark.judge

SESSIONS: Final = 200
SESSION_S: Final = 10.0
DEADLINE_S: Final = 180.0
ROOT: Final = "/rolling"


@dataclass
class Writer:
    """One session, its node, and how often it was written to."""

    client: Client
    path: str
    done: int = 0

    async def write_until(self, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            await self.client.set(self.path, b"%d" % self.done, version=self.done)
            self.done += 1


async def restart_all(cluster: PaddockCluster, writers: list[Writer]) -> None:
    """Restart each server, with writes before, between and after."""
    for member in cluster.members:
        await _everybody_writes(writers)
        await asyncio.to_thread(member.restart)
    await _everybody_writes(writers)


async def _everybody_writes(writers: list[Writer]) -> None:
    before = [writer.done for writer in writers]
    await until(lambda: all(now.done > done for now, done in zip(writers, before, strict=True)))


def test_a_rolling_restart_expires_nobody_and_refuses_nothing(cluster: PaddockCluster) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), contextlib.AsyncExitStack() as stack:
            states: set[SessionState] = set()
            clients = [
                await stack.enter_async_context(
                    paddock.connect(cluster.hosts, session_timeout=SESSION_S)
                )
                for _ in range(SESSIONS)
            ]
            assert all(client.is_exact for client in clients)
            sessions = [client.session_id for client in clients]
            await clients[0].create(ROOT)
            paths = [f"{ROOT}/{number}" for number in range(SESSIONS)]
            writers = [Writer(*pair) for pair in zip(clients, paths, strict=True)]
            for client, path in zip(clients, paths, strict=True):
                client.add_listener(states.add)
                await client.create(path, ephemeral=True)
            is_over = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                for writer in writers:
                    tasks.create_task(writer.write_until(is_over))
                await restart_all(cluster, writers)
                is_over.set()
            assert [client.session_id for client in clients] == sessions
            assert states == {SessionState.DISCONNECTED, SessionState.CONNECTED}
            await clients[0].sync()
            for writer, session in zip(writers, sessions, strict=True):
                stat = await clients[0].exists(writer.path)
                assert stat is not None
                assert stat.ephemeral_owner == session
                assert stat.version == writer.done
            print(f"{sum(writer.done for writer in writers)} writes")

    asyncio.run(main())
