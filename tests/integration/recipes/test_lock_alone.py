"""A lock that nobody else wants: what is known without asking, and when that is known no more."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest

from paddock.api import connect
from paddock.client.client import Client
from paddock.recipes import Lock, ReadWriteLock, Semaphore
from paddock.testing import FaultProxy
from tests.integration.recipes.test_lock_cost import messages, proxy_to, settle
from tests.support.apis import asyncio_only, lose_connection
from tests.support.recipes import clients, run, until
from tests.support.server import Service

pytestmark = asyncio_only

# After that many times a lock knows.
TIMES = 3


New: TypeAlias = Callable[[Client, str], AbstractAsyncContextManager[Any]]


async def hold(lock: AbstractAsyncContextManager[Any], times: int = TIMES) -> None:
    for _ in range(times):
        async with lock:
            pass


async def cost(proxy: FaultProxy, client: Client, lock: Lock) -> Counter[str]:
    """Give what passes when a lock is taken and released once."""
    await settle(client)
    since = len(proxy.seen)
    await hold(lock, 1)
    await settle(client)
    found = messages(proxy, since)
    del found["sync"]
    return found


WITH_A_LIST = Counter(create2=1, get_children=1, delete=1)
WITHOUT = Counter(create2=1, delete=1)


@pytest.mark.everywhere
def test_whoever_comes_again_and_again_need_not_ask_who_else_is_there(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with proxy_to(service) as proxy, connect(proxy.hosts) as client:
            await client.create(path)
            lock = Lock(client, path)
            assert await cost(proxy, client, lock) == WITH_A_LIST
            assert await cost(proxy, client, lock) == WITH_A_LIST + Counter(exists=1)
            for _ in range(3):
                assert await cost(proxy, client, lock) == WITHOUT

    run(scenario)


async def is_taken(lock: Lock) -> bool:
    """Tell whether somebody else holds it; leaves it as it was."""
    grant = await lock.try_acquire()
    if grant is not None:
        await grant.release()
    return grant is None


@pytest.mark.everywhere
def test_somebody_who_came_meanwhile_is_seen(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            await client.create(path)
            lock = Lock(client, path)
            await hold(lock)
            async with Lock(other, path):
                assert await is_taken(lock)
            # They have gone again, which is seen, and then known.
            await client.sync(path)
            await hold(lock)
            assert not await is_taken(lock)
            async with Lock(other, path):
                assert await is_taken(lock)

    run(scenario)


async def make_anew(other: Client, path: str, number: int) -> None:
    """Delete the parent, and have another one whose next node has this number."""
    await other.delete_tree(path)
    await other.create(path)
    for _ in range(number):
        await other.delete(await other.create(f"{path}/", sequential=True))


@pytest.mark.everywhere
def test_another_parent_that_has_counted_as_far_is_not_mistaken_for_ours(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            await client.create(path)
            lock = Lock(client, path)
            await hold(lock)
            await make_anew(other, path, TIMES - 1)
            theirs = Lock(other, path)
            # It gets the number that we had last, so the next one is the one that we expect.
            async with theirs as grant:
                assert grant.path.endswith(f"{TIMES - 1:010d}")
                assert await is_taken(lock)

    run(scenario)


@pytest.mark.everywhere
def test_nor_if_somebody_has_removed_the_watches_of_the_first_one(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            await client.create(path)
            lock = Lock(client, path)
            await hold(lock)
            await client.remove_watches(path)
            await make_anew(other, path, TIMES - 1)
            async with Lock(other, path):
                assert await is_taken(lock)

    run(scenario)


@pytest.mark.everywhere
def test_after_a_lost_connection_it_asks_again(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with proxy_to(service) as proxy, connect(proxy.hosts) as client:
            await client.create(path)
            lock = Lock(client, path)
            await hold(lock)
            assert await cost(proxy, client, lock) == WITHOUT
            lose_connection(client)
            assert await cost(proxy, client, lock) == WITH_A_LIST

    run(scenario)


@pytest.mark.everywhere
def test_while_our_own_node_is_still_there_we_are_not_alone(service: Service, path: str) -> None:
    """One that nobody may delete, say."""

    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            lock = Lock(client, path)
            await hold(lock)
            grant = await lock.acquire()
            # What begins without it cannot know better than it does.
            assert await Lock(client, path).try_acquire() is None
            await grant.release()
            semaphore = Semaphore(client, f"{path}-leases", leases=2)
            for _ in range(TIMES):
                async with semaphore:
                    pass
            async with semaphore:
                async with Semaphore(client, f"{path}-leases", leases=2):
                    assert await Semaphore(client, f"{path}-leases", leases=2).try_acquire() is None

    run(scenario)


@pytest.mark.parametrize(
    "new",
    [
        lambda client, path: ReadWriteLock(client, path).read,
        lambda client, path: ReadWriteLock(client, path).write,
    ],
    ids=["read", "write"],
)
def test_a_writer_is_seen_by_those_who_were_alone(service: Service, path: str, new: New) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            mine = new(client, path)
            await hold(mine)
            async with ReadWriteLock(other, path).write:
                waiting = asyncio.ensure_future(hold(mine, 1))
                await until(lambda: _stand(other, path, 2))
                assert not waiting.done()
            await waiting

    run(scenario)


async def _stand(client: Client, path: str, count: int) -> bool:
    return len(await client.children(path)) == count


def test_a_lock_that_is_not_used_any_more_leaves_no_watcher(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path)
            lock = Lock(client, path)
            await hold(lock)
            watches = client._session.watches
            assert len(watches.everybody()) == 1
            del lock
            # Nothing here is in a cycle, but tests are.
            gc.collect()
            assert watches.everybody() == []

    run(scenario)
