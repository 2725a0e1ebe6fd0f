"""Change feeds, in a process of their own.

    python -m bench.feed_load PORT TASK NUMBER

The tasks, each of which prints one line of JSON:

    backlog CHANGES     one feed reads so many changes that are in the server's memory
    live SECONDS        one feed reads while `zkload` writes as fast as the server takes it
    many FEEDS          so many feeds of one node, by few sessions, are told of one change after
                        the other
    write CHANGES       no feed: so many changes are made
    resume ZXID         one feed reads all changes behind a zxid, from the server's history
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Final

import paddock
from bench import programs
from paddock import Client

ROOT: Final = "/feeds"
DATA: Final = b"x" * 100
# Writes of one client at a time.
_IN_FLIGHT: Final = 500
# Sessions that have feeds, when there are many.
_SESSIONS: Final = 10
_CHANGES_OF_MANY: Final = 20


def _client(port: int) -> Client:
    return paddock.connect(f"127.0.0.1:{port}")


async def _begin(client: Client) -> int:
    """Return a zxid behind which the changes of a task are."""
    await client.create(ROOT, exist_ok=True)
    return (await client.set(ROOT, DATA)).mzxid


async def _write(client: Client, count: int) -> int:
    """Change a node so often; return the zxid of the last change."""
    zxid = 0
    for start in range(0, count, _IN_FLIGHT):
        several = [client.set(ROOT, DATA) for _ in range(min(_IN_FLIGHT, count - start))]
        for stat in await asyncio.gather(*several):
            zxid = stat.mzxid
    return zxid


async def _read(client: Client, since: int, until: int) -> int:
    """Read a feed up to a zxid; return how many changes there were."""
    count = 0
    async with aclosing(client.changes("/", since=since)) as feed:
        async for change in feed:
            count += 1
            if change.zxid >= until:
                break
    return count


async def _recording(client: Client, stack: AsyncExitStack) -> None:
    """Have a feed that finds nothing, so that the server keeps changes in memory."""

    async def follow() -> None:
        async with aclosing(client.changes("/nothing")) as feed:
            async for _ in feed:
                pass

    following = asyncio.create_task(follow())
    stack.callback(following.cancel)
    # It is there when the server has answered what comes behind its first pull.
    await asyncio.sleep(0.1)
    await client.exists(ROOT)


async def backlog(port: int, count: float) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(_client(port))
        reader = await stack.enter_async_context(_client(port))
        await _recording(client, stack)
        since = await _begin(client)
        until = await _write(client, int(count))
        began = time.perf_counter()
        found = await _read(reader, since, until)
        took = time.perf_counter() - began
    return {"changes": found, "changes_per_s": found / took}


async def live(port: int, seconds: float) -> dict[str, float]:
    command = [str(programs.ZKLOAD), "-p", str(port), "-c", "10", "-w", "100"]
    async with _client(port) as client:
        since = await _begin(client)
        feed = client.changes("/", since=since)
        counted = 0
        until: int | None = None

        async def follow() -> None:
            nonlocal counted
            async with aclosing(feed):
                async for change in feed:
                    counted += 1
                    if until is not None and change.zxid >= until:
                        return

        following = asyncio.create_task(follow())
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *command, "-t", str(seconds), "set", stdout=asyncio.subprocess.DEVNULL
        )
        if await process.wait():
            raise SystemExit("zkload failed")
        written = time.perf_counter() - began
        until = (await client.set(ROOT, DATA)).mzxid
        await following
        took = time.perf_counter() - began
    return {"changes": counted, "changes_per_s": counted / took, "behind_s": took - written}


async def many(port: int, feeds: float) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        writer = await stack.enter_async_context(_client(port))
        await _begin(writer)
        clients = [
            await stack.enter_async_context(_client(port))
            for _ in range(min(_SESSIONS, int(feeds)))
        ]
        told = asyncio.Semaphore(0)

        begun: set[int] = set()

        async def follow(number: int) -> None:
            client = clients[number % len(clients)]
            async with aclosing(client.changes(ROOT)) as feed:
                async for _ in feed:
                    begun.add(number)
                    told.release()

        tasks = [asyncio.create_task(follow(number)) for number in range(int(feeds))]
        # Feeds that have not begun yet are not told of a change: until all are, there is another.
        while True:
            await writer.set(ROOT, DATA)
            await asyncio.sleep(1)
            if len(begun) == len(tasks):
                break
        while not told.locked():
            await told.acquire()
        took_ms = []
        for _ in range(_CHANGES_OF_MANY):
            began = time.perf_counter()
            await writer.set(ROOT, DATA)
            for _ in tasks:
                await told.acquire()
            took_ms.append((time.perf_counter() - began) * 1000)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    median = statistics.median(took_ms)
    return {"told_ms": median, "changes_per_s": feeds / median * 1000}


async def write(port: int, count: float) -> dict[str, float]:
    async with _client(port) as client:
        since = await _begin(client)
        await _write(client, int(count))
    return {"since": since}


async def resume(port: int, zxid: float) -> dict[str, float]:
    async with _client(port) as client:
        until = await _write(client, 1)
        began = time.perf_counter()
        found = await _read(client, int(zxid), until)
        took = time.perf_counter() - began
    return {"changes": found, "seconds": took, "changes_per_s": found / took}


TASKS: Final[dict[str, Callable[[int, float], Awaitable[dict[str, float]]]]] = {
    "backlog": backlog,
    "live": live,
    "many": many,
    "write": write,
    "resume": resume,
}


async def main(port: str, task: str, number: str) -> None:
    print(json.dumps(await TASKS[task](int(port), float(number))))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
