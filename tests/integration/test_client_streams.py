"""Watch streams: the present, then every newer state, over lost connections, to the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from paddock.client.access import Permission, world_acl
from paddock.client.client import Client
from paddock.client.operations.streams import Change
from paddock.errors import InvalidArgumentError, NoAuthError, SessionExpiredError
from paddock.testing import expire_session
from tests.integration.test_client import DEADLINE_S, client_of, path, run, server
from tests.support.apis import api, asyncio_only, lose_connection
from tests.support.server import Service

__all__ = ["api", "path", "server"]


async def until(stream: AsyncIterator[Change], data: bytes | None) -> list[bytes | None]:
    """Take changes until one has this data; give the data of all."""
    seen = []
    async for change in stream:
        seen.append(change.data)
        if change.data == data:
            return seen
    raise AssertionError("the stream has ended")


def test_a_stream_begins_with_the_present_and_ends_up_at_the_last_state(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        stream = client.watch(path)
        assert await anext(stream) == (path, None, None)
        await client.create(path, b"0")
        assert (await anext(stream)).data == b"0"
        for number in range(1, 50):
            await client.set(path, b"%d" % number)
        seen = await until(stream, b"49")
        assert len(seen) == len(set(seen))
        await client.delete(path)
        await client.create(path, b"49")
        await until(stream, b"49")
        await client.delete(path)
        await until(stream, None)

    run(server, scenario)


def test_a_recursive_stream_begins_with_a_node_that_is_not_there(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        stream = client.watch(path, recursive=True)
        assert await anext(stream) == (path, None, None)
        await client.create(f"{path}/below", b"1", make_parents=True)
        seen = {change.path: change.data for change in [await anext(stream), await anext(stream)]}
        assert seen == {path: b"", f"{path}/below": b"1"}
        await client.delete_tree(path)
        gone = [await anext(stream), await anext(stream)]
        assert {change.path for change in gone} == {path, f"{path}/below"}
        assert all(change.stat is None for change in gone)

    run(server, scenario)


def test_a_stream_goes_on_over_lost_connections(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        async with client_of(server) as other:
            await other.create(path, b"0")
            stream = client.watch(path)
            await until(stream, b"0")
            for number in range(1, 6):
                lose_connection(client)
                await other.set(path, b"%d" % number)
                await until(stream, b"%d" % number)

    run(server, scenario)


@pytest.mark.parametrize("loses", [False, True], ids=["connected", "over lost connections"])
def test_a_recursive_stream_ends_up_with_the_whole_tree(
    server: Service, path: str, loses: bool
) -> None:
    async def scenario(client: Client) -> None:
        tree: dict[str, bytes] = {}
        expected = {
            path: b"",
            f"{path}/before": b"",
            f"{path}/a": b"2",
            f"{path}/z": b"end",
        }
        for number in range(40):
            if number % 3:
                data = b"changed" if number % 3 == 1 else b"%d" % number
                expected[f"{path}/a/{number}"] = data

        async def follow() -> None:
            async for change in client.watch(path, recursive=True):
                if change.data is None:
                    tree.pop(change.path, None)
                else:
                    tree[change.path] = change.data
                if tree == expected:
                    return

        async with client_of(server) as other:
            await other.create(f"{path}/before/deep", b"1", make_parents=True)
            following = asyncio.create_task(follow())
            await other.create(f"{path}/a", b"2")
            for number in range(40):
                is_lost = loses and number % 10 == 5
                if is_lost:
                    # Of what happens now nobody tells us.
                    lose_connection(client)
                await other.create(f"{path}/a/{number}", b"%d" % number)
                if number % 3 == 0:
                    await other.delete(f"{path}/a/{number}")
                if number % 3 == 1:
                    await other.set(f"{path}/a/{number}", b"changed")
                if is_lost:
                    await client.sync()
            await other.delete(f"{path}/before/deep")
            await other.create(f"{path}/z", b"end")
            await following

    run(server, scenario)


@pytest.mark.parametrize("recursive", [False, True])
def test_a_stream_ends_with_the_session(server: Service, path: str, recursive: bool) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), client_of(server) as client:
            stream = client.watch("/", recursive=recursive)
            await anext(stream)
            await expire_session(server.address, client.session_id, client.session_password)
            with pytest.raises(SessionExpiredError):
                async for _ in stream:
                    pass

    asyncio.run(main())


def test_a_stream_that_is_left_leaves_no_watcher_behind(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        for recursive in (False, True):
            stream = client.watch("/", recursive=recursive)
            await anext(stream)
            await stream.aclose()
        assert client._session.watches.everybody() == []

    run(server, scenario)


@asyncio_only
def test_a_stream_can_be_closed_where_its_scope_ends(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        # Its type says that it can.
        async with contextlib.aclosing(client.watch(path)) as stream:
            assert (await anext(stream)).data is None
        assert client._session.watches.everybody() == []

    run(server, scenario)


def test_a_wrong_path_is_told_at_once(server: Service) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(InvalidArgumentError):
            client.watch("relative")

    run(server, scenario)


def test_a_recursive_stream_leaves_out_what_we_may_not_read(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        hidden = [world_acl(Permission.ALL & ~Permission.READ)]
        await client.create(path)
        await client.create(f"{path}/hidden", acl=hidden)
        await client.create(f"{path}/hidden/below")
        await client.create(f"{path}/open")
        stream = client.watch(path, recursive=True)
        assert [(await anext(stream)).path for _ in range(2)] == [path, f"{path}/open"]
        # Also when everything is read again.
        lose_connection(client)
        await client.set(f"{path}/hidden", b"1")
        await client.set(f"{path}/open", b"1")
        assert (await anext(stream)).path == f"{path}/open"
        with pytest.raises(NoAuthError, match=f"{path}/hidden"):
            await anext(client.watch(f"{path}/hidden", recursive=True))

    run(server, scenario)
