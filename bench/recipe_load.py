"""One run of one recipe, in a process of its own.

    python -m bench.recipe_load CLIENT OP COUNT PORT SERVERPID SECONDS WARMUP

COUNT participants have a client each. They begin together, each repeats the operation some times,
and then they wait for each other. The process prints the operations per second of all of them, and
the CPU time of each operation on both sides.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.recipe.queue import LockingQueue as KazooLockingQueue
from kazoo.recipe.queue import Queue as KazooQueue

import paddock
import paddock.sync
import paddock.sync.recipes
from bench import clients, recipes
from bench.client_load import DATA, SESSION_TIMEOUT_S, Meter, clean_up, prepare
from paddock.recipes import Election, Lock, Queue

# How often each participant repeats the operation before all wait.
SHARE: Final = 10


def _nothing() -> None:
    """The work of a leader."""


# Our recipes, with asyncio.


def _cycle(client: paddock.Client, op: str, path: str) -> Callable[[], Awaitable[None]]:
    if op == "lock":
        lock = Lock(client, path)

        async def hold() -> None:
            async with lock:
                pass

        return hold
    if op == "elect":
        election = Election(client, path)

        async def lead() -> None:
            async with election.lead():
                pass

        return lead
    queue = Queue(client, path)

    async def put() -> None:
        await queue.put(DATA)

    async def take() -> None:
        async with queue.take():
            pass

    async def put_and_take() -> None:
        await queue.put(DATA)
        await take()

    return {"put": put, "take": take, "pass": put_and_take}[op]


async def with_paddock(hosts: str, path: str, op: str, count: int, meter: Meter) -> None:
    async with contextlib.AsyncExitStack() as stack:
        crew = [
            await stack.enter_async_context(
                paddock.connect(hosts, session_timeout=SESSION_TIMEOUT_S)
            )
            for _ in range(count)
        ]
        cycles = [_cycle(client, op, path) for client in crew]
        producer = Queue(crew[0], path)

        async def share(cycle: Callable[[], Awaitable[None]]) -> None:
            for _ in range(SHARE):
                await cycle()

        while meter.wants_more():
            if op == "take":
                with meter.aside():
                    await asyncio.gather(*(producer.put(DATA) for _ in range(count * SHARE)))
            await asyncio.gather(*map(share, cycles))


# Blocking recipes, each in its own thread.


def _sync_cycle(client: paddock.sync.Client, op: str, path: str) -> Callable[[], Any]:
    if op == "lock":
        lock = paddock.sync.recipes.Lock(client, path)

        def hold() -> None:
            with lock:
                pass

        return hold
    if op == "elect":
        election = paddock.sync.recipes.Election(client, path)

        def lead() -> None:
            with election.lead():
                pass

        return lead
    queue = paddock.sync.recipes.Queue(client, path)

    def take() -> None:
        with queue.take():
            pass

    def put() -> None:
        queue.put(DATA)

    def put_and_take() -> None:
        put()
        take()

    return {"put": put, "take": take, "pass": put_and_take}[op]


def _kazoo_cycle(client: Any, op: str, path: str, queue_type: Any) -> Callable[[], Any]:
    if op == "lock":
        lock = client.Lock(path)

        def hold() -> None:
            with lock:
                pass

        return hold
    if op == "elect":
        election = client.Election(path)
        return lambda: election.run(_nothing)
    queue = queue_type(client, path)

    def put() -> None:
        queue.put(DATA)

    def take() -> None:
        # The plain queue never waits, and has no consume.
        while queue.get() is None:
            pass
        if queue_type is KazooLockingQueue and not queue.consume():
            raise RuntimeError("another client has taken the same item")

    def put_and_take() -> None:
        put()
        take()

    return {"put": put, "take": take, "pass": put_and_take}[op]


def _in_threads(cycles: list[Callable[[], Any]], refill: Callable[[], None], meter: Meter) -> None:
    def share(cycle: Callable[[], Any]) -> None:
        for _ in range(SHARE):
            cycle()

    with ThreadPoolExecutor(len(cycles)) as threads:
        while meter.wants_more():
            with meter.aside():
                refill()
            list(threads.map(share, cycles))


def with_paddock_sync(hosts: str, path: str, op: str, count: int, meter: Meter) -> None:
    with contextlib.ExitStack() as stack:
        crew = [
            stack.enter_context(paddock.sync.connect(hosts, session_timeout=SESSION_TIMEOUT_S))
            for _ in range(count)
        ]
        producer = paddock.sync.recipes.Queue(crew[0], path)

        def refill() -> None:
            for _ in range(count * SHARE if op == "take" else 0):
                producer.put(DATA)

        _in_threads([_sync_cycle(client, op, path) for client in crew], refill, meter)


def with_kazoo(
    hosts: str, path: str, op: str, count: int, meter: Meter, queue_type: Any = KazooLockingQueue
) -> None:
    with contextlib.ExitStack() as stack:
        crew = []
        for _ in range(count):
            client = KazooClient(hosts, timeout=SESSION_TIMEOUT_S)
            client.start()
            stack.callback(client.close)
            stack.callback(client.stop)
            crew.append(client)
        producer = queue_type(crew[0], path)

        def refill() -> None:
            for _ in range(count * SHARE if op == "take" else 0):
                producer.put(DATA)

        cycles = [_kazoo_cycle(client, op, path, queue_type) for client in crew]
        _in_threads(cycles, refill, meter)


def main() -> int:
    name, op, count, port, server_pid, seconds, warmup_s = sys.argv[1:]
    hosts = f"127.0.0.1:{port}"
    base = f"/bench-{os.getpid()}-{time.time_ns()}"
    asyncio.run(prepare(hosts, base))
    meter = Meter(int(count) * SHARE, int(server_pid), float(seconds), float(warmup_s))
    what = f"{base}/{op}", op, int(count), meter
    if name == clients.KAZOO:
        with_kazoo(hosts, *what)
    elif name == recipes.KAZOO_QUEUE:
        with_kazoo(hosts, *what, queue_type=KazooQueue)
    elif name == clients.BLOCKING:
        with_paddock_sync(hosts, *what)
    elif name == clients.PLAIN:
        asyncio.run(with_paddock(hosts, *what))
    else:
        paddock.run(with_paddock(hosts, *what))
    asyncio.run(clean_up(hosts, base))
    print(json.dumps(asdict(meter.result())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
