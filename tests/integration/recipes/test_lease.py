"""Leases: held for some time at most, unless they are renewed."""

from __future__ import annotations

import asyncio

import pytest

from paddock.client.client import Client
from paddock.errors import GrantLostError, InvalidArgumentError, LockStateError
from paddock.recipes import GrantEvent, Lease
from tests.support.apis import asyncio_only, recipe
from tests.support.recipes import clients, run, until
from tests.support.server import Service

# Longer than any test takes.
LONG = 1000.0
# Long enough that something can be done meanwhile; no test depends on whether that is so.
SHORT = 0.2


@pytest.mark.everywhere
def test_a_lease_that_is_not_renewed_goes_to_the_next_one(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            heard: list[GrantEvent] = []
            first = recipe(Lease)(one, path, seconds=SHORT)
            first.add_listener(heard.append)
            grant = await first.acquire()
            # Its session lives, and nobody releases it.
            next_grant = await recipe(Lease)(two, path, seconds=LONG).acquire()
            assert next_grant.token > grant.token
            assert next_grant.is_held
            assert 0 < next_grant.remaining <= LONG
            await grant.wait_over()
            assert grant.is_lost
            assert not grant.is_held
            assert grant.remaining == 0
            with pytest.raises(GrantLostError):
                await grant.renew()
            with pytest.raises(GrantLostError):
                grant.guard()
            await until(lambda: _is(heard, [GrantEvent.ACQUIRED, GrantEvent.LOST]))

    run(scenario)


async def _is(heard: list[GrantEvent], expected: list[GrantEvent]) -> bool:
    return heard == expected


@pytest.mark.everywhere
def test_a_holder_that_has_hung_is_deposed_by_those_who_wait(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [hung, one, two]:
            # As if its process had been stopped: it neither renews nor gives up.
            stuck = await _stand_in_line(hung, path, b"0.2")
            behind = await _stand_in_line(hung, path, b"0.2")
            waiting = [
                asyncio.ensure_future(_hold(recipe(Lease)(client, path, seconds=LONG)))
                for client in (one, two)
            ]
            tokens = await asyncio.gather(*waiting)
            assert tokens[0] != tokens[1]
            assert await one.exists(stuck) is None
            assert await one.exists(behind) is None

    run(scenario)


async def _stand_in_line(client: Client, path: str, data: bytes) -> str:
    return await client.create(
        f"{path}/lease-", data, ephemeral=True, sequential=True, make_parents=True
    )


async def _hold(lease: Lease) -> int:
    async with lease as grant:
        return grant.token


def test_a_renewed_lease_is_held_on(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            async with recipe(Lease)(one, path, seconds=LONG) as grant:
                await grant.renew()
                assert 0 < grant.remaining <= LONG
                assert (await two.get(grant.path)).stat.version == 1
                assert grant.is_held
                async with grant.guard() as transaction:
                    transaction.create(f"{path}-done")
                assert await recipe(Lease)(two, path, seconds=LONG).try_acquire() is None
            assert await recipe(Lease)(two, path, seconds=LONG).try_acquire() is not None

    run(scenario)


def test_its_scope_ends_with_its_time(service: Service, path: str) -> None:
    async def scenario() -> None:
        async def stay(lease: Lease) -> None:
            async with lease as grant:
                await grant.wait_over()

        async with clients(service, 1) as [client]:
            with pytest.raises(GrantLostError, match="held no more"):
                await stay(recipe(Lease)(client, path, seconds=SHORT))

    run(scenario)


@asyncio_only
def test_a_holder_that_was_busy_for_too_long_knows_it_at_once(service: Service, path: str) -> None:
    """Nothing could tell it: the event loop has not run since."""

    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            grant = await recipe(Lease)(client, path, seconds=SHORT).acquire()
            loop = asyncio.get_running_loop()
            end = loop.time() + grant.remaining
            while loop.time() < end:
                pass
            assert not grant.is_lost
            assert not grant.is_held
            with pytest.raises(GrantLostError):
                grant.check()

    run(scenario)


def test_a_deleted_lease_is_lost_and_one_deleted_in_the_line_waits_again(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            grant = await recipe(Lease)(one, path, seconds=LONG).acquire()
            waiting = asyncio.ensure_future(_hold(recipe(Lease)(two, path, seconds=LONG)))
            await until(lambda: _is_in_line(one, path, 2))
            first, second = sorted(await one.children(path), key=lambda name: name[-10:])
            await one.delete(f"{path}/{second}")
            await one.delete(f"{path}/{first}")
            assert await waiting > grant.token
            await grant.wait_over()
            assert grant.is_lost

    run(scenario)


async def _is_in_line(client: Client, path: str, count: int) -> bool:
    return len(await client.children(path)) == count


def test_it_cannot_be_taken_twice(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            lease = recipe(Lease)(client, path, seconds=LONG)
            await lease.acquire()
            with pytest.raises(LockStateError, match="held already"):
                await lease.acquire()
            await lease.release()
            assert not lease.is_held
            assert lease.seconds == LONG

    run(scenario)


def test_bad_arguments_are_named(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for bad in (0, -1, float("inf"), float("nan"), "1", True):
                with pytest.raises(InvalidArgumentError, match="seconds: "):
                    recipe(Lease)(client, path, seconds=bad)
            with pytest.raises(InvalidArgumentError, match="path: "):
                recipe(Lease)(client, "no slash", seconds=1)

    run(scenario)
