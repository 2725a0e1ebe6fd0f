"""Data that is larger than the servers take: it costs the connection each time, and that ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

import pytest

import paddock
from paddock.client.client import Client
from paddock.client.states import SessionState
from paddock.errors import ConnectionLostError
from paddock.recipes import (
    Election,
    Lock,
    LogRoom,
    Membership,
    Naming,
    PersistentNode,
    Queue,
    ReadWriteLock,
    Semaphore,
    SharedValue,
    TaskClient,
)
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer, run_virtually

TAKEN_BYTES = 2000
MUCH = b"x" * (2 * TAKEN_BYTES)


async def _lead(client: Client) -> None:
    async with Election(client, "/recipe", data=MUCH).lead():
        pass


async def _update(client: Client) -> None:
    membership = Membership(client, "/recipe")
    await membership.join("me", b"little")
    await membership.update(MUCH)


async def _append(client: Client) -> None:
    channel = await LogRoom(client, "/recipe").open_channel()
    await channel.append(MUCH)


async def _keep(client: Client) -> None:
    async with PersistentNode(client, "/recipe/kept", MUCH) as node:
        await node.wait_there()


WAYS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "lock": lambda client: Lock(client, "/recipe", data=MUCH).acquire(),
    "read lock": lambda client: ReadWriteLock(client, "/recipe", data=MUCH).read.acquire(),
    "semaphore": lambda client: Semaphore(client, "/recipe", leases=2, data=MUCH).acquire(),
    "election": _lead,
    "queue": lambda client: Queue(client, "/recipe").put(MUCH),
    "joining": lambda client: Membership(client, "/recipe").join("me", MUCH),
    "updating": _update,
    "log room": _append,
    "shared value": lambda client: SharedValue(client, "/recipe").set(MUCH),
    "name": lambda client: Naming(client, "/recipe").bind("me", MUCH),
    "kept node": _keep,
    "task": lambda client: TaskClient(client, "/recipe").submit(MUCH),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_what_no_server_takes_is_given_up_and_leaves_nothing(way: str, exact: bool) -> None:
    async def main() -> None:
        config = ServerConfig(port=0, max_frame_bytes=TAKEN_BYTES)
        async with EmbeddedServer(config=config) as server:
            async with paddock.connect(server.hosts, random=Random(7), exact=exact) as client:
                states: list[SessionState] = []
                client.add_listener(states.append)
                with pytest.raises(ConnectionLostError):
                    await WAYS[way](client)
                # The session has lived through all of it, and so has what was there before.
                await client.wait_connected()
                assert len(await client.ephemerals("/")) == (way == "updating")
                if exact:
                    # The client has tried ten times, so nobody tries again.
                    assert states.count(SessionState.DISCONNECTED) < 30

    run_virtually(main())
