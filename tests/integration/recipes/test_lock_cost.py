"""What locks cost: messages and round trips, however many wait, and in which kind of session."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from random import Random
from typing import Any, Final, TypeAlias

import pytest

from paddock.api import connect
from paddock.client.client import Client
from paddock.recipes import (
    Barrier,
    Grant,
    Lock,
    Queue,
    ReadWriteLock,
    Semaphore,
    SharedValue,
    SimpleMutex,
)
from paddock.recipes import Counter as SharedCounter
from paddock.testing import (
    EmbeddedServer,
    FaultProxy,
    SeenEvent,
    SeenReply,
    SeenRequest,
    run_virtually,
)
from tests.support.apis import asyncio_only
from tests.support.recipes import run, until
from tests.support.server import Service

pytestmark = asyncio_only

FEW: Final = 10
MANY: Final = 500
HAND_OVERS: Final = 5


def messages(proxy: FaultProxy, since: int) -> Counter[str]:
    """Count what has passed: requests, each of which has a reply, and events."""
    counted: Counter[str] = Counter()
    for one in proxy.seen[since:]:
        if isinstance(one, SeenRequest) and one.name != "ping":
            counted[one.name] += 1
        elif isinstance(one, SeenEvent):
            counted["event"] += 1
    return counted


async def settle(client: Client) -> None:
    """Wait until nothing of this client is under way."""
    for _ in range(3):
        await client.sync()


async def _take(lock: Lock) -> Grant:
    return await lock.acquire()


async def _stand(client: Client, path: str, count: int) -> bool:
    return len(await client.children(path)) == count


def _is_watched(proxy: FaultProxy, since: int, count: int) -> bool:
    """Return whether so many grants are watched since then, as they are if they are not short."""
    return messages(proxy, since)["exists"] == count


def proxy_to(service: Service) -> FaultProxy:
    host, _, port = service.hosts.split(",")[0].rpartition(":")
    return FaultProxy((host, int(port)))


@pytest.mark.everywhere
def test_a_lock_that_nobody_else_wants_costs_three_requests_and_a_delete(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with proxy_to(service) as proxy, connect(proxy.hosts) as client:
            await client.create(path)
            await settle(client)
            since = len(proxy.seen)
            async with Lock(client, path):
                pass
            await settle(client)
            found = messages(proxy, since)
            assert found.pop("sync") == 3
            assert found == Counter(create2=1, get_children=1, delete=1)
            since = len(proxy.seen)
            async with Lock(client, path):
                await until(partial(_is_watched, proxy, since, 1))
            await settle(client)
            found = messages(proxy, since)
            assert found.pop("sync") == 3
            # The event is that our own node has gone, which we had to hear of while we held it.
            assert found == Counter(create2=1, get_children=1, exists=1, delete=1, event=1)

    run(scenario)


@pytest.mark.everywhere
def test_a_hand_over_costs_the_same_however_many_wait(service: Service, path: str) -> None:
    """No herd effect: a release wakes one waiter, which looks once."""

    async def cost(waiters: int) -> Counter[str]:
        line = f"{path}-{waiters}"
        async with (
            proxy_to(service) as proxy,
            connect(proxy.hosts) as client,
            connect(service.hosts) as observer,
        ):
            grant = await Lock(client, line).acquire()
            waiting = [asyncio.ensure_future(_take(Lock(client, line))) for _ in range(waiters)]
            await until(partial(_stand, observer, line, waiters + 1))
            await settle(client)
            since = len(proxy.seen)
            for number in range(HAND_OVERS):
                await grant.release()
                grant = await waiting[number]
                await until(partial(_is_watched, proxy, since, number + 1))
            found = messages(proxy, since)
            for one in waiting[HAND_OVERS:]:
                one.cancel()
            await asyncio.wait(waiting)
            return found

    async def scenario() -> None:
        few, many = await cost(FEW), await cost(MANY)
        assert few == many
        for_one = {name: count / HAND_OVERS for name, count in few.items()}
        assert for_one == {"delete": 1, "event": 1, "get_children": 1, "exists": 1}

    run(scenario)


def round_trips(proxy: FaultProxy, since: int) -> int:
    """Count how often something was asked after an answer had come."""
    count, is_waiting = 0, False
    for one in proxy.seen[since:]:
        if isinstance(one, SeenReply):
            is_waiting = False
        elif isinstance(one, SeenRequest) and not is_waiting:
            count, is_waiting = count + 1, True
    return count


Hold: TypeAlias = Callable[[Client], AbstractAsyncContextManager[Any]]


@pytest.mark.parametrize(
    ("hold", "to_acquire"),
    [
        (lambda client: Lock(client, "/lock"), 1),
        (lambda client: ReadWriteLock(client, "/lock").read, 1),
        (lambda client: ReadWriteLock(client, "/lock").write, 1),
        # First a place in the line, then one among the leases.
        (lambda client: Semaphore(client, "/lock", leases=2), 2),
    ],
    ids=["lock", "read", "write", "semaphore"],
)
def test_what_nobody_else_wants_costs_no_more_round_trips_than_it_must(
    hold: Hold, to_acquire: int
) -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(proxy.hosts, random=Random(1)) as client,
        ):
            async with hold(client):
                # So that there is a line.
                await settle(client)
            await settle(client)
            since = len(proxy.seen)
            async with hold(client):
                assert round_trips(proxy, since) == to_acquire
                await settle(client)
                since = len(proxy.seen)
            assert round_trips(proxy, since) == 1

    run_virtually(main())


Cycle: TypeAlias = Callable[[Client], Awaitable[object]]


async def _cycle(scope: AbstractAsyncContextManager[Any]) -> None:
    async with scope:
        pass


async def _queue(client: Client) -> None:
    queue = Queue(client, "/queue")
    await queue.put(b"item")
    async with queue.take():
        pass


async def _gate(client: Client) -> None:
    gate = Barrier(client, "/gate")
    await gate.close()
    await gate.open()


async def _cost(cycle: Cycle, *, exact: bool) -> tuple[Counter[str], int]:
    """Return the requests of the second of two cycles, and how often one waited for another."""
    async with (
        EmbeddedServer() as server,
        FaultProxy(server.address) as proxy,
        connect(proxy.hosts, random=Random(1), exact=exact) as client,
    ):
        await client.create("/app")
        for _ in range(2):
            since = len(proxy.seen)
            await cycle(client)
            taken = round_trips(proxy, since)
            # What is deleted later is deleted by then.
            await asyncio.sleep(2)
        return messages(proxy, since), taken


@pytest.mark.parametrize(
    ("cycle", "saved"),
    [
        (lambda client: client.create("/app/n-", sequential=True), {}),
        (lambda client: client.create("/app/n-", sequential=True, protected=True), {}),
        (lambda client: client.create("/app/a", exist_ok=True), {}),
        (lambda client: _cycle(Lock(client, "/lock")), {}),
        (lambda client: _cycle(SimpleMutex(client, "/mutex", "me")), {}),
        (lambda client: _cycle(Semaphore(client, "/semaphore", leases=2)), {}),
        # The markers and receipts by which a write is recognised, which have to be deleted.
        (lambda client: SharedCounter(client, "/number").add(), {"delete": 1}),
        (lambda client: SharedValue(client, "/value").set(b"new"), {"delete": 1}),
        (_queue, {}),
        (_gate, {"multi": 1}),
    ],
    ids=[
        "create",
        "protected create",
        "create if missing",
        "lock",
        "mutex",
        "semaphore",
        "counter",
        "value",
        "queue",
        "barrier",
    ],
)
def test_an_exact_session_takes_no_more_requests_than_an_ordinary_one(
    cycle: Cycle, saved: dict[str, int]
) -> None:
    ordinary, ordinary_trips = run_virtually(_cost(cycle, exact=False))
    exact, exact_trips = run_virtually(_cost(cycle, exact=True))
    assert exact_trips <= ordinary_trips
    assert ordinary - exact == Counter(saved)
    assert exact <= ordinary
