"""Requests to let go: the holder learns by whom, and hands over when it likes to."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from paddock.recipes import Grant, GrantEvent, Lock, ReadWriteLock, ReleaseRequest
from tests.support.apis import lose_connection, recipe
from tests.support.recipes import clients, run, stand_in_line, until
from tests.support.server import Service


async def _take(lock: Any) -> Grant:
    grant: Grant = await lock.acquire()
    return grant


@pytest.mark.everywhere
def test_a_holder_that_is_asked_hands_over_to_the_asker(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            heard: list[GrantEvent] = []
            lock = recipe(Lock)(one, path, data=b"nightly report")
            lock.add_listener(heard.append)
            other = recipe(Lock)(two, path, data=b"worker 7")
            assert await other.ask_to_release() == []
            grant = await lock.acquire()
            waiting = asyncio.ensure_future(_take(other))
            await until(partial(stand_in_line, one, path, 2))
            [holder] = await other.ask_to_release()
            assert (holder.path, holder.data) == (grant.path, b"nightly report")
            assert holder.session_id == one.session_id
            assert await grant.wait_asked() == (ReleaseRequest(b"worker 7", two.session_id),)
            assert grant.asked == (ReleaseRequest(b"worker 7", two.session_id),)
            assert grant.is_held
            said = [found.data for found in await other.contenders()]
            assert said == [b"nightly report", b"worker 7"]
            await grant.release()
            later = await waiting
            assert later.asked == ()
            await until(lambda: GrantEvent.RELEASED in heard)
            assert heard == [GrantEvent.ACQUIRED, GrantEvent.ASKED, GrantEvent.RELEASED]
            assert await other.ask_to_release() == []
            await later.release()

    run(scenario)


def test_a_request_outlives_the_connection_of_the_holder(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            grant = await recipe(Lock)(one, path).acquire()
            lose_connection(one)
            await recipe(Lock)(two, path, data=b"worker 7").ask_to_release()
            [asked] = await grant.wait_asked()
            assert asked.data == b"worker 7"
            await grant.release()

    run(scenario)


@pytest.mark.everywhere
def test_a_writer_asks_all_who_read(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, writer]:
            reading = [
                await recipe(ReadWriteLock)(each, path).read.acquire() for each in (one, two)
            ]
            lock = recipe(ReadWriteLock)(writer, path, data=b"writer")
            asked = await lock.write.ask_to_release()
            assert [found.path for found in asked] == [grant.path for grant in reading]
            for grant in reading:
                [request] = await grant.wait_asked()
                assert request.data == b"writer"
                await grant.release()
            writing = await lock.write.acquire()
            assert writing.asked == ()
            await writing.release()

    run(scenario)


def test_a_wait_for_requests_ends_with_the_grant(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            grant = await recipe(Lock)(client, path).acquire()
            waiting = asyncio.ensure_future(_wait_asked(grant))
            await client.delete(grant.path)
            assert await waiting == ()

    run(scenario)


async def _wait_asked(grant: Grant) -> tuple[ReleaseRequest, ...]:
    return await grant.wait_asked()
