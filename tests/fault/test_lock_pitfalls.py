"""What has gone wrong in the locks of others, with the fault that brings it about."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import pytest

from paddock.api import connect
from paddock.client.client import Client
from paddock.recipes import Lock
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually

# In virtual time.
AWAY_S = 3.0


@dataclass(frozen=True, slots=True)
class Place:
    """A lock's world: one client behind a fault proxy, and others with connections of their own."""

    proxy: FaultProxy
    subject: Client
    other: Client
    observer: Client

    async def wait_for_contenders(self, count: int) -> None:
        while len(await self.observer.children("/lock")) != count:  # noqa: ASYNC110 (virtual)
            await asyncio.sleep(0.1)


@asynccontextmanager
async def a_place() -> AsyncIterator[Place]:
    async with (
        EmbeddedServer() as server,
        FaultProxy(server.address) as proxy,
        connect(proxy.hosts, random=Random(1)) as subject,
        connect(server.hosts, random=Random(2)) as other,
        connect(server.hosts, random=Random(3)) as observer,
    ):
        yield Place(proxy, subject, other, observer)


def test_a_deadline_is_one_for_the_whole_call_however_often_a_waiter_wakes_up() -> None:
    async def main() -> None:
        async with a_place() as place:
            loop = asyncio.get_running_loop()
            async with Lock(place.other, "/lock"):
                # They give up one after the other, from behind: each wakes up who is behind it.
                before = [
                    asyncio.create_task(Lock(place.other, "/lock").acquire()) for _ in range(4)
                ]
                await place.wait_for_contenders(5)
                for number, waiter in enumerate(reversed(before), 1):
                    loop.call_later(number, waiter.cancel)
                began_at = loop.time()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(6.0):
                        await Lock(place.subject, "/lock").acquire()
                assert loop.time() - began_at == pytest.approx(6.0)
                await asyncio.wait(before)
                assert all(waiter.cancelled() for waiter in before)
                woken_up = [one for one in place.proxy.events if "/lock/" in str(one)]
                assert len(woken_up) == 4
                await place.wait_for_contenders(1)

    run_virtually(main())


def test_a_release_is_over_when_the_service_has_confirmed_it() -> None:
    """And not when it could not be sent: then the lock would be nobody's, and free for nobody."""

    async def main() -> None:
        async with a_place() as place:
            grant = await Lock(place.subject, "/lock").acquire()
            next_one = asyncio.create_task(Lock(place.other, "/lock").acquire())
            await place.wait_for_contenders(2)
            lost = place.proxy.when(operation="delete").cut_before(stay_away=True)
            release = asyncio.create_task(grant.release())
            await lost.happened()
            await asyncio.sleep(AWAY_S)
            assert not grant.is_held
            assert not release.done()
            assert not next_one.done()
            assert await place.observer.exists(grant.path) is not None
            place.proxy.heal()
            await release
            assert await place.observer.exists(grant.path) is None
            await (await next_one).release()

    run_virtually(main())


def test_who_has_gone_before_it_could_be_watched_is_not_waited_for() -> None:
    """A node in the list is ahead of ours, and gone when the watch is set."""

    async def main() -> None:
        async with a_place() as place:
            first = await Lock(place.other, "/lock").acquire()
            looking = place.proxy.when(operation="get").delay(AWAY_S)
            waiting = asyncio.create_task(Lock(place.subject, "/lock").acquire())
            await looking.happened()
            await first.release()
            assert not waiting.done()
            async with asyncio.timeout(2 * AWAY_S):
                second = await waiting
            assert second.token > first.token
            assert place.proxy.events == ()
            await second.release()

    run_virtually(main())


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_whoever_takes_it_again_after_a_release_that_was_given_up_does_not_wait_for_itself(
    is_cancelled: bool,
) -> None:
    async def main() -> None:
        async with a_place() as place:
            lock = Lock(place.subject, "/lock")
            grant = await lock.acquire()
            lost = place.proxy.when(operation="delete").cut_before(stay_away=True)
            release = asyncio.create_task(grant.release())
            await lost.happened()
            if is_cancelled:
                release.cancel()
                await asyncio.wait([release])
            again = asyncio.create_task(lock.acquire())
            await asyncio.sleep(AWAY_S)
            place.proxy.heal()
            later = await again
            assert later.token > grant.token
            assert await place.observer.exists(grant.path) is None
            await later.release()
            await asyncio.wait([release])

    run_virtually(main())


def test_a_cancelled_acquire_leaves_no_node_behind_also_if_the_create_was_never_answered() -> None:
    async def main() -> None:
        async with a_place() as place:
            async with Lock(place.other, "/lock"):
                lost = place.proxy.when(operation="create2").cut_after(stay_away=True)
                waiting = asyncio.create_task(Lock(place.subject, "/lock").acquire())
                await lost.happened()
                await place.wait_for_contenders(2)
                waiting.cancel()
                # Not for the service: it ends at once.
                await asyncio.wait([waiting])
                await place.wait_for_contenders(2)
                place.proxy.heal()
                await place.wait_for_contenders(1)

    run_virtually(main())
