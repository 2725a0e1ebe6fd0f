"""Grants, and that nothing is left of them: released without a server, refused, given up."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any

import pytest

from paddock import Client, connect
from paddock.errors import GrantLostError, NoAuthError
from paddock.protocol.acl import ACL, ALL, ANYONE, CREATE, DELETE, READ, Identity, digest_id
from paddock.recipes import Lease, Lock
from paddock.recipes.locks.grant import Grant, GrantEvent
from paddock.testing import Direction, EmbeddedServer, FaultProxy, SeenRequest, run_virtually
from tests.support.recipes import stand_in_line, until


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


def listeners(client: Client) -> int:
    return len(client._session.states._listeners)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_nothing_listens_any_more_when_the_node_has_gone(is_cancelled: bool) -> None:
    async def main() -> None:
        async with holding() as (proxy, client, grant):
            await grant.release()
            before = listeners(client)
            grant = await Lock(client, "/lock").acquire()
            assert listeners(client) > before
            refuse(proxy)
            releasing = asyncio.ensure_future(grant.release())
            await asyncio.sleep(1.0)
            if is_cancelled:
                releasing.cancel()
            proxy.heal()
            await asyncio.wait([releasing])
            assert releasing.cancelled() == is_cancelled
            await client.sync()
            assert await client.children("/lock") == []
            assert listeners(client) == before

    run_virtually(main())


def test_who_may_not_delete_its_node_is_told_so_by_the_release() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            await client.create("/lock", acl=[ACL(ALL & ~DELETE, ANYONE)])
            grant = await Lock(client, "/lock").acquire()
            with pytest.raises(NoAuthError):
                await grant.release()

    run_virtually(main())


def test_who_may_not_see_who_else_is_there_is_told_so_and_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            reader = ACL(READ, Identity("digest", digest_id("reader:secret")))
            await client.create("/lock", acl=[ACL(CREATE | DELETE, ANYONE), reader])
            with pytest.raises(NoAuthError):
                await Lock(client, "/lock").acquire()
            # Behind the delete, which goes out at once.
            await client.add_auth("digest", b"reader:secret")
            stat = await client.exists("/lock")
            assert stat is not None
            assert (stat.num_children, stat.cversion) == (0, 2)

    run_virtually(main())


def test_who_may_do_nothing_with_a_line_is_told_so_once() -> None:
    async def main() -> None:
        problems: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, found: problems.append(found))
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            await client.create("/lock", acl=[ACL(DELETE, ANYONE)])
            with pytest.raises(NoAuthError):
                await Lock(client, "/lock").acquire()
            # What nobody has looked at is found with what is thrown away.
            await client.sync()
            gc.collect()
            assert problems == []

    run_virtually(main())


def test_a_scope_takes_what_a_class_of_ones_own_does_to_take_it() -> None:
    class Counted(Lock):
        taken = 0

        async def acquire(self, *, timeout: float | None = None) -> Grant:  # noqa: ASYNC109
            self.taken += 1
            return await super().acquire(timeout=timeout)

    async def main() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            lock = Counted(client, "/lock")
            async with lock:
                assert lock.taken == 1

    run_virtually(main())


def watches(proxy: FaultProxy) -> int:
    """Return how often the node of a grant was watched."""
    return sum(isinstance(one, SeenRequest) and one.name == "exists" for one in proxy.seen)


def test_only_a_grant_that_is_not_short_is_watched() -> None:
    async def main() -> None:
        async with holding() as (proxy, client, grant):
            # There was no line before, and no node above it.
            before = watches(proxy)
            for _ in range(100):
                await client.sync()
            await grant.release()
            await asyncio.sleep(1)
            assert watches(proxy) == before
            grant = await Lock(client, "/lock").acquire()
            await asyncio.sleep(0.01)
            assert watches(proxy) == before + 1
            await grant.release()

    run_virtually(main())


def test_a_grant_whose_node_was_deleted_before_it_was_watched_is_lost() -> None:
    async def main() -> None:
        async with holding() as (proxy, client, grant):
            before = watches(proxy)
            await client.delete(grant.path)
            assert watches(proxy) == before
            async with asyncio.timeout(0.01):
                await grant.wait_over()
            assert grant.is_lost

    run_virtually(main())


@pytest.mark.parametrize("passes", range(1, 16))
def test_who_stands_in_line_anew_and_gives_up_leaves_nothing(passes: int) -> None:
    """Its first node was deleted by another client, and the second one may be on its way."""

    async def main() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            grant = await Lease(client, "/lease", seconds=3600).acquire()
            waiting = asyncio.ensure_future(Lease(client, "/lease", seconds=3600).acquire())
            await until(partial(stand_in_line, client, "/lease", 2))
            (own,) = [name for name in await client.children("/lease") if name not in grant.path]
            await client.delete(f"/lease/{own}")
            await grant.release()
            for _ in range(passes):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                await (await waiting).release()
            async with asyncio.timeout(60):
                await until(partial(stand_in_line, client, "/lease", 0))

    run_virtually(main())


def test_a_grant_that_is_overdue_says_so() -> None:
    async def main() -> None:
        async with holding() as (proxy, _, grant):
            go_silent(proxy)
            await grant.wait_over()
            with pytest.raises(GrantLostError, match="held no more: nothing was heard"):
                grant.check()
            proxy.heal()

    run_virtually(main())


def test_a_lease_that_was_not_renewed_says_so() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            grant = await Lease(client, "/lease", seconds=5).acquire()
            await grant.wait_over()
            with pytest.raises(GrantLostError, match="held no more: its time was over"):
                await grant.renew()

    run_virtually(main())
