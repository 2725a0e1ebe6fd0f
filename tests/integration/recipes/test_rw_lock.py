"""Read-write locks: many readers or one writer, in order, and from writing to reading at once."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.errors import GrantLostError, InvalidArgumentError, LockStateError
from paddock.recipes import Grant, GrantEvent, ReadWriteLock
from paddock.testing import expire_session
from tests.support.apis import recipe
from tests.support.recipes import clients, run, stand_in_line, until
from tests.support.server import Service


async def _take(side: Any) -> Grant:
    grant: Grant = await side.acquire()
    return grant


@pytest.mark.everywhere
def test_readers_share_it_and_writers_do_not(service: Service, path: str) -> None:
    async def scenario() -> None:
        readers, writers, most, tokens = 0, 0, 0, []

        async def read(client: Client) -> None:
            nonlocal readers, most
            for _ in range(3):
                async with recipe(ReadWriteLock)(client, path).read:
                    readers += 1
                    most = max(most, readers)
                    assert writers == 0
                    await client.sync()
                    readers -= 1

        async def write(client: Client) -> None:
            nonlocal writers
            for _ in range(3):
                async with recipe(ReadWriteLock)(client, path).write as grant:
                    writers += 1
                    assert (readers, writers) == (0, 1)
                    tokens.append(grant.token)
                    await client.sync()
                    writers -= 1

        async with clients(service, 6) as all_of_them:
            parts = (read, write, read, read, write, read)
            await asyncio.gather(
                *(part(client) for part, client in zip(parts, all_of_them, strict=True))
            )
            await until(partial(stand_in_line, all_of_them[0], path, 0))
        assert most > 1
        assert tokens == sorted(set(tokens))
        assert len(tokens) == 6

    run(scenario)


def test_who_comes_behind_a_waiting_writer_waits_for_it(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 4) as all_of_them:
            locks = [recipe(ReadWriteLock)(client, path) for client in all_of_them]
            first = await locks[0].read.acquire()
            async with locks[1].read:
                waiting = []
                for number, side in enumerate((locks[2].write, locks[3].read), 3):
                    waiting.append(asyncio.ensure_future(_take(side)))
                    await until(partial(stand_in_line, all_of_them[0], path, number))
                assert await recipe(ReadWriteLock)(all_of_them[0], path).read.try_acquire() is None
                await first.release()
            writing = await waiting[0]
            assert writing.token > first.token
            assert not waiting[1].done()
            await writing.release()
            reading = await waiting[1]
            assert reading.token > writing.token
            await reading.release()

    run(scenario)


@pytest.mark.everywhere
def test_a_writer_goes_on_as_a_reader_before_any_other_writes(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as all_of_them:
            one, two, three = (recipe(ReadWriteLock)(client, path) for client in all_of_them)
            writing = await one.write.acquire()
            next_writer = asyncio.ensure_future(_take(two.write))
            await until(partial(stand_in_line, all_of_them[0], path, 2))
            reading = await one.read.acquire()
            await one.write.release()
            assert reading.is_held
            assert reading.token == writing.token
            # It stands where it stood as a writer: before the one who has come meanwhile.
            assert await two.read.try_acquire() is None
            assert await three.write.try_acquire() is None
            assert not next_writer.done()
            await all_of_them[0].create(f"{path}-data")
            async with reading.guard() as transaction:
                transaction.set(f"{path}-data", b"still ours")
            await reading.release()
            assert (await next_writer).token > reading.token

    run(scenario)


def test_who_goes_on_as_a_reader_shares_it_with_readers(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as all_of_them:
            one, two = (recipe(ReadWriteLock)(client, path) for client in all_of_them)
            async with one.write:
                reading = await one.read.try_acquire()
                assert reading is not None
                assert await two.read.try_acquire() is None
            other = await two.read.try_acquire()
            assert other is not None
            assert reading.is_held
            assert other.token > reading.token

    run(scenario)


def test_a_writer_that_was_deleted_does_not_go_on_as_a_reader(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as all_of_them:
            one, two = (recipe(ReadWriteLock)(client, path) for client in all_of_them)
            writing = await one.write.acquire()
            await all_of_them[1].delete(writing.path)
            async with two.write:
                # It may know by now that it writes no more, or hear it from the service.
                try:
                    assert await one.read.try_acquire() is None
                except GrantLostError:
                    pass
                await until(partial(stand_in_line, all_of_them[1], path, 1))

    run(scenario)


def test_a_reader_cannot_become_a_writer_and_is_told(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            lock = recipe(ReadWriteLock)(client, path)
            async with lock.read:
                for attempt in (lock.write.acquire, lock.write.try_acquire):
                    with pytest.raises(LockStateError, match="would wait for itself"):
                        await attempt()
                assert lock.read.is_held
                assert not lock.write.is_held
            async with lock.write as grant:
                assert grant.is_held

    run(scenario)


def test_neither_side_can_be_taken_twice(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            lock = recipe(ReadWriteLock)(client, path)
            for side in (lock.read, lock.write):
                with pytest.raises(LockStateError, match="it is not held"):
                    await side.release()
                async with side:
                    with pytest.raises(LockStateError, match="it is held already"):
                        await side.acquire()

    run(scenario)


def test_an_expired_session_ends_both_scopes_of_a_holder(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [holder, other]:
            heard: list[GrantEvent] = []

            async def hold() -> None:
                lock = recipe(ReadWriteLock)(holder, path)
                lock.read.add_listener(heard.append)
                async with lock.write as writing, lock.read as reading:
                    host, _, port = service.hosts.split(",")[0].rpartition(":")
                    address = (host, int(port))
                    await expire_session(address, holder.session_id, holder.session_password)
                    async with recipe(ReadWriteLock)(other, path).write as later:
                        assert later.token > writing.token
                    await reading.wait_over()

            with pytest.raises(GrantLostError):
                await hold()
            assert heard[0] is GrantEvent.ACQUIRED
            # The news come one after the other, and the first may already end the body.
            assert heard[-1] in (GrantEvent.LOST, GrantEvent.RELEASED)

    run(scenario)


def test_a_cancelled_writer_lets_the_readers_behind_it_pass(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as all_of_them:
            locks = [recipe(ReadWriteLock)(client, path) for client in all_of_them]
            async with locks[0].read:
                writer = asyncio.ensure_future(_take(locks[1].write))
                await until(partial(stand_in_line, all_of_them[0], path, 2))
                reader = asyncio.ensure_future(_take(locks[2].read))
                await until(partial(stand_in_line, all_of_them[0], path, 3))
                writer.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await writer
                await (await reader).release()

    run(scenario)


def test_bad_arguments_are_named(service: Service) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for arguments, text in (
                ({"path": "no slash"}, "path: "),
                ({"path": "/a", "data": "text"}, "data: "),
                ({"path": "/a", "acl": []}, "acl: "),
            ):
                with pytest.raises(InvalidArgumentError, match=text):
                    recipe(ReadWriteLock)(client, **arguments)
            assert "/a not held" in repr(recipe(ReadWriteLock)(client, "/a"))

    run(scenario)
