"""Shared values: nobody's update is lost, and what is stored is what was given."""

from __future__ import annotations

import asyncio

import pytest

from paddock.client.client import Client
from paddock.errors import InvalidArgumentError, NoAuthError, SessionExpiredError
from paddock.protocol.acl import READ_ONLY
from paddock.recipes import SharedValue
from tests.support.apis import recipe
from tests.support.recipes import clients, run, until
from tests.support.server import Service


@pytest.mark.everywhere
def test_updates_at_the_same_time_all_count(service: Service, path: str) -> None:
    async def scenario() -> None:
        async def append(client: Client, letter: bytes) -> None:
            value = recipe(SharedValue)(client, path)
            for _ in range(4):
                await value.update(lambda data: (data or b"") + letter)

        async with clients(service, 4) as all_of_them:
            letters = (b"a", b"b", b"c", b"d")
            await asyncio.gather(
                *(append(*pair) for pair in zip(all_of_them, letters, strict=True))
            )
            await all_of_them[0].sync()
            found = await recipe(SharedValue)(all_of_them[0], path).get()
            assert found is not None
            assert sorted(found) == sorted(b"aaaabbbbccccdddd")
            await until(lambda: _has_no_children(all_of_them[0], path))

    run(scenario)


async def _has_no_children(client: Client, path: str) -> bool:
    return await client.children(path) == []


def test_a_value_that_is_not_there_is_none_until_it_is_set(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            value = recipe(SharedValue)(client, f"{path}/deep/below")
            assert await value.get() is None
            await value.set(b"first")
            assert await value.get() == b"first"
            await value.set(b"")
            assert await value.get() == b""
            assert value.path == f"{path}/deep/below"

    run(scenario)


def test_a_value_is_plain_data_to_everybody_else(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path, b"by somebody else")
            value = recipe(SharedValue)(client, path)
            assert await value.update(lambda data: b"more, " + (data or b"")) == (
                b"more, by somebody else"
            )
            assert (await client.get(path)).data == b"more, by somebody else"

    run(scenario)


def test_a_value_is_replaced_only_if_it_is_the_expected_one(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            value = recipe(SharedValue)(client, path)
            assert not await value.compare_and_set(b"old", b"new")
            assert await value.compare_and_set(None, b"old")
            assert not await value.compare_and_set(None, b"new")
            assert await value.compare_and_set(b"old", b"new")
            assert await value.get() == b"new"

    run(scenario)


def test_what_an_update_raises_leaves_everything_as_it_was(service: Service, path: str) -> None:
    async def scenario() -> None:
        def refuse(data: bytes | None) -> bytes:
            raise ValueError("not today")

        async with clients(service, 1) as [client]:
            value = recipe(SharedValue)(client, path)
            await value.set(b"as it was")
            with pytest.raises(ValueError, match="not today"):
                await value.update(refuse)
            assert await value.get() == b"as it was"
            assert (await client.get(path)).stat.version == 0

    run(scenario)


def test_changes_begin_with_the_present_value_and_end_with_the_last(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            value = recipe(SharedValue)(one, path)
            seen = []
            async for data in recipe(SharedValue)(two, path).changes():
                seen.append(data)
                if data == b"last":
                    break
                await value.set(b"first" if data is None else b"last")
            assert seen == [None, b"first", b"last"]

    run(scenario)


def test_who_may_not_write_is_told(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path, b"fixed", acl=READ_ONLY)
            value = recipe(SharedValue)(client, path)
            with pytest.raises(NoAuthError, match=path):
                await value.set(b"changed")
            assert await value.get() == b"fixed"

    run(scenario)


def test_nothing_is_written_after_the_client_is_closed(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            value = recipe(SharedValue)(client, path)
            await value.set(b"before")
        with pytest.raises(SessionExpiredError):
            await value.set(b"after")

    run(scenario)


def test_bad_arguments_are_named(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            with pytest.raises(InvalidArgumentError, match="path: "):
                recipe(SharedValue)(client, "no slash")
            with pytest.raises(InvalidArgumentError, match="acl: "):
                recipe(SharedValue)(client, path, acl=[])
            value = recipe(SharedValue)(client, path)
            with pytest.raises(InvalidArgumentError, match="data: expected bytes, not str"):
                await value.set("text")  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError, match="data: expected bytes, not NoneType"):
                await value.compare_and_set(None, None)  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError, match="function: expected bytes"):
                await value.update(lambda data: None)  # type: ignore[arg-type,return-value]

    run(scenario)
