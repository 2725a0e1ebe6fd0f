"""Semaphores: never more leases than there are, in order, and the dead are in nobody's way."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.errors import (
    GrantLostError,
    InvalidArgumentError,
    LockStateError,
    NoNodeError,
    SessionExpiredError,
    TransactionFailedError,
)
from paddock.recipes import Grant, GrantEvent, Semaphore
from tests.support.apis import recipe
from tests.support.recipes import clients, expire, run, until
from tests.support.server import Service


async def _take(semaphore: Any) -> Grant:
    grant: Grant = await semaphore.acquire()
    return grant


async def _count(client: Client, path: str) -> tuple[int, int]:
    """Return how many nodes are in the line, and how many among the leases."""
    counts = []
    for part in ("locks", "leases"):
        try:
            counts.append(len(await client.children(f"{path}/{part}")))
        except NoNodeError:
            counts.append(0)
    return counts[0], counts[1]


async def _is(client: Client, path: str, waiting: int, leases: int) -> bool:
    return await _count(client, path) == (waiting, leases)


@pytest.mark.everywhere
def test_there_are_never_more_holders_than_leases(service: Service, path: str) -> None:
    async def scenario() -> None:
        holders, tokens = 0, []
        two_at_once = asyncio.Event()

        async def contend(client: Client) -> None:
            nonlocal holders
            for _ in range(3):
                async with recipe(Semaphore)(client, path, leases=2) as grant:
                    tokens.append(grant.token)
                    holders += 1
                    assert holders <= 2
                    if holders == 2:
                        two_at_once.set()
                    await two_at_once.wait()
                    for _ in range(5):
                        # And the one who is next.
                        assert len(await client.children(f"{path}/leases")) <= 3
                    holders -= 1

        async with clients(service, 5) as all_of_them:
            await asyncio.gather(*(contend(client) for client in all_of_them))
            await until(partial(_is, all_of_them[0], path, 0, 0))
        assert len(set(tokens)) == 15

    run(scenario)


def test_leases_are_given_out_in_the_order_in_which_they_were_asked_for(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 5) as all_of_them:
            semaphores = [
                recipe(Semaphore)(client, path, leases=2, data=b"number %d" % number)
                for number, client in enumerate(all_of_them)
            ]
            held = [await semaphore.acquire() for semaphore in semaphores[:2]]
            waiting = []
            for number, semaphore in enumerate(semaphores[2:], 1):
                waiting.append(asyncio.ensure_future(_take(semaphore)))
                # The first of them stands among the leases already.
                await until(partial(_is, all_of_them[0], path, number, 3))
            assert [one.data for one in await semaphores[4].holders()] == [b"number 0", b"number 1"]
            # In any order: the first in the line gets the next lease.
            await held[1].release()
            third = await waiting[0]
            assert [one.token for one in await semaphores[4].holders()] == [
                held[0].token,
                third.token,
            ]
            await third.release()
            await (await waiting[1]).release()
            last = await waiting[2]
            assert last.token > third.token > held[1].token > held[0].token
            assert held[0].is_held

    run(scenario)


def test_what_cannot_be_had_at_once_is_not_waited_for(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as all_of_them:
            one, two, three = (recipe(Semaphore)(client, path, leases=2) for client in all_of_them)
            grant = await one.try_acquire()
            assert grant is not None
            async with two:
                await until(partial(_is, all_of_them[0], path, 0, 2))
                assert await three.try_acquire() is None
                await all_of_them[0].sync()
                assert await _count(all_of_them[0], path) == (0, 2)
                waiting = asyncio.ensure_future(_take(three))
                await until(partial(_is, all_of_them[0], path, 1, 3))
                # Another contender is ahead, so this one does not even look.
                assert await recipe(Semaphore)(all_of_them[0], path, leases=5).try_acquire() is None
                assert await _count(all_of_them[0], path) == (1, 3)
            await (await waiting).release()

    run(scenario)


def test_one_semaphore_holds_one_lease(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            semaphore = recipe(Semaphore)(client, path, leases=2)
            with pytest.raises(LockStateError, match="it is not held"):
                await semaphore.release()
            async with semaphore:
                with pytest.raises(LockStateError, match="it is held already"):
                    await semaphore.acquire()
            assert not semaphore.is_held

    run(scenario)


@pytest.mark.everywhere
def test_a_guarded_write_succeeds_only_while_the_lease_is_held(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            semaphore = recipe(Semaphore)(client, path, leases=2)
            async with semaphore as grant:
                async with grant.guard() as transaction:
                    transaction.create(f"{path}/data", b"by the holder")
                late = grant.guard()
                late.set(f"{path}/data", b"too late")
            with pytest.raises(TransactionFailedError):
                await late.commit()
            assert (await client.get(f"{path}/data")).data == b"by the holder"

    run(scenario)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_waiter_that_dies_is_in_nobodys_way(service: Service, path: str, is_first: bool) -> None:
    async def scenario() -> None:
        async with clients(service, 4) as all_of_them:
            semaphores = [recipe(Semaphore)(client, path, leases=1) for client in all_of_them]
            holder = await semaphores[0].acquire()
            waiting = []
            for number, semaphore in enumerate(semaphores[1:], 1):
                waiting.append(asyncio.ensure_future(_take(semaphore)))
                await until(partial(_is, all_of_them[0], path, number, 2))
            dead = 0 if is_first else 1
            await expire(service, all_of_them[1 + dead])
            with pytest.raises(SessionExpiredError):
                await waiting.pop(dead)
            await holder.release()
            for one in waiting:
                await (await one).release()

    run(scenario)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_cancelled_waiter_is_in_nobodys_way(service: Service, path: str, is_first: bool) -> None:
    async def scenario() -> None:
        async with clients(service, 4) as all_of_them:
            semaphores = [recipe(Semaphore)(client, path, leases=1) for client in all_of_them]
            async with semaphores[0]:
                waiting = []
                for number, semaphore in enumerate(semaphores[1:], 1):
                    waiting.append(asyncio.ensure_future(_take(semaphore)))
                    await until(partial(_is, all_of_them[0], path, number, 2))
                gone = waiting.pop(0 if is_first else 1)
                gone.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await gone
                await until(partial(_is, all_of_them[0], path, 2, 2))
            for one in waiting:
                await (await one).release()
            await until(partial(_is, all_of_them[0], path, 0, 0))

    run(scenario)


def test_who_has_two_places_among_the_leases_at_once_does_not_block_them(
    service: Service, path: str
) -> None:
    """The place of the first in the line is deleted, so that two contenders wait for a lease."""

    async def scenario() -> None:
        async with clients(service, 3) as all_of_them:
            semaphores = [recipe(Semaphore)(client, path, leases=1) for client in all_of_them]
            holder = await semaphores[0].acquire()
            first = asyncio.ensure_future(_take(semaphores[1]))
            await until(partial(_is, all_of_them[0], path, 1, 2))
            [name] = await all_of_them[0].children(f"{path}/locks")
            await all_of_them[0].delete(f"{path}/locks/{name}")
            second = asyncio.ensure_future(_take(semaphores[2]))
            await until(partial(_is, all_of_them[0], path, 1, 3))
            await holder.release()
            grant = await first
            assert not second.done()
            await grant.release()
            await (await second).release()

    run(scenario)


def test_a_lost_lease_ends_its_scope_and_another_has_it(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [holder, other]:
            heard: list[GrantEvent] = []

            async def hold() -> None:
                semaphore = recipe(Semaphore)(holder, path, leases=1)
                semaphore.add_listener(heard.append)
                async with semaphore as grant:
                    await expire(service, holder)
                    async with recipe(Semaphore)(other, path, leases=1) as later:
                        assert later.token > grant.token
                    await grant.wait_over()

            with pytest.raises(GrantLostError):
                await hold()
            assert (heard[0], heard[-1]) == (GrantEvent.ACQUIRED, GrantEvent.LOST)

    run(scenario)


def test_who_goes_by_a_smaller_number_waits_until_fewer_are_held(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 4) as all_of_them:
            many = [recipe(Semaphore)(client, path, leases=3) for client in all_of_them[:3]]
            held = [await semaphore.acquire() for semaphore in many[:2]]
            few = asyncio.ensure_future(_take(recipe(Semaphore)(all_of_them[3], path, leases=1)))
            await until(partial(_is, all_of_them[0], path, 1, 3))
            behind = asyncio.ensure_future(_take(many[2]))
            await until(partial(_is, all_of_them[0], path, 2, 3))
            await held[0].release()
            await all_of_them[0].sync()
            assert not few.done()
            await held[1].release()
            await few
            assert (await behind).is_held

    run(scenario)


def test_bad_arguments_are_named(service: Service) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for arguments, text in (
                ({"path": "no slash", "leases": 1}, "path: 'no slash' "),
                ({"path": "/a", "leases": 0}, "leases: 0 is not 1 or more"),
                ({"path": "/a", "leases": "3"}, "leases: '3' "),
                ({"path": "/a", "leases": 1, "data": "text"}, "data: "),
                ({"path": "/a", "leases": 1, "acl": []}, "acl: "),
            ):
                with pytest.raises(InvalidArgumentError, match=text):
                    recipe(Semaphore)(client, **arguments)

    run(scenario)
