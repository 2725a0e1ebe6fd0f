"""Names that resolve, and numbers that nobody has twice."""

from __future__ import annotations

import asyncio

import pytest

from paddock.client.client import Client
from paddock.errors import InvalidArgumentError, NodeExistsError, NotEmptyError
from paddock.recipes import Naming
from tests.support.apis import recipe
from tests.support.recipes import clients, run
from tests.support.server import Service


@pytest.mark.everywhere
def test_a_name_is_bound_by_one_at_a_time(service: Service, path: str) -> None:
    async def scenario() -> None:
        async def bind(client: Client, data: bytes) -> bool:
            try:
                await recipe(Naming)(client, path).bind("printer", data)
            except NodeExistsError:
                return False
            return True

        async with clients(service, 3) as all_of_them:
            data = (b"one", b"two", b"three")
            bound = await asyncio.gather(
                *(bind(*pair) for pair in zip(all_of_them, data, strict=True))
            )
            assert sum(bound) == 1
            naming = recipe(Naming)(all_of_them[0], path)
            await all_of_them[0].sync()
            assert await naming.resolve("printer") == data[bound.index(True)]
            await naming.unbind("printer")
            assert await naming.resolve("printer") is None
            assert await bind(all_of_them[1], b"again")
            with pytest.raises(NodeExistsError, match="bound already"):
                await naming.bind("printer", b"once more")

    run(scenario)


def test_names_are_bound_anew_and_listed_and_unbound(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            naming = recipe(Naming)(client, path)
            assert await naming.names() == []
            await naming.rebind("b", b"1")
            await naming.rebind("b", b"2")
            await naming.bind("a", b"3")
            assert await naming.names() == ["a", "b"]
            assert await naming.resolve("b") == b"2"
            await naming.unbind("b")
            await naming.unbind("b")
            assert await naming.names() == ["a"]
            assert naming.base == path

    run(scenario)


def test_a_name_is_watched(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            naming = recipe(Naming)(one, path)
            seen = []
            async for data in recipe(Naming)(two, path).watch("printer"):
                seen.append(data)
                if len(seen) == 1:
                    await naming.bind("printer", b"there")
                elif len(seen) == 2:
                    await naming.unbind("printer")
                else:
                    break
            assert seen == [None, b"there", None]

    run(scenario)


def test_a_name_with_something_of_others_below_it_is_not_unbound(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            naming = recipe(Naming)(client, path)
            await naming.bind("printer", b"there")
            await client.create(f"{path}/names/printer/stranger")
            with pytest.raises(NotEmptyError, match="unbind"):
                await naming.unbind("printer")
            assert await naming.resolve("printer") == b"there"

    run(scenario)


@pytest.mark.everywhere
def test_numbers_grow_and_nobody_has_one_twice(service: Service, path: str) -> None:
    async def scenario() -> None:
        async def take(client: Client) -> list[int]:
            naming = recipe(Naming)(client, path)
            return [await naming.new_id() for _ in range(10)]

        async with clients(service, 4) as all_of_them:
            taken = await asyncio.gather(*(take(client) for client in all_of_them))
            for numbers in taken:
                assert numbers == sorted(numbers)
            assert sorted(number for numbers in taken for number in numbers) == [*range(1, 41)]

    run(scenario)


def test_bad_arguments_are_named(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            with pytest.raises(InvalidArgumentError, match="path: "):
                recipe(Naming)(client, "no slash")
            naming = recipe(Naming)(client, path)
            for bad in ("", "a/b", None):
                with pytest.raises(InvalidArgumentError, match="name: "):
                    await naming.resolve(bad)  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError, match="data: "):
                await naming.bind("a", "text")  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError, match="data: "):
                await naming.rebind("a", None)  # type: ignore[arg-type]

    run(scenario)
