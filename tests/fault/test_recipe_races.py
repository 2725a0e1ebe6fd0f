"""Moments of queues and barriers that are too short for any story to meet them by chance.

Each brings them about by hand: by holding back a reply, or by taking a step of the recipe at a time
at which only bad luck would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random

from paddock.api import connect
from paddock.client.client import Client
from paddock.protocol.acl import OPEN
from paddock.recipes import DoubleBarrier, Queue
from paddock.recipes.common.departure import Sweeper
from paddock.recipes.locks.line import Line
from paddock.recipes.queue.delivery import Delivery
from paddock.recipes.queue.queue_index import QueuePaths, in_order
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually


def play(scenario: Callable[[Client, Client, FaultProxy], Awaitable[None]]) -> None:
    """Play it with a client behind a proxy, and another one that nothing happens to."""

    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(proxy.hosts, random=Random(1)) as subject,
            connect(server.hosts, random=Random(2)) as other,
        ):
            await scenario(subject, other, proxy)

    run_virtually(main())


def test_an_item_that_is_consumed_before_its_producer_hears_of_it_is_not_put_again() -> None:
    async def scenario(subject: Client, other: Client, proxy: FaultProxy) -> None:
        queue = Queue(other, "/queue")
        await queue.put(b"before")
        async with queue.take():
            pass
        lost = proxy.when(operation="multi").cut_after(stay_away=True)
        putting = asyncio.ensure_future(Queue(subject, "/queue").put(b"item"))
        await lost.happened()
        async with queue.take() as item:
            assert item.data == b"item"
        proxy.heal()
        assert await putting == item.id
        assert await queue.size() == 0

    play(scenario)


def test_an_acknowledgement_that_comes_too_late_is_refused() -> None:
    """The claim is deleted and the item taken again, before the first consumer hears of it."""

    async def scenario(subject: Client, other: Client, proxy: FaultProxy) -> None:
        queue = Queue(other, "/queue")
        await queue.put(b"item")
        async with delivery(subject, "/queue") as slow:
            assert await slow.claim()
            await other.delete(slow.path)
            async with queue.take() as item:
                slow.is_done = True
                await slow.leave()
                assert not slow.is_acknowledged
                assert slow.refusal is not None
                assert await queue.size() == 1
                assert await other.exists(f"/queue/taken/{item.id}") is not None

    play(scenario)


def test_what_is_given_back_too_late_stays_with_whoever_has_it_now() -> None:
    async def scenario(subject: Client, other: Client, proxy: FaultProxy) -> None:
        queue = Queue(other, "/queue")
        await queue.put(b"item")
        async with delivery(subject, "/queue") as slow:
            assert await slow.claim()
            await other.delete(slow.path)
            async with queue.take() as item:
                await slow.leave()
                assert await other.exists(f"/queue/taken/{item.id}") is not None

    play(scenario)


def test_an_item_does_not_die_while_somebody_has_it() -> None:
    """A consumer may have counted the attempts before the item was taken once more."""

    async def scenario(subject: Client, other: Client, proxy: FaultProxy) -> None:
        queue = Queue(other, "/queue")
        await queue.put(b"item")
        async with delivery(subject, "/queue") as late, queue.take():
            await late._move_to_dead_letters(b"item", 0)
            assert await queue.dead_letters() == []
            assert await queue.size() == 1

    play(scenario)


@asynccontextmanager
async def delivery(client: Client, path: str) -> AsyncIterator[Delivery]:
    """Yield a delivery of the only item."""
    places = QueuePaths(client, path)
    [entry] = in_order(await client.children(places.entries))
    yield Delivery(client, places, entry, Sweeper(client), OPEN, None)


def test_a_barrier_does_not_open_for_one_who_has_gone_since_it_was_counted() -> None:
    async def scenario(subject: Client, other: Client, proxy: FaultProxy) -> None:
        line = Line(other, "/barrier", ["member-"], b"", OPEN)
        places = [line.new_place("member-") for _ in range(2)]
        for place in places:
            await place.enter()
        counted = await line.entries()
        await places[1].leave()
        barrier = DoubleBarrier(subject, "/barrier", 2)
        await barrier._open(counted)
        assert await other.exists("/barrier/ready") is None
        await barrier._open(counted[:1])
        assert await other.exists("/barrier/ready") is not None

    play(scenario)
