"""`Client.walk` on a live service, from asyncio and from blocking code."""

from __future__ import annotations

import pytest

import paddock
from paddock import sync
from paddock.errors import NoNodeError
from paddock.testing import EmbeddedServer, ServerThread, run_virtually

PATHS = ["/app", "/app/a", "/app/a/y", "/app/a-b", "/app/b"]


def test_a_tree_comes_in_order_with_data_and_acls() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            for path in PATHS:
                await client.create(path, path.encode())
            found = [node async for node in client.walk("/app", data=True, acl=True)]
            assert [node.path for node in found] == PATHS
            assert [node.data for node in found] == [path.encode() for path in PATHS]
            assert all(node.acl == [*paddock.OPEN_ACL] for node in found)
            rest = [node.path async for node in client.walk("/app", after="/app/a/y")]
            assert rest == ["/app/a-b", "/app/b"]

    run_virtually(main())


def test_a_client_with_a_chroot_walks_its_own_tree() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            for path in PATHS:
                await client.create(path)
            async with paddock.connect(f"{server.hosts}/app") as inside:
                found = [node.path async for node in inside.walk()]
                assert found == ["/", "/a", "/a/y", "/a-b", "/b"]

    run_virtually(main())


def test_a_node_that_may_not_be_read_comes_with_an_error() -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            paddock.connect(server.hosts) as client,
            paddock.connect(server.hosts) as stranger,
        ):
            await client.add_auth("digest", b"alice:secret")
            await client.create("/app")
            await client.create("/app/secret", b"x", acl=paddock.CREATOR_ALL_ACL)
            await client.create("/app/secret/below")
            await client.create("/app/z")
            found = [node async for node in stranger.walk("/app", data=True)]
            assert [(node.path, node.error is None) for node in found] == [
                ("/app", True),
                ("/app/secret", False),
                ("/app/z", True),
            ]

    run_virtually(main())


def test_blocking_code_walks_and_prunes() -> None:
    with ServerThread() as server, sync.connect(server.hosts) as client:
        for path in PATHS:
            client.create(path, b"x")
        found = []
        for node in client.walk("/app", data=lambda path, stat: path.endswith("b")):
            node.descends = node.path != "/app/a"
            found.append((node.path, node.data))
        assert found == [
            ("/app", None),
            ("/app/a", None),
            ("/app/a-b", b"x"),
            ("/app/b", b"x"),
        ]
        with pytest.raises(NoNodeError, match="walk /none: no such node"):
            next(client.walk("/none"))
