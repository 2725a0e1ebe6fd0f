"""Barriers: nobody goes on before the gate is open, or before everybody is there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.errors import (
    GrantLostError,
    InvalidArgumentError,
    LockStateError,
    NoNodeError,
    SessionExpiredError,
)
from paddock.recipes import Barrier, DoubleBarrier
from tests.support.apis import lose_connection, recipe
from tests.support.recipes import clients, expire, run, until
from tests.support.server import Service

# A gate.


@pytest.mark.everywhere
def test_who_waits_at_a_gate_goes_on_when_it_is_opened(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [keeper, *others]:
            gate = recipe(Barrier)(keeper, f"{path}/above/gate")
            assert await gate.is_open()
            await gate.wait()
            await gate.close()
            assert not await gate.is_open()
            gates = [recipe(Barrier)(one, f"{path}/above/gate") for one in others]
            waiting = [asyncio.ensure_future(one.wait()) for one in gates]
            await until(lambda: are_watching(others, f"{path}/above/gate"))
            assert not any(one.done() for one in waiting)
            await gate.open()
            await asyncio.gather(*waiting)
            assert await gates[0].is_open()

    run(scenario)


async def are_watching(some: list[Client], path: str) -> bool:
    sessions: list[Any] = [client._session for client in some]
    return all(path.encode() in one.watches.data for one in sessions)


def test_a_gate_is_closed_and_opened_by_anybody_and_as_often_as_one_likes(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, other]:
            gate, same = recipe(Barrier)(one, path), recipe(Barrier)(other, path)
            for _ in range(2):
                await gate.open()
                await gate.close()
                await same.close()
                assert not await same.is_open()
                await same.open()
                await gate.open()
                assert await gate.is_open()
            # What a close leaves beside the gate goes soon.
            await until(lambda: is_alone(one, path))

    run(scenario)


async def is_alone(client: Client, path: str) -> bool:
    return not [name for name in await client.children("/") if name.startswith(f"{path[1:]}-")]


def test_a_gate_stays_closed_when_whoever_has_closed_it_goes(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await recipe(Barrier)(client, path).close()
        async with clients(service, 1) as [client]:
            assert not await recipe(Barrier)(client, path).is_open()

    run(scenario)


def test_a_lost_connection_neither_opens_a_gate_nor_hides_that_it_was_opened(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [keeper, other]:
            gate = recipe(Barrier)(keeper, path)
            await gate.close()
            waiting = asyncio.ensure_future(recipe(Barrier)(other, path).wait())
            await until(lambda: are_watching([other], path))
            lose_connection(other)
            await other.sync()
            assert not waiting.done()
            await gate.open()
            await waiting

    run(scenario)


def test_who_waits_at_a_gate_is_told_of_the_end_of_its_session(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [keeper, other]:
            await recipe(Barrier)(keeper, path).close()
            await other.sync()
            waiting = asyncio.ensure_future(recipe(Barrier)(other, path).wait())
            await until(lambda: are_watching([other], path))
            await expire(service, other)
            with pytest.raises(SessionExpiredError):
                await waiting

    run(scenario)


# A group.


class Steps:
    """How far members have come."""

    def __init__(self) -> None:
        self.came = self.began = self.left = 0

    async def take(self, barrier: Any, rounds: int, size: int) -> None:
        """Take part in so many rounds, and see that nobody is in another one."""
        for number in range(rounds):
            self.came += 1
            async with barrier:
                # All have come to this round, and nobody who has left it can be in the next one.
                assert self.came >= (number + 1) * size
                assert self.began < (number + 1) * size
                self.began += 1
                assert self.left == number * size
            assert self.began >= (number + 1) * size
            self.left += 1


@pytest.mark.everywhere
def test_members_begin_together_and_end_together_round_after_round(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        steps = Steps()
        async with clients(service, 3) as all_of_them:
            barriers = [recipe(DoubleBarrier)(client, path, 3) for client in all_of_them]
            await asyncio.gather(*(steps.take(one, 4, 3) for one in barriers))
            assert (steps.began, steps.left) == (12, 12)
            await until(lambda: is_left(all_of_them[0], path, []))

    run(scenario)


async def is_left(client: Client, path: str, kinds: list[str]) -> bool:
    """Tell whether there are nodes of these kinds below a path, and no others."""
    try:
        names = await client.children(path)
    except NoNodeError:
        names = []
    return sorted("ready" if name == "ready" else "member" for name in names) == kinds


async def entered(client: Client, path: str, barrier: Any, members: int) -> asyncio.Task[None]:
    """Begin to enter, and wait until so many nodes of members are there."""
    task: asyncio.Task[None] = asyncio.ensure_future(barrier.enter())
    await until(lambda: is_left(client, path, ["member"] * members))
    return task


def test_fewer_than_its_size_wait_whatever_happens_beside_them(service: Service, path: str) -> None:
    """A wakeup is not a condition, and neither `ready` nor a stranger is a member."""

    async def scenario() -> None:
        async with clients(service, 3) as [one, two, observer]:
            barriers = [recipe(DoubleBarrier)(client, path, 3) for client in (one, two)]
            waiting = [await entered(observer, path, barriers[0], 1)]
            waiting.append(await entered(observer, path, barriers[1], 2))
            await observer.create(f"{path}/ready-or-not")
            await observer.create(f"{path}/ready", b"a round\nof others")
            await observer.delete(f"{path}/ready")
            lose_connection(one)
            await one.sync()
            assert not any(task.done() for task in waiting)
            await observer.delete(f"{path}/ready-or-not")
            third = recipe(DoubleBarrier)(observer, path, 3)
            await asyncio.gather(third.enter(), *waiting)
            await asyncio.gather(*(barrier.leave() for barrier in (third, *barriers)))

    run(scenario)


def test_who_dies_before_the_barrier_opens_is_not_counted(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [dead, one, two]:
            dying = await entered(one, path, recipe(DoubleBarrier)(dead, path, 2), 1)
            await expire(service, dead)
            with pytest.raises(SessionExpiredError):
                await dying
            barriers = [recipe(DoubleBarrier)(client, path, 2) for client in (one, two)]
            first = await entered(two, path, barriers[0], 1)
            assert not first.done()
            await asyncio.gather(first, barriers[1].enter())
            await asyncio.gather(*(barrier.leave() for barrier in barriers))

    run(scenario)


def test_who_dies_within_is_told_and_holds_up_nobody(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [dead, *others]:
            barriers = [recipe(DoubleBarrier)(client, path, 3) for client in others]
            dying = recipe(DoubleBarrier)(dead, path, 3)

            async def is_out() -> bool:
                return not dying.is_entered

            async def work() -> None:
                async with dying:
                    await expire(service, dead)
                    await until(is_out)

            async def die() -> None:
                with pytest.raises(GrantLostError):
                    await work()

            # It may be dead before the others hear that all are there; they enter all the same.
            await asyncio.gather(die(), *(barrier.enter() for barrier in barriers))
            await asyncio.gather(*(barrier.leave() for barrier in barriers))
            await until(lambda: is_left(others[0], path, []))

    run(scenario)


def test_who_fails_within_leaves_and_holds_up_nobody(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            barrier, other = (recipe(DoubleBarrier)(client, path, 2) for client in (one, two))

            async def fail() -> None:
                async with barrier:
                    raise ZeroDivisionError

            entering = asyncio.ensure_future(other.enter())
            with pytest.raises(ZeroDivisionError):
                await fail()
            await entering
            await other.leave()
            # And both may take part in the next round.
            await asyncio.gather(barrier.enter(), other.enter())
            await asyncio.gather(barrier.leave(), other.leave())

    run(scenario)


def test_who_comes_in_excess_is_let_in_with_the_next_round(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 4) as all_of_them:
            first, second, third, fourth = (
                recipe(DoubleBarrier)(client, path, 2) for client in all_of_them
            )
            await asyncio.gather(first.enter(), second.enter())
            excess = asyncio.ensure_future(third.enter()), asyncio.ensure_future(fourth.enter())
            await until(lambda: is_left(all_of_them[0], path, ["member"] * 4 + ["ready"]))
            leaving = asyncio.ensure_future(first.leave())
            await all_of_them[2].sync()
            assert not any(one.done() for one in excess)
            await asyncio.gather(leaving, second.leave())
            await asyncio.gather(*excess)
            await asyncio.gather(third.leave(), fourth.leave())

    run(scenario)


def test_a_round_that_nobody_survives_is_ended_by_whoever_waits_for_it(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [dead, one, two]:
            await recipe(DoubleBarrier)(dead, path, 1).enter()
            barriers = [recipe(DoubleBarrier)(client, path, 2) for client in (one, two)]
            waiting = [asyncio.ensure_future(barrier.enter()) for barrier in barriers]
            await until(lambda: is_left(one, path, ["member"] * 3 + ["ready"]))
            await expire(service, dead)
            await asyncio.gather(*waiting)
            await asyncio.gather(*(barrier.leave() for barrier in barriers))

    run(scenario)


def test_a_cancelled_member_leaves(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            barrier, other = (recipe(DoubleBarrier)(client, path, 2) for client in (one, two))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await barrier.enter()
            await until(lambda: is_left(one, path, []))
            await asyncio.gather(barrier.enter(), other.enter())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await barrier.leave()
            await other.leave()
            await until(lambda: is_left(one, path, []))

    run(scenario)


def test_it_is_entered_before_it_is_left_and_once_at_a_time(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            barrier: Any = recipe(DoubleBarrier)(client, path, 1)
            with pytest.raises(LockStateError, match="it has not been entered"):
                await barrier.leave()
            await barrier.enter()
            assert barrier.is_entered
            with pytest.raises(LockStateError, match="it is entered already"):
                await barrier.enter()
            await barrier.leave()
            assert not barrier.is_entered
            async with barrier:
                assert barrier.is_entered

    run(scenario)


def test_a_waiting_member_whose_node_is_deleted_is_told(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, observer]:
            waiting = await entered(observer, path, recipe(DoubleBarrier)(one, path, 2), 1)
            [name] = await observer.children(path)
            await observer.delete(f"{path}/{name}")
            with pytest.raises(LockStateError, match="our node was deleted"):
                await waiting

    run(scenario)


def test_bad_arguments_are_named(service: Service) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for make, text in (
                (lambda: recipe(Barrier)(client, "no slash"), "path: "),
                (lambda: recipe(Barrier)(client, "/a", acl=[]), "acl: "),
                (lambda: recipe(DoubleBarrier)(client, "no slash", 2), "path: "),
                (lambda: recipe(DoubleBarrier)(client, "/a", 0), "size: "),
                (lambda: recipe(DoubleBarrier)(client, "/a", 2, acl=[]), "acl: "),
            ):
                with pytest.raises(InvalidArgumentError, match=text):
                    make()

    run(scenario)
