"""Locks: one holder at a time, in order, and nobody is in the way of others for good."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.client.time_limits import waited_for
from paddock.errors import (
    GrantLostError,
    InvalidArgumentError,
    LockStateError,
    NoNodeError,
    SessionExpiredError,
    TransactionFailedError,
)
from paddock.recipes import (
    Grant,
    GrantEvent,
    Lease,
    Lock,
    MultiLock,
    ReadWriteLock,
    Semaphore,
    SimpleMutex,
)
from tests.support.apis import asyncio_only, connect, lose_connection, recipe
from tests.support.recipes import clients, expire, run, until
from tests.support.server import Service


def lock_of(kind: str, client: Client, path: str) -> Any:
    if kind == "Lock":
        return recipe(Lock)(client, path)
    return recipe(SimpleMutex)(client, path, "mutex")


both = pytest.mark.parametrize("kind", ["Lock", "SimpleMutex"])


@both
@pytest.mark.everywhere
def test_contenders_hold_it_one_at_a_time(service: Service, path: str, kind: str) -> None:
    async def scenario() -> None:
        holders, tokens = 0, []

        async def contend(client: Client) -> None:
            nonlocal holders
            for _ in range(3):
                async with lock_of(kind, client, path) as grant:
                    holders += 1
                    assert holders == 1
                    assert grant.is_held
                    tokens.append(grant.token)
                    await client.sync()
                    holders -= 1

        async with clients(service, 4) as all_of_them:
            await asyncio.gather(*(contend(client) for client in all_of_them))
            # Its server may be behind that of the last holder.
            await all_of_them[0].sync(path)
            assert await _is_left(all_of_them[0], path, 0)
        assert tokens == sorted(set(tokens))
        assert len(tokens) == 12

    run(scenario)


@pytest.mark.everywhere
def test_a_guarded_write_succeeds_only_while_the_lock_is_held(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            lock = recipe(Lock)(client, f"{path}/lock")
            await client.create(f"{path}/data", make_parents=True)
            async with lock as grant:
                async with grant.guard() as transaction:
                    transaction.set(f"{path}/data", b"by the holder")
            with pytest.raises(LockStateError, match="it was released"):
                grant.guard()
            grant = await lock.acquire()
            late = grant.guard()
            late.set(f"{path}/data", b"too late")
            await grant.release()
            with pytest.raises(TransactionFailedError):
                await late.commit()
            assert (await client.get(f"{path}/data")).data == b"by the holder"

    run(scenario)


@both
def test_what_cannot_be_had_at_once_is_not_waited_for(
    service: Service, path: str, kind: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            first, second = lock_of(kind, one, path), lock_of(kind, two, path)
            grant = await first.try_acquire()
            assert grant is not None
            assert await second.try_acquire() is None
            assert await _is_left(one, path, 1)
            await grant.release()
            assert await second.try_acquire() is not None

    run(scenario)


@both
def test_it_cannot_be_taken_twice_nor_released_by_who_has_it_not(
    service: Service, path: str, kind: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            lock = lock_of(kind, client, path)
            with pytest.raises(LockStateError, match="it is not held"):
                await lock.release()
            await lock.acquire()
            with pytest.raises(LockStateError, match="it is held already"):
                await lock.acquire()
            await lock.release()
            assert not lock.is_held
            with pytest.raises(LockStateError, match="it is not held"):
                await lock.release()

    run(scenario)


@asyncio_only
def test_two_may_wait_for_one_release_and_one_of_them_give_up(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            grant = await recipe(Lock)(client, path).acquire()
            one, two = (asyncio.ensure_future(grant.release()) for _ in range(2))
            await asyncio.sleep(0)
            one.cancel()
            await two
            with pytest.raises(asyncio.CancelledError):
                await one
            await grant.release()

    run(scenario)


def test_a_reentrant_lock_is_held_until_the_last_release(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            lock = recipe(Lock)(one, path, reentrant=True)
            other = recipe(Lock)(two, path)
            async with lock as outer:
                async with lock as inner:
                    assert inner.token == outer.token
                assert outer.is_held
                assert await other.try_acquire() is None
            assert await other.try_acquire() is not None

    run(scenario)


@both
def test_a_deleted_node_ends_the_holders_scope(service: Service, path: str, kind: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [holder, other]:

            async def hold() -> None:
                async with lock_of(kind, holder, path) as grant:
                    await other.delete(grant.path)
                    await grant.wait_over()

            with pytest.raises(GrantLostError, match="held no more: its node was deleted"):
                await hold()

    run(scenario)


@both
def test_a_lost_grant_says_that_the_session_has_expired(
    service: Service, path: str, kind: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [holder]:
            grant = await lock_of(kind, holder, path).acquire()
            await expire(service, holder)
            await grant.wait_over()
            reason = "the session has expired"
            if "," in service.hosts:
                # The holder's server may tell it first that its node is gone.
                reason = f"({reason}|its node was deleted)"
            with pytest.raises(GrantLostError, match=f"held no more: {reason}"):
                grant.check()

    run(scenario)


KINDS: dict[str, Callable[[Client, str], Any]] = {
    "Lock": lambda client, path: recipe(Lock)(client, path, data=b"worker 7"),
    "SimpleMutex": lambda client, path: recipe(SimpleMutex)(client, path, "mutex"),
    "Semaphore": lambda client, path: recipe(Semaphore)(client, path, leases=1),
    "WriteLock": lambda client, path: recipe(ReadWriteLock)(client, path).write,
    "Lease": lambda client, path: recipe(Lease)(client, path, seconds=600),
    "MultiLock": lambda client, path: recipe(MultiLock)([recipe(Lock)(client, path)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_acquired_in_time_names_its_path_and_its_holder(
    service: Service, path: str, kind: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [holder, waiter, third]:
            async with KINDS[kind](holder, path) as grant:
                held = grant.paths[0] if kind == "MultiLock" else grant.path
                for client in waiter, third:
                    lock = KINDS[kind](client, path)
                    for seconds in (0.5, 5, 50):
                        with pytest.raises(TimeoutError) as error:
                            await lock.acquire(timeout=seconds)
                        # On a busy machine the service may not have answered in time.
                        if "waiting for an answer" not in str(error.value):
                            break
                    assert f"{path}" in str(error.value)
                    assert held.rpartition("/")[2] in str(error.value)
                    if kind in ("Lock", "SimpleMutex", "WriteLock", "MultiLock"):
                        assert f"session 0x{holder.session_id:x}" in str(error.value)
                    if kind == "Lock":
                        assert "b'worker 7'" in str(error.value)
            # Neither of them is left in the line.
            async with KINDS[kind](third, path):
                pass

    run(scenario)


@asyncio_only
def test_a_timeout_of_asyncio_has_the_holder_in_its_context(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [holder, waiter], Lock(holder, path) as grant:
            with pytest.raises(TimeoutError) as error:
                async with asyncio.timeout(3), Lock(waiter, path):
                    pass
            assert grant.path in "".join(waited_for(error.value))
            # So the user reads it, above the error itself.
            assert grant.path in "".join(traceback.format_exception(error.value))

    run(scenario)


@both
def test_an_expired_session_ends_the_holders_scope_and_the_next_has_it(
    service: Service, path: str, kind: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [holder, next_one]:

            async def hold() -> None:
                async with lock_of(kind, holder, path) as grant:
                    await expire(service, holder)
                    async with lock_of(kind, next_one, path) as later:
                        assert later.token > grant.token
                    await grant.wait_over()

            with pytest.raises(GrantLostError):
                await hold()

    run(scenario)


@both
def test_a_waiter_whose_session_expires_is_told(service: Service, path: str, kind: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [holder, waiter]:
            async with lock_of(kind, holder, path):
                waiting = asyncio.ensure_future(_take(lock_of(kind, waiter, path)))
                if kind == "Lock":
                    await until(partial(_is_left, holder, path, 2))
                await expire(service, waiter)
                with pytest.raises(SessionExpiredError):
                    await waiting

    run(scenario)


async def _take(lock: Any) -> Grant:
    grant: Grant = await lock.acquire()
    return grant


async def _is_left(client: Client, path: str, count: int) -> bool:
    """Tell whether so many contenders are left; the node of a lock goes with the last one."""
    try:
        names = await client.children(path)
        # A mutex is one node, and has its fence beside it.
        return len([name for name in names if not name.startswith("mutex-")]) == count
    except NoNodeError:
        return count == 0


@both
def test_a_cancelled_waiter_leaves_the_line(service: Service, path: str, kind: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [holder, waiter]:
            async with lock_of(kind, holder, path):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await lock_of(kind, waiter, path).acquire()
                await until(partial(_is_left, holder, path, 1))
            await until(partial(_is_left, holder, path, 0))

    run(scenario)


def test_contenders_are_given_in_their_order_with_their_data(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as all_of_them:
            locks = [
                recipe(Lock)(client, path, data=b"number %d" % number)
                for number, client in enumerate(all_of_them)
            ]
            assert await locks[0].contenders() == []
            grant = await locks[0].acquire()
            waiting = []
            for number, lock in enumerate(locks[1:], 2):
                waiting.append(asyncio.ensure_future(_take(lock)))
                await until(partial(_is_left, all_of_them[0], path, number))
            found = await locks[2].contenders()
            assert [one.data for one in found] == [b"number 0", b"number 1", b"number 2"]
            assert [one.session_id for one in found] == [one.session_id for one in all_of_them]
            assert found[0].token == grant.token
            await grant.release()
            for task in waiting:
                await (await task).release()

    run(scenario)


@both
def test_listeners_hear_of_everything_in_order(service: Service, path: str, kind: str) -> None:
    async def scenario() -> None:
        heard: list[GrantEvent] = []
        async with clients(service, 1) as [client]:
            lock = lock_of(kind, client, path)
            lock.add_listener(heard.append)
            async with lock:
                pass
            lost = await lock.acquire()
            await client.delete(lost.path)
            await until(lambda: _is_in(GrantEvent.LOST, heard))
            lock.remove_listener(heard.append)
            async with lock:
                pass
        assert heard == [
            GrantEvent.ACQUIRED,
            GrantEvent.RELEASED,
            GrantEvent.ACQUIRED,
            GrantEvent.LOST,
        ]

    run(scenario)


async def _is_in(event: GrantEvent, heard: list[GrantEvent]) -> bool:
    return event in heard


@both
def test_a_holder_is_told_while_its_connection_is_lost(
    service: Service, path: str, kind: str
) -> None:
    async def scenario() -> None:
        heard: list[GrantEvent] = []
        async with clients(service, 1) as [client]:
            lock = lock_of(kind, client, path)
            lock.add_listener(heard.append)
            async with lock as grant:
                lose_connection(client)
                await until(lambda: _is_in(GrantEvent.RESUMED, heard))
                assert grant.is_held
        assert heard == [
            GrantEvent.ACQUIRED,
            GrantEvent.SUSPENDED,
            GrantEvent.RESUMED,
            GrantEvent.RELEASED,
        ]

    run(scenario)


@both
def test_ten_contenders_and_whoever_releases_is_the_holder(
    service: Service, path: str, kind: str
) -> None:
    async def scenario() -> None:
        counter, holder = 0, -1

        async def contend(number: int, client: Client) -> None:
            nonlocal counter, holder
            lock = lock_of(kind, client, path)
            await lock.acquire()
            assert (counter, holder) == (0, -1)
            counter, holder = counter + 1, number
            await client.sync()
            assert (counter, holder) == (1, number)
            counter, holder = counter - 1, -1
            await lock.release()

        async with clients(service, 10) as all_of_them:
            await asyncio.gather(*(contend(*one) for one in enumerate(all_of_them)))
        assert counter == 0

    run(scenario)


@pytest.mark.everywhere
def test_of_three_the_next_in_line_leads_when_the_session_of_the_first_is_killed(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as all_of_them:
            heard: list[tuple[int, GrantEvent]] = []
            locks, leading = [], []

            def hear(who: int, event: GrantEvent) -> None:
                heard.append((who, event))

            for number, client in enumerate(all_of_them):
                lock = recipe(Lock)(client, path)
                lock.add_listener(partial(hear, number))
                locks.append(lock)
                leading.append(asyncio.ensure_future(_take(lock)))
                await until(partial(_is_left, client, path, number + 1))
            first = await leading[0]
            assert [lock.is_held for lock in locks] == [True, False, False]
            await expire(service, all_of_them[0])
            second = await leading[1]
            await first.wait_over()
            assert [lock.is_held for lock in locks] == [False, True, False]
            assert not leading[2].done()
            assert second.token > first.token
            acquired = [who for who, event in heard if event is GrantEvent.ACQUIRED]
            assert acquired == [0, 1]
            await second.release()
            await (await leading[2]).release()

    run(scenario)


@both
def test_the_chroot_need_not_exist(service: Service, path: str, kind: str) -> None:
    async def scenario() -> None:
        async with connect(service.hosts + path) as client:
            async with lock_of(kind, client, "/") as grant:
                assert grant.is_held

    run(scenario)


def test_strangers_below_the_lock_are_of_no_matter(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for name in ("stranger", "lock-", "lock-12", "-0000000001", "lock-0000000001-more"):
                await client.create(f"{path}/{name}", make_parents=True)
            async with recipe(Lock)(client, path) as grant:
                assert grant.is_held

    run(scenario)


def test_bad_arguments_are_named(service: Service) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for make, text in (
                (lambda: recipe(Lock)(client, "no slash"), "path: "),
                (lambda: recipe(Lock)(client, "/a", data="text"), "data: "),
                (lambda: recipe(Lock)(client, "/a", acl=[]), "acl: "),
                (lambda: recipe(Lock)(client, "/a", reentrant=1), "reentrant: "),
                (lambda: recipe(SimpleMutex)(client, "/a", "b/c"), "name: 'b/c' has a slash"),
            ):
                with pytest.raises(InvalidArgumentError, match=text):
                    make()

    run(scenario)
