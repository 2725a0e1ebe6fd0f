"""Grants that are released while no server can be reached: nobody waits for longer than needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest

from paddock import Client, connect
from paddock.recipes import Lock
from paddock.recipes.grant import Grant, GrantEvent
from paddock.testing import Direction, EmbeddedServer, FaultProxy, run_virtually


@asynccontextmanager
async def holding() -> AsyncIterator[tuple[FaultProxy, Client, Grant]]:
    async with (
        EmbeddedServer() as server,
        FaultProxy(server.address) as proxy,
        connect(proxy.hosts, random=Random(1)) as client,
    ):
        yield proxy, client, await Lock(client, "/lock").acquire()


def refuse(proxy: FaultProxy) -> None:
    proxy.refuse()
    proxy.cut()


def go_silent(proxy: FaultProxy) -> None:
    proxy.blackhole(*Direction)


@pytest.mark.parametrize("lose", [refuse, go_silent])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_release_ends_when_the_session_may_be_over(
    lose: Callable[[FaultProxy], None], is_known: bool
) -> None:
    async def main() -> None:
        async with holding() as (proxy, client, grant):
            until = client.session_valid_until
            lose(proxy)
            if is_known:
                # Whether it is lost before it is released or after is no matter.
                await asyncio.sleep(client.session_timeout / 2)
            await grant.release()
            assert grant.is_released
            # In virtual time: then, and neither before nor later.
            assert asyncio.get_running_loop().time() == pytest.approx(until)
            proxy.heal()

    run_virtually(main())


def test_a_release_waits_for_a_server_that_comes_back_in_time() -> None:
    async def main() -> None:
        async with holding() as (proxy, client, grant):
            refuse(proxy)
            releasing = asyncio.ensure_future(grant.release())
            await asyncio.sleep(client.session_timeout / 2)
            assert not releasing.done()
            proxy.heal()
            await releasing
            assert await client.children("/lock") == []

    run_virtually(main())


def test_who_gives_up_a_release_has_released_it_all_the_same() -> None:
    async def main() -> None:
        async with holding() as (proxy, client, grant):
            refuse(proxy)
            releasing = asyncio.ensure_future(grant.release())
            await asyncio.sleep(1.0)
            releasing.cancel()
            await asyncio.wait([releasing])
            proxy.heal()
            await client.wait_connected()
            async for _ in client.watch("/lock", recursive=True):
                if not await client.children("/lock"):
                    break

    run_virtually(main())


def test_listeners_hear_of_nothing_after_the_release() -> None:
    async def main() -> None:
        async with holding() as (proxy, client, grant):
            heard: list[GrantEvent] = []
            grant.add_listener(heard.append)
            refuse(proxy)
            releasing = asyncio.ensure_future(grant.release())
            await asyncio.sleep(1.0)
            proxy.heal()
            await releasing
            refuse(proxy)
            await asyncio.sleep(1.0)
            proxy.heal()
            await client.wait_connected()
            assert heard == [GrantEvent.RELEASED]

    run_virtually(main())
