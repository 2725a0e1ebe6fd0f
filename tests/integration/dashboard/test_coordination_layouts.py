"""Recipes recognised by the nodes that the real ones leave: all of Paddock's, and kazoo's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from paddock.api import connect
from paddock.client.client import Client
from paddock.dashboard.coordination.coordination import Coordination
from paddock.dashboard.coordination.nodes import Node
from paddock.dashboard.coordination.recipe import Recipe
from paddock.dashboard.coordination.recognition import recognise
from paddock.recipes import (
    Barrier,
    Counter,
    DoubleBarrier,
    Election,
    Lease,
    Lock,
    LogRoom,
    Membership,
    Partitioner,
    Queue,
    ReadWriteLock,
    Semaphore,
    ServiceInstance,
    ServiceRegistry,
    SimpleMutex,
    TaskClient,
    Worker,
)
from tests.support.kazoo_clients import DEADLINE_S, KazooClients, wait_children
from tests.support.recipes import run, until
from tests.support.server import Server
from tests.unit.dashboard.coordination.listing import summary


async def recognised(client: Client, root: str) -> dict[str, Any]:
    """Return what a listing has, as `summary` tells it; the reader has to find the same."""
    found = recognise(
        [
            Node.read(node.path, node.data or b"", node.stat)
            async for node in client.walk(root, data=True)
            if node.stat is not None
        ]
    )
    coordination = Coordination(root)
    while coordination.needs_look:
        await coordination.look(client)
    assert coordination.is_complete
    assert coordination.recipes == found
    return {path.removeprefix(root): said for path, said in summary(found).items()}


@asynccontextmanager
async def sessions(server: Server, count: int, **options: Any) -> AsyncIterator[list[Client]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(connect(server.hosts, **options)) for _ in range(count)
        ]


async def stand(client: Client, path: str, count: int) -> None:
    """Wait until a node has so many children."""

    async def has() -> bool:
        stat = await client.exists(path)
        return (0 if stat is None else stat.num_children) == count

    await until(has)


def test_locks_of_paddock(shared_paddock: Server) -> None:
    root = "/layouts-locks"

    async def scenario() -> None:
        async with sessions(shared_paddock, 3) as clients, asyncio.TaskGroup() as tasks:
            one, other, third = clients
            waiting = []

            async def wait(lock: Any, path: str, count: int) -> None:
                waiting.append(tasks.create_task(lock.acquire()))
                await stand(one, root + path, count)

            await Lock(one, f"{root}/lock", data=b"10.0.0.1:80").acquire()
            await wait(Lock(other, f"{root}/lock"), "/lock", 2)
            await ReadWriteLock(one, f"{root}/rw").read.acquire()
            await ReadWriteLock(other, f"{root}/rw").read.acquire()
            await wait(ReadWriteLock(third, f"{root}/rw").write, "/rw", 3)
            await wait(ReadWriteLock(other, f"{root}/rw").read, "/rw", 4)
            downgraded = ReadWriteLock(one, f"{root}/downgraded")
            await downgraded.write.acquire()
            await wait(ReadWriteLock(other, f"{root}/downgraded").write, "/downgraded", 2)
            await downgraded.read.acquire()
            await Semaphore(one, f"{root}/semaphore", leases=2).acquire()
            await Semaphore(other, f"{root}/semaphore", leases=2).acquire()
            await stand(one, f"{root}/semaphore/locks", 0)
            await wait(Semaphore(third, f"{root}/semaphore", leases=2), "/semaphore/leases", 3)
            await wait(Semaphore(other, f"{root}/semaphore", leases=2), "/semaphore/locks", 2)
            await Lease(one, f"{root}/leases", seconds=60).acquire()
            await wait(Lease(other, f"{root}/leases", seconds=60), "/leases", 2)
            await SimpleMutex(one, root, "mutex").acquire()
            async with Election(one, f"{root}/election", data=b"a") as first:
                await first.wait_leader()
                async with Election(other, f"{root}/election"):
                    found = await recognised(one, root)
            assert found == {
                "/lock": ("lock", "Paddock", ["holds"], ["waits"], None),
                "/rw": ("read-write lock", "Paddock", ["reads"] * 2, ["writes", "reads"], None),
                "/downgraded": (
                    "read-write lock",
                    "Paddock",
                    ["writes", "reads"],
                    ["writes"],
                    None,
                ),
                "/semaphore": (
                    "semaphore",
                    "Paddock",
                    ["holds a lease"] * 2,
                    ["waits for a lease"] * 2,
                    None,
                ),
                "/leases": ("lock", "Paddock", ["leases for 60.0 s"], ["leases for 60.0 s"], None),
                "/mutex": ("lock", "Paddock", ["holds"], [], None),
                "/election": ("election", "Paddock", ["leads"], ["stands for election"], None),
            }
            for task in waiting:
                task.cancel()

    run(scenario)


@pytest.mark.parametrize("exact", [True, False])
def test_other_recipes_of_paddock(shared_paddock: Server, exact: bool) -> None:
    """Without exact sessions there are receipts and markers as well, which are no members."""
    root = f"/layouts-others-{exact}"

    async def scenario() -> None:
        async with (
            sessions(shared_paddock, 2, exact=exact) as clients,
            asyncio.TaskGroup() as tasks,
        ):
            one, other = clients
            under_way = []
            queue = Queue(one, f"{root}/queue")
            for _ in range(3):
                await queue.put(b"job")
            await Barrier(one, f"{root}/closed").close()
            members = [DoubleBarrier(each, f"{root}/inside", 2) for each in clients]
            await asyncio.gather(*(each.enter() for each in members))
            under_way.append(tasks.create_task(DoubleBarrier(one, f"{root}/inside", 2).enter()))
            under_way.append(tasks.create_task(DoubleBarrier(one, f"{root}/entering", 2).enter()))
            await stand(one, f"{root}/inside", 4)
            await stand(one, f"{root}/entering", 1)
            await Counter(one, f"{root}/counter").add(1)
            channel = await LogRoom(one, f"{root}/room").open_channel()
            await channel.append(b"entry")
            await TaskClient(one, f"{root}/tasks").submit(b"task")
            worker = Worker(other, f"{root}/tasks", _work)
            under_way.append(tasks.create_task(worker.serve()))
            await stand(one, f"{root}/tasks/workers", 1)
            empty = Queue(other, f"{root}/waited-for")
            under_way.append(tasks.create_task(_take(empty)))
            await stand(one, f"{root}/waited-for", 5)
            membership = Membership(one, f"{root}/group")
            async with (
                queue.take(),
                membership.joined("worker 7", b"10.0.0.7"),
                Partitioner(one, f"{root}/shards", ["a", "b"]) as partitioner,
                ServiceRegistry(one, f"{root}/services") as registry,
            ):
                async for share in partitioner.shares():
                    if len(share.items) == 2:
                        break
                await registry.register(ServiceInstance("search", "s-1", "10.0.0.1", 8080))
                found = await recognised(one, root)
                [service] = [
                    recipe
                    for recipe in await _recipes(one, f"{root}/services")
                    if recipe.kind == "service"
                ]
            assert service.holders[0].address == "10.0.0.1:8080"
            assert found == {
                "/queue": ("queue", "Paddock", ["processes an item"], [], 3),
                "/waited-for": ("queue", "Paddock", [], ["waits for an item"], 0),
                "/closed": ("barrier", "Paddock", ["closed"], [], None),
                "/inside": ("barrier", "Paddock", ["inside"] * 2, ["waits"], 2),
                "/entering": ("barrier", "Paddock", [], ["waits"], None),
                "/tasks/workers": ("members", "Paddock", ["works"], [], 1),
                "/group": ("members", "unknown", ["is a member"], [], 1),
                "/shards": ("members", "Paddock", ["has a share"], [], 2),
                "/services/search": ("service", "Paddock", ["serves"], [], None),
            }
            for task in under_way:
                task.cancel()

    run(scenario)


async def _recipes(client: Client, root: str) -> list[Recipe]:
    coordination = Coordination(root)
    while coordination.needs_look:
        await coordination.look(client)
    return coordination.recipes


async def _work(task: Any) -> bytes:
    return b""


async def _take(queue: Queue) -> None:
    async with queue.take():
        pass


# kazoo's lease asks for the time in a way that Python deprecates from 3.12 on.
@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")
def test_recipes_of_kazoo(shared_paddock: Server) -> None:
    root = "/layouts-kazoo"
    with KazooClients(shared_paddock.address) as clients:
        one, other, third = (clients.connect() for _ in range(3))
        assert one.Lock(f"{root}/lock", "a").acquire()
        clients.run(_quietly, other.Lock(f"{root}/lock", "b").acquire)
        wait_children(one, f"{root}/lock", 2)
        assert one.ReadLock(f"{root}/rw").acquire()
        clients.run(_quietly, other.WriteLock(f"{root}/rw").acquire)
        wait_children(one, f"{root}/rw", 2)
        clients.run(_quietly, third.ReadLock(f"{root}/rw").acquire)
        wait_children(one, f"{root}/rw", 3)
        assert one.Semaphore(f"{root}/semaphore", "a", max_leases=2).acquire()
        assert other.Semaphore(f"{root}/semaphore", "b", max_leases=2).acquire()
        wait_children(one, f"{root}/semaphore-__lock__", 0)
        waiting = third.Semaphore(f"{root}/semaphore", "c", max_leases=2)
        clients.run(_quietly, waiting.acquire)
        wait_children(one, f"{root}/semaphore-__lock__", 1)
        queue = one.Queue(f"{root}/queue")
        queue.put(b"item")
        queue.put(b"first", priority=1)
        locking = one.LockingQueue(f"{root}/locking")
        locking.put(b"item")
        locking.put(b"other")
        assert locking.get(DEADLINE_S) == b"item"
        one.Barrier(f"{root}/barrier").create()
        inside = [each.DoubleBarrier(f"{root}/inside", 2) for each in (one, other)]
        for future in [clients.run(barrier.enter) for barrier in inside]:
            future.result(DEADLINE_S)
        clients.run(_quietly, one.DoubleBarrier(f"{root}/entering", 2).enter)
        one.ensure_path(f"{root}/entering")
        wait_children(one, f"{root}/entering", 1)
        one.Party(f"{root}/party", "host 1").join()
        other.ShallowParty(f"{root}/shallow", "host 2").join()
        assert one.NonBlockingLease(f"{root}/lease", timedelta(hours=1), identifier="me")

        async def scenario() -> None:
            async with connect(shared_paddock.hosts) as client:
                found = await recognised(client, root)
                assert found.pop("/lease")[2][0].startswith("leases until ")
                assert found == {
                    "/lock": ("lock", "kazoo", ["holds"], ["waits"], None),
                    "/rw": ("read-write lock", "kazoo", ["reads"], ["writes", "reads"], None),
                    "/semaphore": (
                        "semaphore",
                        "kazoo",
                        ["holds a lease"] * 2,
                        ["waits for a lease"],
                        None,
                    ),
                    "/queue": ("queue", "kazoo", [], [], 2),
                    "/locking": ("queue", "kazoo", ["processes an item"], [], 2),
                    "/inside": ("barrier", "kazoo", ["inside"] * 2, [], None),
                    # Nothing tells what it waits for, until the other comes.
                    "/entering": ("members", "unknown", ["is a member"], [], 1),
                    "/party": ("members", "kazoo", ["is a member"], [], 1),
                    "/shallow": ("members", "kazoo", ["is a member"], [], 1),
                }
                [semaphore] = [
                    one for one in await _recipes(client, root) if one.kind == "semaphore"
                ]
                assert semaphore.limit == 2
                assert [holder.data for holder in semaphore.holders] == [b"a", b"b"]

        run(scenario)
        # Or its thread would wait for ever.
        one.create(f"{root}/entering/ready")


def _quietly(action: Any) -> None:
    """Wait for what never comes; the end of the client ends it."""
    with suppress(Exception):
        action()
