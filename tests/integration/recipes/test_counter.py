"""Counters: every addition counts, once."""

from __future__ import annotations

import asyncio

import pytest

from paddock.client.client import Client
from paddock.errors import InvalidArgumentError, InvalidValueError
from paddock.recipes import Counter
from tests.support.apis import recipe
from tests.support.recipes import clients, run
from tests.support.server import Service


@pytest.mark.everywhere
def test_many_add_at_the_same_time_and_every_sum_comes_once(service: Service, path: str) -> None:
    async def scenario() -> None:
        sums: list[int] = []

        async def add(client: Client) -> None:
            counter = recipe(Counter)(client, path)
            sums.extend([await counter.add() for _ in range(5)])

        async with clients(service, 8) as all_of_them:
            await asyncio.gather(*(add(client) for client in all_of_them))
            assert sorted(sums) == [*range(1, 41)]
            assert await recipe(Counter)(all_of_them[0], path).add(0) == 40

    run(scenario)


def test_it_goes_up_and_down_from_its_initial_number(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            counter = recipe(Counter)(client, f"{path}/counter", initial=10)
            assert await counter.get() == 10
            assert await counter.add(2**70) == 2**70 + 10
            assert await counter.subtract(2**70) == 10
            assert await counter.subtract(11) == -1
            assert await counter.subtract() == -2
            assert await counter.get() == -2
            await counter.set(7)
            assert await counter.get() == 7
            assert counter.path == f"{path}/counter"

    run(scenario)


def test_the_number_is_text_that_others_can_read_and_write(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path)
            counter = recipe(Counter)(client, path, initial=3)
            assert await counter.get() == 3
            await client.set(path, b"41")
            assert await counter.add() == 42
            assert (await client.get(path)).data == b"42"

    run(scenario)


def test_what_is_no_number_is_told_and_left_alone(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path, b"forty-two")
            counter = recipe(Counter)(client, path)
            with pytest.raises(InvalidValueError, match="b'forty-two' is no number"):
                await counter.get()
            with pytest.raises(InvalidValueError, match=path):
                await counter.add()
            assert (await client.get(path)).data == b"forty-two"

    run(scenario)


def test_changes_begin_with_the_present_number_and_end_with_the_last(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            counter = recipe(Counter)(client, path, initial=1)
            seen = []
            async for number in counter.changes():
                seen.append(number)
                if number == 3:
                    break
                await counter.add()
            assert seen == [1, 2, 3]

    run(scenario)


def test_bad_arguments_are_named(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            with pytest.raises(InvalidArgumentError, match="path: "):
                recipe(Counter)(client, "no slash")
            with pytest.raises(InvalidArgumentError, match=r"initial: 1\.5 is no whole number"):
                recipe(Counter)(client, path, initial=1.5)
            counter = recipe(Counter)(client, path)
            with pytest.raises(InvalidArgumentError, match="amount: True"):
                await counter.add(True)
            with pytest.raises(InvalidArgumentError, match="amount: '1'"):
                await counter.subtract("1")  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError, match="number: None"):
                await counter.set(None)  # type: ignore[arg-type]

    run(scenario)
