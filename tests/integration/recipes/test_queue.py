"""Queues: each item has one consumer at a time, in order, until it is done."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.errors import (
    GrantLostError,
    InvalidArgumentError,
    NoNodeError,
    SessionExpiredError,
    TransactionFailedError,
)
from paddock.recipes import Queue
from tests.support.apis import recipe
from tests.support.recipes import clients, expire, run, until
from tests.support.server import Service


class FailedError(Exception):
    """What a consumer raises that does not manage."""


async def take(queue: Any) -> bytes:
    """Take an item, and be done with it."""
    async with queue.take() as item:
        data: bytes = item.data
    return data


async def fail(queue: Any) -> None:
    """Take an item, and do not manage."""
    with pytest.raises(FailedError):
        async with queue.take():
            raise FailedError


@pytest.mark.everywhere
def test_every_item_is_consumed_once_by_many_consumers(service: Service, path: str) -> None:
    async def scenario() -> None:
        consumed: Counter[bytes] = Counter()
        held: set[str] = set()

        async def consume(client: Client, count: int) -> None:
            queue = recipe(Queue)(client, path)
            for _ in range(count):
                async with queue.take() as item:
                    assert item.id not in held
                    held.add(item.id)
                    await client.sync()
                    held.discard(item.id)
                consumed[item.data] += 1

        async with clients(service, 4) as [producer, *consumers]:
            queue = recipe(Queue)(producer, path)
            working = [asyncio.ensure_future(consume(client, 6)) for client in consumers]
            await asyncio.gather(*(queue.put(b"%d" % number) for number in range(18)))
            await asyncio.gather(*working)
            assert consumed == {b"%d" % number: 1 for number in range(18)}
            await producer.sync()
            assert await queue.size() == 0

    run(scenario)


@pytest.mark.everywhere
def test_what_failed_too_often_is_a_dead_letter_and_can_be_put_back(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            queue = recipe(Queue)(client, path, attempts_max=2)
            await queue.put(b"bad", priority=3)
            await queue.put(b"good", priority=4)
            await fail(queue)
            async with queue.take() as item:
                assert (item.data, item.attempts) == (b"bad", 2)
                [bad, _] = await queue.items()
                assert (bad.attempts, bad.is_taken) == (2, True)
                # It was taken as often as it may be, but a consumer holds it now.
                async with queue.try_take() as other:
                    assert other is not None
                    assert other.data == b"good"
                await queue.put(b"good")
                first = item.id
            # It was acknowledged, whatever the count.
            assert [one.data for one in await queue.items()] == [b"good"]

            again = await queue.put(b"bad", priority=3)
            await fail(queue)
            await fail(queue)
            assert await take(queue) == b"good"
            [letter] = await queue.dead_letters()
            assert (letter.id, letter.data, letter.priority) == (again, b"bad", 3)
            assert (await client.get(letter.path)).data == b"bad"
            assert await queue.size() == 0

            back = await queue.put_back(letter.id)
            assert len({back, again, first}) == 3
            assert await queue.dead_letters() == []
            async with queue.take() as item:
                assert (item.id, item.data, item.attempts) == (back, b"bad", 1)
            with pytest.raises(NoNodeError):
                await queue.put_back(letter.id)

    run(scenario)


def test_a_consumer_alone_keeps_the_order_over_items_that_are_dead(
    service: Service, path: str
) -> None:
    """Only those who are in each other's way draw lots."""

    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            queue = recipe(Queue)(client, path, attempts_max=1)
            # All taken at once, or the first would be among the dead before the next is taken.
            for _ in range(3):
                await queue.put(b"bad")
            with pytest.raises(ZeroDivisionError):
                async with queue.take(), queue.take(), queue.take():
                    raise ZeroDivisionError
            for number in range(8):
                await queue.put(b"%d" % number)
            assert [await take(queue) for _ in range(8)] == [b"%d" % one for one in range(8)]

    run(scenario)


def test_items_come_by_priority_and_within_it_in_the_order_they_were_put(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            queue = recipe(Queue)(client, path)
            for data, priority in ((b"a", 100), (b"b", 20), (b"c", 100), (b"d", 3), (b"e", -1)):
                await queue.put(data, priority=priority)
            assert [one.data for one in await queue.items()] == [b"e", b"d", b"b", b"a", b"c"]
            assert await take(queue) == b"e"
            # What came after we had listed them counts as well.
            await queue.put(b"f", priority=0)
            assert [await take(queue) for _ in range(5)] == [b"f", b"d", b"b", b"a", b"c"]

    run(scenario)


def test_a_long_backlog_is_in_order_too_whoever_adds_to_it_or_takes_from_it(
    service: Service, path: str
) -> None:
    """Of many items we do not list all each time; this must not be seen."""

    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            queue, elsewhere = recipe(Queue)(client, path), recipe(Queue)(other, path)
            for number in range(130):
                await queue.put(b"%d" % number)
            assert await take(queue) == b"0"
            assert await take(queue) == b"1"
            assert await take(elsewhere) == b"2"
            assert await take(queue) == b"3"
            await elsewhere.put(b"urgent", priority=1)
            assert await take(queue) == b"urgent"
            async with elsewhere.take() as item:
                assert item.data == b"4"
                assert await take(queue) == b"5"
            await elsewhere.put(b"last")
            await fail(elsewhere)
            assert await take(queue) == b"6"
            assert await queue.size() == 124

    run(scenario)


def test_an_empty_queue_is_waited_at(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [producer, consumer]:
            queue = recipe(Queue)(consumer, path)
            async with queue.try_take() as item:
                assert item is None
            waiting = [asyncio.ensure_future(take(queue)) for _ in range(2)]
            await until(lambda: stand_in_line(producer, path, 2))
            await recipe(Queue)(producer, path).put(b"first")
            await until(lambda: stand_in_line(producer, path, 1))
            await recipe(Queue)(producer, path).put(b"second")
            assert sorted(await asyncio.gather(*waiting)) == [b"first", b"second"]
            await until(lambda: stand_in_line(producer, path, 0))

    run(scenario)


async def stand_in_line(client: Client, path: str, count: int) -> bool:
    try:
        names = await client.children(path)
    except NoNodeError:
        names = []
    return sum("wait-" in name for name in names) == count


def test_only_the_first_in_line_watches_the_items(service: Service, path: str) -> None:
    """A new item wakes up one consumer, and not the herd."""

    async def scenario() -> None:
        async with clients(service, 5) as [producer, *consumers]:
            waiting = [asyncio.ensure_future(take(recipe(Queue)(one, path))) for one in consumers]
            await until(lambda: stand_in_line(producer, path, 4))

            async def watched_by(count: int) -> bool:
                return sum(is_watching(one, f"{path}/entries") for one in consumers) == count

            await until(lambda: watched_by(1))
            queue = recipe(Queue)(producer, path)
            for number in range(4):
                await queue.put(b"%d" % number)
            await asyncio.gather(*waiting)
            await until(lambda: watched_by(0))

    run(scenario)


def is_watching(client: Client, path: str) -> bool:
    session: Any = client._session
    return path.encode() in session.watches.child


def test_a_delayed_item_comes_when_its_time_has_come(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            queue = recipe(Queue)(client, path)
            delayed = await queue.put(b"later", priority=1, delay=3600)
            soon = await queue.put(b"soon", priority=1, delay=0.5)
            await queue.put(b"now")
            assert [one.is_delayed for one in await queue.items()] == [True, True, False]
            assert await take(queue) == b"now"
            async with queue.take() as item:
                assert item.id == soon
                # By the service's own word, which has stamped both.
                [entry] = [one for one in await queue.items() if one.id == soon]
                _, born = await client.get(entry.path)
                _, taken = await client.get(f"{path}/taken/{soon}")
                assert taken.ctime - born.ctime >= 499
            [left] = await queue.items()
            assert (left.id, left.is_delayed, left.is_taken) == (delayed, True, False)

    run(scenario)


def test_a_killed_consumers_item_goes_to_the_next_with_its_attempts(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [killed, other]:
            queue = recipe(Queue)(other, path)
            item_id = await queue.put(b"item")
            losing = Losing(recipe(Queue)(killed, path))
            first = await losing.item
            await expire(service, killed)
            async with queue.take() as later:
                assert (later.id, later.attempts) == (item_id, 2)
                assert later.token > first.token
                assert later.is_held
            with pytest.raises(GrantLostError):
                await losing.task
            assert await queue.size() == 0

    run(scenario)


class Losing:
    """A consumer that takes an item, and holds it until it is lost."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self.item: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.task = asyncio.ensure_future(self._lose())

    async def _lose(self) -> None:
        async with self._queue.take() as item:
            self.item.set_result(item)
            await until(lambda: self._is_lost(item))

    async def _is_lost(self, item: Any) -> bool:
        return not item.is_held


def test_who_has_lost_an_item_can_neither_acknowledge_it_nor_write_under_it(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [slow, other]:
            queue = recipe(Queue)(other, path)
            await queue.put(b"item")
            await other.create(f"{path}-result")
            losing = Losing(recipe(Queue)(slow, path))
            item = await losing.item
            late = item.guard().set(f"{path}-result", b"too late")
            # Another client believes that the consumer hangs.
            await other.delete(f"{path}/taken/{item.id}")
            async with queue.take() as later:
                async with later.guard() as transaction:
                    transaction.set(f"{path}-result", b"in time")
                with pytest.raises(TransactionFailedError):
                    await late.commit()
                with pytest.raises(GrantLostError):
                    await losing.task
                with pytest.raises(GrantLostError):
                    item.guard()
                assert later.is_held
                assert await queue.size() == 1
            assert await queue.size() == 0
            assert (await other.get(f"{path}-result")).data == b"in time"

    run(scenario)


def test_a_cancelled_consumer_gives_its_item_back(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            queue = recipe(Queue)(client, path)
            await queue.put(b"item")
            has_it = asyncio.Event()

            async def hold() -> None:
                async with queue.take():
                    has_it.set()
                    await asyncio.Event().wait()

            holding = asyncio.ensure_future(hold())
            await has_it.wait()
            holding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await holding
            assert await take(queue) == b"item"

    run(scenario)


def test_a_cancelled_waiter_leaves_the_line(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            queue = recipe(Queue)(client, path)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await take(queue)
            await until(lambda: stand_in_line(client, path, 0))
            await queue.put(b"item")
            assert await take(queue) == b"item"

    run(scenario)


def test_a_waiter_whose_session_expires_is_told(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [waiter, other]:
            waiting = asyncio.ensure_future(take(recipe(Queue)(waiter, path)))
            await until(lambda: stand_in_line(other, path, 1))
            await expire(service, waiter)
            with pytest.raises(SessionExpiredError):
                await waiting
            with pytest.raises(SessionExpiredError):
                await recipe(Queue)(waiter, path).put(b"item")

    run(scenario)


def test_strangers_in_a_queue_are_of_no_matter(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            queue = recipe(Queue)(client, path)
            for name in ("stranger", "item-", "item-1-0000000001", "element0000000002"):
                await client.create(f"{path}/entries/{name}", b"x", make_parents=True)
            await queue.put(b"item")
            assert await queue.size() == 1
            assert await take(queue) == b"item"
            assert await queue.items() == []

    run(scenario)


def test_nothing_of_what_was_used_is_left(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            queue = recipe(Queue)(client, path)
            await asyncio.gather(*(queue.put(b"%d" % number) for number in range(120)))
            for _ in range(3):
                await take(queue)

            async def is_swept() -> bool:
                try:
                    receipts = await client.children(f"{path}/receipts")
                    return receipts + await client.children(f"{path}/taken") == []
                except NoNodeError:
                    # The service has removed what is empty.
                    return True

            await until(is_swept)

    run(scenario)


def test_bad_arguments_are_named(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for settings, text in (
                ({"path": "no slash"}, "path: "),
                ({"path": path, "attempts_max": 0}, "attempts_max: "),
                ({"path": path, "acl": []}, "acl: "),
            ):
                with pytest.raises(InvalidArgumentError, match=text):
                    recipe(Queue)(client, **settings)
            queue = recipe(Queue)(client, path)
            for how, text in (
                ({"data": "text"}, "data: "),
                ({"data": None}, "data: "),
                ({"data": b"x" * 1_000_001}, "data: an item has 0 to 1000000 bytes"),
                ({"data": b"", "priority": 1.5}, "priority: "),
                ({"data": b"", "priority": 2**31}, "priority: "),
                ({"data": b"", "priority": True}, "priority: "),
                ({"data": b"", "delay": -1}, "delay: "),
                ({"data": b"", "delay": float("inf")}, "delay: "),
            ):
                with pytest.raises(InvalidArgumentError, match=text):
                    await queue.put(**how)

    run(scenario)


def test_the_largest_item_can_be_taken_and_can_die(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            queue = recipe(Queue)(client, path, attempts_max=1)
            await queue.put(b"x" * 1_000_000)
            await fail(queue)
            async with queue.try_take() as item:
                assert item is None
            [letter] = await queue.dead_letters()
            assert len(letter.data) == 1_000_000

    run(scenario)
