"""Our locks and Curator's, in one line on the same server: each waits for its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import pytest

from paddock.api import connect
from paddock.client.client import Client
from paddock.errors import NoNodeError
from paddock.recipes import Grant, Lock, ReadWriteLock, ReleaseRequest, Semaphore
from tests.support.recipes import run, until
from tests.support.server import Server

pytestmark = pytest.mark.judge


class Neighbour:
    """Curator in a process of its own, which takes locks when it is told to."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said: set[str] = set()
        self._has_spoken = asyncio.Event()

    async def listen(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self.said.add(line.decode().strip())
            self._has_spoken.set()
        self.said.add("the end")
        self._has_spoken.set()

    def order(self, *words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write((" ".join(words) + "\n").encode())

    async def wait_until_said(self, words: str) -> None:
        while words not in self.said:
            assert "the end" not in self.said, f"it ended before it said: {words}"
            self._has_spoken.clear()
            await self._has_spoken.wait()

    async def take(self, name: str, kind: str, path: str) -> None:
        """Have it take something that it can have at once."""
        self.order("take", name, kind, path)
        await self.wait_until_said(f"held {name}")

    async def release(self, name: str) -> None:
        self.order("release", name)
        await self.wait_until_said(f"released {name}")


@asynccontextmanager
async def neighbour(command: list[str], server: Server) -> AsyncIterator[Neighbour]:
    process = await asyncio.create_subprocess_exec(
        *command,
        "Neighbour",
        f"{server.host}:{server.port}",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.TaskGroup() as tasks:
        curator = Neighbour(process)
        tasks.create_task(curator.listen())
        try:
            yield curator
        finally:
            process.kill()
            await process.wait()


async def _stand(client: Client, path: str, count: int) -> bool:
    """Tell whether so many stand in a line."""
    try:
        return len(await client.children(path)) == count
    except NoNodeError:
        return count == 0


async def _take(lock: Lock | Semaphore) -> Grant:
    return await lock.acquire()


async def in_one_line(client: Client, curator: Neighbour, path: str) -> None:
    grant = await Lock(client, path).acquire()
    curator.order("take", "second", "mutex", path)
    await until(partial(_stand, client, path, 2))
    third = asyncio.create_task(_take(Lock(client, path)))
    await until(partial(_stand, client, path, 3))
    curator.order("take", "fourth", "mutex", path)
    await until(partial(_stand, client, path, 4))
    contenders = await Lock(client, path).contenders()
    assert len({one.session_id for one in contenders}) == 2
    assert curator.said == set()
    await grant.release()
    await curator.wait_until_said("held second")
    assert not third.done()
    await curator.release("second")
    later = await third
    assert curator.said == {"held second", "released second"}
    assert later.token > grant.token
    await later.release()
    await curator.wait_until_said("held fourth")
    await curator.release("fourth")


async def readers_and_writers(client: Client, curator: Neighbour, path: str) -> None:
    ours, others = ReadWriteLock(client, path), ReadWriteLock(client, path)
    reading = await ours.read.acquire()
    await curator.take("reader", "read", path)
    curator.order("take", "writer", "write", path)
    await until(partial(_stand, client, path, 3))
    # Behind a writer that waits.
    assert await others.read.try_acquire() is None
    await reading.release()
    assert "held writer" not in curator.said
    await curator.release("reader")
    await curator.wait_until_said("held writer")
    assert await ours.read.try_acquire() is None
    await curator.release("writer")
    writing = await ours.write.acquire()
    curator.order("take", "next", "write", path)
    await until(partial(_stand, client, path, 2))
    # Curator's writer, who has come before our node, waits for us also as a reader.
    reading = await ours.read.acquire()
    await writing.release()
    await until(partial(_stand, client, path, 2))
    await client.sync()
    assert "held next" not in curator.said
    await reading.release()
    await curator.wait_until_said("held next")
    await curator.release("next")


async def leases(client: Client, curator: Neighbour, path: str) -> None:
    grant = await Semaphore(client, path, leases=2).acquire()
    await curator.take("second", "2", path)
    third = asyncio.create_task(_take(Semaphore(client, path, leases=2)))
    await until(partial(_stand, client, f"{path}/leases", 3))
    curator.order("take", "fourth", "2", path)
    await until(partial(_stand, client, f"{path}/locks", 2))
    assert not third.done()
    await curator.release("second")
    later = await third
    await until(partial(_stand, client, f"{path}/leases", 3))
    assert "held fourth" not in curator.said
    await grant.release()
    await curator.wait_until_said("held fourth")
    await later.release()
    await curator.release("fourth")


async def requests(client: Client, curator: Neighbour, path: str) -> None:
    """Each asks the other to let go, by Curator's own means; ours say more to each other."""
    await curator.take("first", "revocable", path)
    lock = Lock(client, path, data=b"ours")
    [asked] = await lock.ask_to_release()
    assert asked.session_id != client.session_id
    await curator.wait_until_said("asked first")
    waiting = asyncio.create_task(_take(lock))
    await until(partial(_stand, client, path, 2))
    await curator.release("first")
    grant = await waiting
    assert not grant.asked
    curator.order("revoke", "it", path)
    await curator.wait_until_said("revoked it")
    assert list(await grant.wait_asked()) == [ReleaseRequest(b"", 0)]
    await Lock(client, path, data=b"another").ask_to_release()
    await until(lambda: len(grant.asked) == 2)
    assert grant.asked[1] == ReleaseRequest(b"another", client.session_id)
    assert grant.is_held
    # A revocable holder of Curator's is asked by its own means only: it knows nothing of our words.
    curator.order("take", "second", "revocable", path)
    await until(partial(_stand, client, path, 2))
    await grant.release()
    await curator.wait_until_said("held second")
    await client.sync()
    assert "asked second" not in curator.said
    await curator.release("second")
    await curator.wait_until_said("released second")


Story: TypeAlias = Callable[[Client, Neighbour, str], Coroutine[Any, Any, None]]


def test_ours_and_curators_contenders_are_served_in_one_order(
    curator: list[str], server: Server, base: str
) -> None:
    """One process for all of them: it takes a while to start."""

    async def scenario() -> None:
        stories: dict[str, Story] = {
            "mutex": in_one_line,
            "readers-and-writers": readers_and_writers,
            "semaphore": leases,
            "requests": requests,
        }
        async with (
            neighbour(curator, server) as beside_us,
            connect(f"{server.host}:{server.port}") as client,
        ):
            for name, story in stories.items():
                beside_us.said.clear()
                await story(client, beside_us, f"{base}/{name}")

    run(scenario)
