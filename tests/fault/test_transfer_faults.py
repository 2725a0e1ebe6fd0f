"""Exports and imports whose connection is cut, at every request and in every way."""

from __future__ import annotations

import paddock
from paddock.cli.transfer.node import Existing, ImportOptions, Node
from paddock.protocol.acl import ACL, ALL, READ_ONLY, Identity, digest_id
from paddock.testing import Cut, CutPoint, EmbeddedServer, FaultProxy, at_every_cut, run_virtually
from tests.support.trees import imported, node, walked

BOB = ACL(ALL, Identity("digest", digest_id("bob:secret")))
TREE = [
    node("/", b"root"),
    Node("/a", b"1", (BOB, *READ_ONLY)),
    node("/a/x", b"2"),
    node("/b", b"new"),
    # Once it is there, we may not even look at it.
    Node("/c", b"4", (BOB,)),
]
MIRROR = ImportOptions(existing=Existing.OVERWRITE, deletes=True)


async def assert_is_there(proxy: FaultProxy) -> None:
    """See that the tree is what it should be, past the proxy and as one who may see all."""
    host, port = proxy.server_address
    async with paddock.connect(f"{host}:{port}") as reader:
        await reader.add_auth("digest", b"bob:secret")
        found = await walked(reader, "/app")
        assert [(one.path, one.data, {*(one.acl or ())}) for one in found] == [
            (one.path, one.data, {*(one.acl or ())}) for one in TREE
        ]


def test_an_import_survives_a_cut_at_every_request() -> None:
    async def scenario(proxy: FaultProxy, cut: CutPoint | None) -> None:
        async with paddock.connect(proxy.hosts) as client:
            tally, _ = await imported(client, "/app", TREE)
            # A create whose reply was lost is counted as ours.
            assert (tally.created, tally.changed) == (5, 0)
        await assert_is_there(proxy)

    points = run_virtually(at_every_cut(EmbeddedServer, scenario, list(Cut)))
    assert {point.request.name for point in points} >= {"create", "get_acl", "set_acl"}


def test_a_mirror_survives_a_cut_at_every_request() -> None:
    async def scenario(proxy: FaultProxy, cut: CutPoint | None) -> None:
        host, port = proxy.server_address
        async with paddock.connect(f"{host}:{port}") as other:
            for path in ("/app/a/old/er", "/app/older", "/app/b"):
                await other.create(path, b"old", make_parents=True)
        async with paddock.connect(proxy.hosts) as client:
            tally, _ = await imported(client, "/app", TREE, MIRROR)
            assert (tally.created, tally.changed) == (2, 3)
        await assert_is_there(proxy)

    points = run_virtually(at_every_cut(EmbeddedServer, scenario, list(Cut)))
    assert {point.request.name for point in points} >= {"create", "set", "set_acl", "delete", "get"}


def test_a_walk_survives_a_cut_at_every_request() -> None:
    async def scenario(proxy: FaultProxy, cut: CutPoint | None) -> None:
        host, port = proxy.server_address
        async with paddock.connect(f"{host}:{port}") as other:
            await imported(other, "/app", TREE)
        async with paddock.connect(proxy.hosts) as client:
            await client.add_auth("digest", b"bob:secret")
            assert [one.path for one in await walked(client, "/app")] == [one.path for one in TREE]

    points = run_virtually(at_every_cut(EmbeddedServer, scenario, list(Cut)))
    assert {point.request.name for point in points} >= {"get_acl", "get", "get_children"}
