"""Trees read from a service: all of them, in order, with few nodes held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product

import pytest

import paddock
from paddock.cli.transfer.node import Node, TransferError, order_of
from paddock.cli.transfer.tree_reader import ReadOptions, TreeReader, watched
from paddock.client.client import Client
from paddock.client.operations import walk as walking
from paddock.errors import NoNodeError
from paddock.protocol.acl import ACL, ALL, OPEN, READ, READ_ONLY, Identity, digest_id
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.support.trees import make, node, walked

ALICE = ACL(ALL, Identity("digest", digest_id("alice:secret")))


@asynccontextmanager
async def alice_and_a_stranger() -> AsyncIterator[tuple[Client, Client]]:
    async with (
        EmbeddedServer() as server,
        paddock.connect(server.hosts) as client,
        paddock.connect(server.hosts) as stranger,
    ):
        await client.add_auth("digest", b"alice:secret")
        yield client, stranger


@asynccontextmanager
async def behind_a_proxy() -> AsyncIterator[tuple[FaultProxy, Client, Client]]:
    """Yield the proxy, a client behind it, and a client that bypasses it."""
    async with (
        EmbeddedServer() as server,
        FaultProxy(server.address) as proxy,
        paddock.connect(proxy.hosts) as client,
        paddock.connect(server.hosts) as other,
    ):
        yield proxy, client, other


async def paths_of(client: Client, root: str) -> list[str]:
    return [one.path for one in await walked(client, root)]


def test_a_node_comes_before_its_children_and_these_by_their_names() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            for path in ("/app/b", "/app/a/y/deep", "/app/a/x", "/app/a-b", "/other"):
                await client.create(path, path.encode(), make_parents=True)
            found = await walked(client, "/app")
            assert found == [
                node("/"),
                node("/a"),
                node("/a/x", b"/app/a/x"),
                node("/a/y"),
                node("/a/y/deep", b"/app/a/y/deep"),
                node("/a-b", b"/app/a-b"),
                node("/b", b"/app/b"),
            ]

    run_virtually(main())


def test_what_the_service_keeps_for_itself_is_left_out_unless_asked_for() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            await client.create("/app")
            await client.create("/app/zookeeper")
            assert await paths_of(client, "/") == ["/", "/app", "/app/zookeeper"]
            assert "/quota" in await paths_of(client, "/zookeeper")

    run_virtually(main())


def test_whatever_there_is_room_for_the_order_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ["/", "/a", "/a/a", "/a/a/a", "/a/b", "/b", "/c", "/c/a", "/c/b", "/c/b/a", "/d"]
    whole = [node("/"), *(node(path, path.encode()) for path in paths[1:])]

    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            await client.create("/app")
            for path in paths[1:]:
                await client.create(f"/app{path}", path.encode())
            for window, bytes_max, children_max in product((2, 3, 7, 500), (0, 5), (0, 3, 9)):
                monkeypatch.setattr(walking, "WINDOW", window)
                monkeypatch.setattr(walking, "DATA_BYTES_MAX", bytes_max)
                monkeypatch.setattr(walking, "NAMES_MAX", children_max)
                assert await walked(client, "/app") == whole
                # And behind each of them it goes on with the next.
                for number, path in enumerate(paths):
                    walk = TreeReader(client, "/app", ReadOptions())
                    rest = [one async for one in walk.nodes(after=path)]
                    assert rest == whole[number + 1 :]

    run_virtually(main())


def test_a_walk_that_goes_on_behind_a_node_that_is_gone_goes_on_behind_its_place() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            for name in ("a", "c", "c/x", "e"):
                await client.create(f"/app/{name}", make_parents=True)
            for gone in ("/b", "/b/deep", "/c/w/deep"):
                walk = TreeReader(client, "/app", ReadOptions())
                rest = [one.path async for one in walk.nodes(after=gone)]
                assert rest == [
                    path for path in ("/c", "/c/x", "/e") if order_of(path) > order_of(gone)
                ]

    run_virtually(main())


def test_data_that_are_large_are_not_held_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "DATA_BYTES_MAX", 250_000)

    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with paddock.connect(proxy.hosts) as client:
                await client.create("/app")
                await make(client, "/app", [f"n{number}" for number in range(20)], bytes(100_000))
                given, ahead = 0, []
                async for one in TreeReader(client, "/app", ReadOptions()).nodes():
                    asked = sum(request.name == "get" for request in proxy.requests)
                    # Two of them have room, and the next one is always asked for.
                    ahead.append(asked - given)
                    given += one.path != "/"
                assert max(ahead) <= 3
                # There is room again when nodes have left.
                assert max(ahead[10:]) > 1
                # None was asked for twice.
                assert asked == given == 20

    run_virtually(main())


def test_ephemeral_nodes_are_left_out_and_counted_or_kept() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            await client.create("/app/a", make_parents=True)
            await client.create("/app/worker", b"alive", ephemeral=True)
            walk = TreeReader(client, "/app", ReadOptions())
            assert [one.path async for one in walk.nodes()] == ["/", "/a"]
            assert walk.left_out.ephemeral == 1
            kept = await walked(client, "/app", ReadOptions(keeps_ephemerals=True))
            assert kept[-1] == node("/worker", b"alive")
            with pytest.raises(TransferError, match="/app/worker: is ephemeral"):
                await walked(client, "/app/worker")

    run_virtually(main())


def test_what_we_may_not_read_is_an_error_that_names_it_or_left_out() -> None:
    async def main() -> None:
        async with alice_and_a_stranger() as (client, stranger):
            await client.create("/app/a", make_parents=True)
            await client.create("/app/secret", acl=[ALICE])
            await client.create("/app/secret/below")
            await client.create("/app/z", acl=[ALICE, *READ_ONLY])
            with pytest.raises(TransferError, match=r"^/app/secret: we may not read it; --auth"):
                await walked(stranger, "/app")
            # Without ADMIN on the node its digest is hidden, and would come back as "x".
            with pytest.raises(TransferError, match=r"^/app/z: the digests of its ACL are hidden"):
                await walked(stranger, "/app/z")
            walk = TreeReader(stranger, "/app", ReadOptions(skips_unreadable=True))
            assert [one.path async for one in walk.nodes()] == ["/", "/a"]
            assert walk.left_out.unreadable == 2
            with pytest.raises(TransferError, match=r"^/app/secret: we may not read it"):
                await walked(stranger, "/app/secret", ReadOptions(skips_unreadable=True))
            whole = await walked(client, "/app")
            assert [one.path for one in whole] == ["/", "/a", "/secret", "/secret/below", "/z"]
            assert whole[2].acl == (ALICE,)

    run_virtually(main())


def test_without_acls_they_are_not_even_asked_for() -> None:
    async def main() -> None:
        async with alice_and_a_stranger() as (client, stranger):
            await client.create("/app", b"blue", acl=[ALICE, *READ_ONLY])
            found = await walked(stranger, "/app", ReadOptions(acls=False))
            assert found == [Node("/", b"blue", None)]

    run_virtually(main())


def test_a_tree_that_is_not_there_is_an_error() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            for options in (ReadOptions(), ReadOptions(acls=False)):
                with pytest.raises(NoNodeError, match="export /app: no such node"):
                    await walked(client, "/app", options)

    run_virtually(main())


@pytest.mark.parametrize("operation", ["get_acl", "get", "get_children"])
def test_a_node_that_goes_meanwhile_is_left_out_with_its_subtree(operation: str) -> None:
    async def main() -> None:
        async with behind_a_proxy() as (proxy, client, other):
            await client.create("/app/b/below", b"x", make_parents=True)
            await client.set("/app/b", b"data")
            await client.create("/app/c")
            held = proxy.when(operation=operation, path="/app/b").blackhole()

            async def remove() -> None:
                await held.happened()
                await other.delete_tree("/app/b")
                # What was asked for arrives now.
                proxy.heal()

            removing = asyncio.create_task(remove())
            walk = TreeReader(client, "/app", ReadOptions())
            assert [one.path async for one in walk.nodes()] == ["/", "/c"]
            await removing
            assert walk.left_out.vanished >= 1

    run_virtually(main())


def test_what_is_below_a_node_that_was_gone_for_a_moment_does_not_stand_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The data of a node are asked for when it is its turn, and no sooner.
    monkeypatch.setattr(walking, "DATA_BYTES_MAX", 0)

    async def main() -> None:
        async with behind_a_proxy() as (proxy, client, other):
            for name in ("a", "b", "b/below", "c"):
                await client.create(f"/app/{name}", b"data", make_parents=True)

            async def meddle() -> None:
                await proxy.when(operation="get", path="/app/b").blackhole().happened()
                await other.delete_tree("/app/b")
                proxy.heal()
                await proxy.when(operation="get", path="/app/b/below").blackhole().happened()
                await other.create("/app/b/below", make_parents=True)
                proxy.heal()

            meddling = asyncio.create_task(meddle())
            # It is armed before we begin.
            await client.sync()
            assert await paths_of(client, "/app") == ["/", "/a", "/c"]
            meddling.cancel()

    run_virtually(main())


def test_small_nodes_are_listed_ahead_of_their_turn() -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            paddock.connect(proxy.hosts) as client,
        ):
            for number in range(50):
                await client.create(f"/app/{number:02}/below", make_parents=True)
            before = len(proxy.requests)
            async for one in TreeReader(client, "/app", ReadOptions()).nodes():
                if one.path == "/00":
                    asked = [request.name for request in proxy.requests[before:]]
                    # The root and all of its children.
                    assert asked.count("get_children") == 51

    run_virtually(main())


def test_that_a_tree_was_changed_while_it_was_read_is_told() -> None:
    async def main() -> None:
        async with behind_a_proxy() as (proxy, client, other):
            await client.create("/app/a", make_parents=True)
            async with watched(client, "/app") as changes:
                await walked(client, "/app")
                await client.sync()
            assert changes.say("/app", was_interrupted=False) == ""
            assert "is not known" in changes.say("/app", was_interrupted=True)
            async with watched(client, "/app") as changes:
                await walked(client, "/app")
                # Behind our back: it was read before.
                await other.set("/app/a", b"new")
                await other.create("/app/b")
                await client.sync()
            assert changes.say("/app", was_interrupted=False).startswith(
                "/app was changed 2 times while it was read, first at /app/a:"
            )
            async with watched(client, "/app") as changes:
                proxy.cut()
                await walked(client, "/app")
            assert "is not known" in changes.say("/app", was_interrupted=False)

    run_virtually(main())


def test_the_acl_comes_with_the_node() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            await client.create("/app", acl=[ACL(READ, Identity("ip", "127.0.0.1")), *OPEN])
            (found,) = await walked(client, "/app")
            assert found.acl is not None
            assert set(found.acl) == {ACL(READ, Identity("ip", "127.0.0.1")), *OPEN}

    run_virtually(main())
