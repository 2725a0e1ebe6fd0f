"""A node that is kept in existence: it comes back, and when it is closed it does not."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from paddock.client.client import Client
from paddock.errors import (
    InvalidArgumentError,
    NoNodeError,
    RecipeClosedError,
    RecipeError,
    SessionExpiredError,
    UsageError,
)
from paddock.recipes import PersistentNode
from tests.support.apis import recipe
from tests.support.recipes import clients, expire, run, until
from tests.support.server import Service


async def says(client: Client, path: str, data: bytes | None) -> bool:
    """Tell whether a node has this data; None for a node that is not there."""
    # Others may be clients of other servers, which are ahead.
    await client.sync()
    try:
        return (await client.get(path)).data == data
    except NoNodeError:
        return data is None


async def owner_of(client: Client, path: str) -> int:
    await client.sync()
    return (await client.get(path)).stat.ephemeral_owner


@pytest.mark.everywhere
def test_it_is_there_in_its_scope_and_made_again_when_it_is_deleted(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            node = recipe(PersistentNode)(client, f"{path}/node", b"here")
            async with node:
                assert node.is_there
                assert node.path == f"{path}/node"
                for _ in range(3):
                    assert await says(other, f"{path}/node", b"here")
                    assert await owner_of(other, f"{path}/node") == client.session_id
                    await other.delete(f"{path}/node")
                    await until(partial(says, other, f"{path}/node", b"here"))
            assert await says(other, f"{path}/node", None)
            assert not node.is_there

    run(scenario)


@pytest.mark.everywhere
@pytest.mark.parametrize("recreate", [True, False])
def test_it_is_made_again_after_an_expired_session(
    service: Service, path: str, recreate: bool
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            async with recipe(PersistentNode)(
                client, f"{path}/node", b"one", recreate=recreate
            ) as node:
                first = await owner_of(other, f"{path}/node")
                await expire(service, client)
                await until(partial(says, other, f"{path}/node", b"one"))
                assert await owner_of(other, f"{path}/node") not in (0, first)
                await node.set_data(b"two")
                assert await says(other, f"{path}/node", b"two")
            assert await says(other, f"{path}/node", None)

    run(scenario)


def test_what_is_not_to_be_made_again_stays_gone_when_it_was_deleted(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            async with recipe(PersistentNode)(client, f"{path}/node", recreate=False) as node:
                await other.delete(f"{path}/node")
                await node.wait_over()
                assert not node.is_there
                for attempt in (node.wait_there(), node.set_data(b"more")):
                    with pytest.raises(RecipeError, match="it was deleted, and is not re-created"):
                        await attempt
                # Not even after its session.
                await expire(service, client)
                assert await says(other, f"{path}/node", None)
                # What comes then is another's, and stays.
                await other.create(f"{path}/node", b"another's", make_parents=True)
            assert await says(other, f"{path}/node", b"another's")

    run(scenario)


def test_what_comes_after_a_delete_for_good_is_left_alone(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            async with recipe(PersistentNode)(client, f"{path}/node", recreate=False) as node:
                await client.delete(f"{path}/node")
                await node.wait_over()
                # Of the same session, and yet nothing that was ever kept here.
                await client.create(f"{path}/node", b"later", ephemeral=True, make_parents=True)
            assert await says(client, f"{path}/node", b"later")

    run(scenario)


def test_an_ephemeral_of_an_older_session_is_waited_for(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [older, client, other]:
            await older.create(f"{path}/node", b"same", ephemeral=True, make_parents=True)
            node = recipe(PersistentNode)(client, f"{path}/node", b"same")
            node.start()
            with pytest.raises(UsageError, match="was started before"):
                node.start()
            waiting = asyncio.ensure_future(node.wait_there())
            # That it was looked at is not to be seen from outside; that nothing came of it is.
            await client.sync()
            assert not node.is_there
            assert await owner_of(other, f"{path}/node") == older.session_id
            await older.close()
            await waiting
            assert await owner_of(other, f"{path}/node") == client.session_id
            await node.close()

    run(scenario)


def test_a_node_that_is_not_ephemeral_is_kept_whoever_made_it(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            await other.create(path, b"before")
            async with recipe(PersistentNode)(client, path, b"ours", ephemeral=False):
                await until(partial(says, other, path, b"ours"))
                assert await owner_of(other, path) == 0
                await other.delete(path)
                await until(partial(says, other, path, b"ours"))
                await expire(service, client)
                await other.delete(path)
                await until(partial(says, other, path, b"ours"))
            assert await says(other, path, None)

    run(scenario)


def test_what_it_says_can_be_changed_and_stays_so(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            async with recipe(PersistentNode)(client, f"{path}/node", b"1") as node:
                await node.set_data(b"2")
                assert await says(other, f"{path}/node", b"2")
                await other.set(f"{path}/node", b"by another")
                assert await says(other, f"{path}/node", b"by another")
                await other.delete(f"{path}/node")
                await until(partial(says, other, f"{path}/node", b"2"))
                with pytest.raises(InvalidArgumentError, match="data: "):
                    await node.set_data("text")  # type: ignore[arg-type]

    run(scenario)


def test_a_node_that_is_closed_stays_closed(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            node = recipe(PersistentNode)(client, f"{path}/node")
            with pytest.raises(UsageError, match="was not started"):
                await node.wait_there()
            async with node:
                pass
            await node.close()
            await node.wait_over()
            with pytest.raises(RecipeClosedError, match="was closed"):
                node.start()
            with pytest.raises(RecipeClosedError):
                await node.set_data(b"late")
            unused = recipe(PersistentNode)(client, f"{path}/node")
            await unused.close()
            with pytest.raises(RecipeClosedError):
                unused.start()
            assert await says(client, f"{path}/node", None)

    run(scenario)


def test_it_ends_with_the_client_also_after_an_expired_session(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [other]:
            async with clients(service, 1) as [client]:
                node = recipe(PersistentNode)(client, f"{path}/node")
                node.start()
                await node.wait_there()
                await expire(service, client)
                await until(partial(is_owned_by_another, other, f"{path}/node", client.session_id))
            assert await says(other, f"{path}/node", None)

    run(scenario)


async def is_owned_by_another(client: Client, path: str, session_id: int) -> bool:
    try:
        return await owner_of(client, path) != session_id
    except NoNodeError:
        return False


def test_a_closed_client_is_told_of(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            node = recipe(PersistentNode)(client, f"{path}/node")
            node.start()
            await node.wait_there()
            await client.close()
            with pytest.raises(SessionExpiredError):
                await node.wait_there()

    run(scenario)


def test_bad_arguments_are_named(service: Service) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for named, text in (
                ({"path": "no slash"}, "path: "),
                ({"path": "/a", "data": "text"}, "data: "),
                ({"path": "/a", "acl": []}, "acl: "),
                ({"path": "/a", "ephemeral": 1}, "ephemeral: "),
                ({"path": "/a", "recreate": None}, "recreate: "),
            ):
                with pytest.raises(InvalidArgumentError, match=text):
                    recipe(PersistentNode)(client, **named)

    run(scenario)
