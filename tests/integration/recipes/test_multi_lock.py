"""Several locks as one: all of them or none, no deadlock, and over when one of them is."""

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
    TransactionFailedError,
)
from paddock.recipes import (
    GrantEvent,
    Lock,
    MultiGrant,
    MultiLock,
    ReadWriteLock,
    Semaphore,
    SimpleMutex,
)
from paddock.testing import expire_session
from tests.support.apis import recipe
from tests.support.recipes import clients, run, stand_in_line, until
from tests.support.server import Service


def locks_of(client: Client, path: str, names: str = "ab") -> list[Any]:
    return [recipe(Lock)(client, f"{path}/{name}") for name in names]


async def _take(lock: Any) -> MultiGrant:
    grant: MultiGrant = await lock.acquire()
    return grant


@pytest.mark.everywhere
def test_they_are_held_together_whatever_the_order_in_which_they_are_given(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        held: set[str] = set()
        tokens: dict[str, list[int]] = {"a": [], "b": [], "c": []}

        async def contend(client: Client, names: str) -> None:
            for _ in range(3):
                async with recipe(MultiLock)(locks_of(client, path, names)) as grant:
                    assert not held & set(names)
                    held.update(names)
                    for name, token in zip(names, grant.tokens, strict=True):
                        tokens[name].append(token)
                    await client.sync()
                    held.difference_update(names)

        async with clients(service, 4) as all_of_them:
            orders = ("abc", "cba", "ba", "bc")
            await asyncio.gather(
                *(contend(client, names) for client, names in zip(all_of_them, orders, strict=True))
            )
            for name in "abc":
                await until(partial(stand_in_line, all_of_them[0], f"{path}/{name}", 0))
        for of_one in tokens.values():
            assert of_one == sorted(set(of_one))
            assert len(of_one) >= 9

    run(scenario)


def test_each_lock_has_a_token_of_its_own_because_none_would_do_for_all(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, three]:
            first = await recipe(Lock)(three, f"{path}/a").acquire()
            both = asyncio.ensure_future(_take(recipe(MultiLock)(locks_of(one, path, "ba"))))
            await until(partial(stand_in_line, one, f"{path}/a", 2))
            later = asyncio.ensure_future(recipe(Lock)(two, f"{path}/a").acquire())
            await until(partial(stand_in_line, one, f"{path}/a", 3))
            await first.release()
            grant = await both
            of_b, of_a = grant.tokens
            assert [one.split("/")[2] for one in grant.paths] == ["b", "a"]
            await grant.release()
            assert of_a < (await later).token < of_b

    run(scenario)


def test_what_cannot_be_had_at_once_leaves_the_others_free(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            both = recipe(MultiLock)(locks_of(one, path))
            async with recipe(Lock)(two, f"{path}/b"):
                assert await both.try_acquire() is None
                assert await stand_in_line(two, f"{path}/a", 0)
                assert not both.is_held
            grant = await both.try_acquire()
            assert grant is not None
            assert grant.is_held
            assert await recipe(Lock)(two, f"{path}/a").try_acquire() is None

    run(scenario)


def test_a_cancelled_waiter_gives_back_what_it_has(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            both = recipe(MultiLock)(locks_of(one, path))
            async with recipe(Lock)(two, f"{path}/b"):
                waiting = asyncio.ensure_future(_take(both))
                await until(partial(stand_in_line, two, f"{path}/b", 2))
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                async with recipe(Lock)(two, f"{path}/a"):
                    await until(partial(stand_in_line, two, f"{path}/b", 1))

    run(scenario)


def test_a_lock_that_is_lost_ends_the_scope_and_frees_the_others(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            heard: list[GrantEvent] = []
            both = recipe(MultiLock)(locks_of(one, path))
            both.add_listener(heard.append)

            async def hold() -> None:
                async with both as grant:
                    await two.delete(grant.paths[1])
                    await grant.wait_over()

            with pytest.raises(GrantLostError, match="held no more"):
                await hold()
            async with recipe(MultiLock)(locks_of(two, path)):
                assert not both.is_held
            assert heard == [GrantEvent.ACQUIRED, GrantEvent.LOST]
            both.remove_listener(heard.append)
            async with both:
                assert len(heard) == 2

    run(scenario)


def test_a_lock_that_is_released_alone_ends_the_grant(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            locks = locks_of(client, path)
            grant = await recipe(MultiLock)(locks).acquire()
            with pytest.raises(LockStateError, match="it is held already"):
                await locks[0].acquire()
            await locks[0].release()
            await grant.wait_over()
            with pytest.raises(GrantLostError):
                grant.check()
            await until(partial(stand_in_line, client, f"{path}/b", 0))

    run(scenario)


def test_an_expired_session_ends_the_scope(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:

            async def hold() -> None:
                async with recipe(MultiLock)(locks_of(one, path)) as grant:
                    host, _, port = service.hosts.split(",")[0].rpartition(":")
                    address = (host, int(port))
                    await expire_session(address, one.session_id, one.session_password)
                    async with recipe(MultiLock)(locks_of(two, path)) as later:
                        assert all(
                            new > old for new, old in zip(later.tokens, grant.tokens, strict=True)
                        )
                    await grant.wait_over()

            with pytest.raises(GrantLostError):
                await hold()

    run(scenario)


@pytest.mark.everywhere
def test_a_guarded_write_succeeds_only_while_all_of_them_are_held(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            both = recipe(MultiLock)(locks_of(one, path))
            async with both as grant:
                async with grant.guard() as transaction:
                    transaction.create(f"{path}/data", b"by the holder")
            with pytest.raises(LockStateError, match="it was released"):
                grant.guard()
            for lost in (0, 1):
                grant = await both.acquire()
                late = grant.guard()
                late.set(f"{path}/data", b"too late")
                await two.delete(grant.paths[lost])
                with pytest.raises(TransactionFailedError):
                    await late.commit()
                await grant.wait_over()
            assert (await one.get(f"{path}/data")).data == b"by the holder"

    run(scenario)


def test_who_loses_one_while_it_waits_for_the_next_begins_again(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            of_b = await recipe(Lock)(two, f"{path}/b").acquire()
            waiting = asyncio.ensure_future(_take(recipe(MultiLock)(locks_of(one, path))))
            await until(partial(stand_in_line, two, f"{path}/b", 2))
            [name] = await two.children(f"{path}/a")
            await two.delete(f"{path}/a/{name}")
            of_a = await recipe(Lock)(two, f"{path}/a").acquire()
            await of_b.release()
            await until(partial(stand_in_line, two, f"{path}/a", 2))
            assert not waiting.done()
            await of_a.release()
            grant = await waiting
            assert grant.is_held
            assert grant.tokens[0] > of_a.token

    run(scenario)


def test_locks_of_all_kinds_are_held_together(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:

            def kinds(client: Client) -> list[Any]:
                return [
                    recipe(Semaphore)(client, f"{path}/semaphore", leases=2),
                    recipe(ReadWriteLock)(client, f"{path}/shared").read,
                    recipe(Lock)(client, f"{path}/lock", reentrant=True),
                    recipe(SimpleMutex)(client, path, "mutex"),
                ]

            mine, others = kinds(one), kinds(two)
            async with recipe(MultiLock)(mine) as grant, mine[2]:
                assert len(set(grant.tokens)) == 4
                held = [await lock.try_acquire() is not None for lock in others]
                assert held == [True, True, False, False]
                async with grant.guard() as transaction:
                    transaction.create(f"{path}/data")
            assert not any(lock.is_held for lock in mine)
            assert await others[3].try_acquire() is not None

    run(scenario)


def test_it_cannot_be_taken_twice_nor_released_by_who_has_it_not(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            both = recipe(MultiLock)(locks_of(client, path))
            with pytest.raises(LockStateError, match="it is not held"):
                await both.release()
            await both.acquire()
            for attempt in (both.acquire, both.try_acquire):
                with pytest.raises(LockStateError, match="it is held already"):
                    await attempt()
            await both.release()
            with pytest.raises(LockStateError, match="it is not held"):
                await both.release()

    run(scenario)


def test_one_that_is_ours_already_leaves_the_others_free(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            locks = locks_of(one, path)
            async with locks[1]:
                with pytest.raises(LockStateError, match="it is held already"):
                    await recipe(MultiLock)(locks).acquire()
                async with recipe(Lock)(two, f"{path}/a"):
                    assert locks[1].is_held

    run(scenario)


def test_bad_arguments_are_named(service: Service) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            for locks, text in (
                ([], "locks: there are none"),
                (["/a"], "locks: '/a' is n"),
                (locks_of(one, "/x", "aba"), "locks: /x/a is there twice"),
                (locks_of(one, "/x", "a") + locks_of(two, "/x", "b"), "more than one client"),
            ):
                with pytest.raises(InvalidArgumentError, match=text):
                    recipe(MultiLock)(locks)
            assert "/x/a, /x/b not held" in repr(recipe(MultiLock)(locks_of(one, "/x")))

    run(scenario)
