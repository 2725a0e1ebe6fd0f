"""The scope of a grant that is lost: it insists, and its error says whether the session is over."""

from __future__ import annotations

import asyncio
import sys
from random import Random

import pytest

from paddock import Client, GrantLostError, connect
from paddock.recipes import GrantEvent, Lock, MultiLock
from paddock.recipes.locks.grant import BaseGrant
from paddock.testing import Direction, EmbeddedServer, FaultProxy, run_virtually

TIMEOUT_S = 6.0


def test_a_body_that_swallows_the_cancellation_is_cancelled_again() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, connect(server.hosts, random=Random(1)) as client:
            cancelled = []

            async def hold() -> None:
                async with Lock(client, "/lock") as grant:
                    await client.delete(grant.path)
                    for _ in range(2):
                        with pytest.raises(asyncio.CancelledError, match="its node was deleted"):
                            await asyncio.sleep(1000)
                        cancelled.append(asyncio.get_running_loop().time())
                    await asyncio.sleep(1000)

            with pytest.raises(GrantLostError):
                await hold()
            first, second = cancelled
            assert second - first == pytest.approx(client.session_timeout)
            # Nothing of it is left.
            await asyncio.sleep(1000)

    run_virtually(scenario())


def test_a_cancellation_that_wait_for_swallows_is_repeated() -> None:
    swallowed = []

    async def scenario() -> None:
        async with EmbeddedServer() as server, connect(server.hosts, random=Random(1)) as client:
            loop = asyncio.get_running_loop()

            async def hold() -> None:
                async with Lock(client, "/lock") as grant:
                    ready = loop.create_future()

                    def answer(event: GrantEvent) -> None:
                        loop.call_soon(ready.set_result, "swallowed")

                    grant.add_listener(answer)
                    client.delete(grant.path).add_done_callback(lambda one: one.exception())
                    swallowed.append(await asyncio.wait_for(ready, 1000))
                    await asyncio.sleep(1000)
                    raise AssertionError("it is cancelled")

            with pytest.raises(GrantLostError):
                await hold()

    run_virtually(scenario())
    # From 3.12 on, it passes the cancellation on.
    assert swallowed == (["swallowed"] if sys.version_info < (3, 12) else [])


@pytest.mark.parametrize("are_many", [False, True])
def test_the_error_says_whether_the_session_may_be_over(are_many: bool) -> None:
    grants: list[BaseGrant] = []

    async def hold(client: Client, proxy: FaultProxy | None) -> None:
        locks = [Lock(client, f"/lock/{name}") for name in ("a", "b")]
        holder = MultiLock(locks) if are_many else locks[0]
        async with holder as grant:
            assert isinstance(grant, BaseGrant)
            grants.append(grant)
            if proxy is None:
                node = (await client.children("/lock/a"))[0]
                await client.delete(f"/lock/a/{node}")
            else:
                # The session lives, as the server sees it.
                proxy.blackhole(Direction.TO_CLIENT)
            await asyncio.sleep(1000)

    async def lose(client: Client, proxy: FaultProxy | None) -> bool:
        with pytest.raises(GrantLostError) as error:
            await hold(client, proxy)
        if proxy is not None:
            proxy.heal()
            await client.wait_connected()
            await client.sync()
        assert grants[-1].lost().session_may_be_over == error.value.session_may_be_over
        return error.value.session_may_be_over

    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts, random=Random(1), session_timeout=TIMEOUT_S) as client:
                assert not await lose(client, None)
                assert await lose(client, proxy)

    run_virtually(scenario())
