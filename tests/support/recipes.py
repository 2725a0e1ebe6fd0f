"""What tests of recipes begin with: a deadline, and clients of the API under test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any, Final

import paddock
from paddock.client.client import Client
from paddock.errors import NoNodeError
from paddock.testing import expire_session
from tests.support.apis import connect
from tests.support.server import Service

DEADLINE_S: Final = 60.0


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Play a scenario, and fail it if it takes for ever."""

    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await scenario()

    asyncio.run(main())


@asynccontextmanager
async def clients(service: Service, count: int, **settings: Any) -> AsyncIterator[list[Client]]:
    """Connect so many clients, each with a session of its own."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                connect(service.hosts, random=Random(number), **settings)
            )
            for number in range(count)
        ]


async def until(condition: Callable[[], Awaitable[bool] | bool]) -> None:
    """Wait until something is so; for what no event tells of, or what another thread notes."""
    while True:
        answer = condition()
        if await answer if isinstance(answer, Awaitable) else answer:
            return
        await asyncio.sleep(0.01)


async def stand_in_line(client: Client, path: str, count: int) -> bool:
    """Tell whether so many stand in the line at a path."""
    try:
        return len(await client.children(path)) == count
    except NoNodeError:
        return count == 0


async def expire(service: Service, client: Client) -> None:
    """End a client's session, and return when nobody can find anything of it any more.

    Apache ZooKeeper calls a session over before its nodes are gone, and a member of an ensemble may
    hear of it later still; what is of the session would be taken for what comes after it.
    """
    session, password = client.session_id, client.session_password
    servers = service.hosts.split(",")
    host, _, port = servers[0].rpartition(":")
    await expire_session((host, int(port)), session, password)
    for server in servers:
        async with paddock.connect(server) as witness:
            await witness.sync()
