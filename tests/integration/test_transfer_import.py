"""Services made to hold what a stream of nodes says: what is created, changed, kept, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

import paddock
from paddock.cli.transfer import importing
from paddock.cli.transfer.node import (
    Difference,
    Existing,
    ImportOptions,
    Node,
    Tally,
    TransferError,
    Verdict,
)
from paddock.client.client import Client
from paddock.errors import NoAuthError
from paddock.protocol.acl import ACL, ADMIN, ALL, CREATE, OPEN, READ_ONLY, Identity, digest_id
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.support.trees import imported, make, node, walked

TREE = [
    node("/", b"root"),
    node("/a", b"1"),
    node("/a/x", b"2"),
    Node("/b", b"3", READ_ONLY),
    node("/c"),
]
ALICE = Identity("digest", digest_id("alice:secret"))
BOB = Identity("digest", digest_id("bob:secret"))

Story = Callable[[Client, EmbeddedServer], Awaitable[None]]


def on_a_server(story: Story) -> None:
    """Run a story with a client of a server of its own."""

    async def main() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            await story(client, server)

    run_virtually(main())


def test_a_tree_is_created_with_what_is_above_it() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        tally, _ = await imported(client, "/deep/app", TREE)
        assert tally == Tally(created=5, first_different=0)
        assert await walked(client, "/deep/app") == TREE

    on_a_server(story)


def test_the_root_of_a_service_can_be_replaced_but_not_created() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        options = ImportOptions(existing=Existing.OVERWRITE, deletes=True)
        await client.create("/old")
        tally, _ = await imported(client, "/", TREE, options)
        assert (tally.created, tally.changed, tally.deleted) == (4, 1, 1)
        assert await walked(client, "/") == TREE
        # What the service keeps for itself is in no export, and stays.
        assert await client.exists("/zookeeper/quota") is not None

    on_a_server(story)


def test_an_import_that_is_run_again_does_nothing() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        await imported(client, "/app", TREE)
        before = await client.get_acl("/app/b")
        tally, differences = await imported(client, "/app", TREE)
        assert tally == Tally(same=5)
        assert differences == []
        assert await client.get_acl("/app/b") == before

    on_a_server(story)


def test_a_node_that_differs_stops_an_import_unless_something_else_is_said() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        await imported(client, "/app", TREE)
        await client.set("/app/a/x", b"other")
        await client.set_acl("/app/c", [*READ_ONLY, ACL(ALL, Identity("ip", "127.0.0.1"))])
        with pytest.raises(TransferError, match=r"^/app/a/x: exists, and its data differ;"):
            await imported(client, "/app", TREE)
        tally, differences = await imported(
            client, "/app", TREE, ImportOptions(existing=Existing.KEEP)
        )
        assert (tally.same, tally.kept) == (3, 2)
        assert differences == [
            Difference(Verdict.CHANGE, "/app/a/x", ("data",)),
            Difference(Verdict.CHANGE, "/app/c", ("acl",)),
        ]
        assert (await client.get("/app/a/x")).data == b"other"
        tally, _ = await imported(client, "/app", TREE, ImportOptions(existing=Existing.OVERWRITE))
        assert (tally.same, tally.changed) == (3, 2)
        assert await walked(client, "/app") == TREE

    on_a_server(story)


def test_the_order_of_an_acl_makes_no_difference() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        acl = (ACL(ALL, Identity("ip", "10.0.0.1")), *READ_ONLY, ACL(ALL, ALICE))
        await client.create("/app", acl=acl[::-1])
        await client.add_auth("digest", b"alice:secret")
        tally, _ = await imported(client, "/app", [Node("/", b"", acl)])
        assert tally == Tally(same=1)

    on_a_server(story)


def test_a_digest_that_is_hidden_from_us_is_taken_for_the_same() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        await client.create("/app", acl=[ACL(ALL, ALICE), *READ_ONLY])
        for acl, tally in (
            ((ACL(ALL, ALICE), *READ_ONLY), Tally(same=1)),
            ((ACL(ALL, BOB), *READ_ONLY), Tally(changed=1, first_different=0)),
            ((ACL(CREATE, ALICE), *READ_ONLY), Tally(changed=1, first_different=0)),
        ):
            found, _ = await imported(
                client, "/app", [Node("/", b"", acl)], ImportOptions(is_dry=True)
            )
            assert found == tally

    on_a_server(story)


def test_without_acls_those_that_are_there_stay() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        await client.create("/app", b"1", acl=READ_ONLY)
        await client.set_acl("/", OPEN)
        nodes = [Node("/", b"1", None), Node("/new", b"", None)]
        with pytest.raises(NoAuthError, match="create /app/new"):
            await imported(client, "/app", nodes)
        assert (await client.get_acl("/app"))[0] == [*READ_ONLY]

    on_a_server(story)


def test_nodes_that_are_not_in_the_stream_are_deleted_only_on_request() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        await imported(client, "/app", TREE)
        for path in ("/app/a/more/deep/er", "/app/a/x/y", "/app/zz"):
            await client.create(path, make_parents=True)
        await client.create("/app/a/worker", ephemeral=True)
        tally, differences = await imported(
            client, "/app", TREE, ImportOptions(is_dry=True, looks_for_more=True)
        )
        gone = [
            Difference(Verdict.DELETE, "/app/a/x/y"),
            Difference(Verdict.DELETE, "/app/a/more", below=2),
            Difference(Verdict.DELETE, "/app/zz"),
        ]
        assert differences == gone
        assert tally == Tally(same=5)
        tally, _ = await imported(client, "/app", TREE)
        assert tally == Tally(same=5)
        tally, _ = await imported(client, "/app", TREE, ImportOptions(is_dry=True, deletes=True))
        assert tally.deleted == 5
        tally, differences = await imported(client, "/app", TREE, ImportOptions(deletes=True))
        assert differences == gone
        assert tally == Tally(same=5, deleted=5)
        assert await walked(client, "/app") == TREE
        # An ephemeral node of a live session, which no export contains.
        assert await client.exists("/app/a/worker") is not None

    on_a_server(story)


def test_a_dry_run_changes_nothing_and_says_what_would_be_done() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        options = ImportOptions(existing=Existing.OVERWRITE, deletes=True)
        await client.create("/app/a", b"other", make_parents=True)
        await client.create("/app/old/er", make_parents=True)
        before = await walked(client, "/")
        told, differences = await imported(client, "/app", TREE, replace(options, is_dry=True))
        assert await walked(client, "/") == before
        done, same_differences = await imported(client, "/app", TREE, options)
        assert told == done == Tally(created=3, changed=2, deleted=2, first_different=0)
        assert differences == same_differences

    on_a_server(story)


def test_a_dry_run_into_nothing_makes_not_even_the_parents() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        tally, _ = await imported(client, "/deep/app", TREE, ImportOptions(is_dry=True))
        assert tally.created == 5
        assert await client.exists("/deep") is None

    on_a_server(story)


@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("children_ahead", [0, 1, 1000])
def test_windows_change_nothing(
    monkeypatch: pytest.MonkeyPatch, window: int, children_ahead: int
) -> None:
    monkeypatch.setattr(importing, "_WINDOW", window)
    monkeypatch.setattr(importing, "_CHILDREN_AHEAD_MAX", children_ahead)
    monkeypatch.setattr(importing, "_DELETES", window)

    async def story(client: Client, server: EmbeddedServer) -> None:
        await client.create("/app/a/old", make_parents=True)
        await make(client, "/app", [f"old{number}" for number in range(5)])
        options = ImportOptions(existing=Existing.OVERWRITE, deletes=True)
        tally, _ = await imported(client, "/app", TREE, options)
        assert (tally.created, tally.changed, tally.deleted) == (3, 2, 6)
        assert await walked(client, "/app") == TREE

    on_a_server(story)


LOCKED = [
    Node("/", b"", (ACL(ALL, BOB), *READ_ONLY)),
    Node("/a", b"", READ_ONLY),
    Node("/a/x", b"", (ACL(ALL, BOB), *READ_ONLY)),
    Node("/b", b"", OPEN),
]


@pytest.mark.parametrize("credentials", [None, "alice:secret"])
@pytest.mark.parametrize("window", [1, 2, 1000])
def test_acls_that_would_lock_us_out_come_when_all_that_is_below_is_there(
    monkeypatch: pytest.MonkeyPatch, credentials: str | None, window: int
) -> None:
    monkeypatch.setattr(importing, "_WINDOW", window)

    async def story(client: Client, server: EmbeddedServer) -> None:
        ours = [("digest", credentials)] if credentials else []
        for scheme, text in ours:
            await client.add_auth(scheme, text.encode())
        tally, _ = await imported(client, "/app", LOCKED, credentials=ours)
        assert tally.created == 4
        async with paddock.connect(server.hosts) as owner:
            await owner.add_auth("digest", b"bob:secret")
            assert [(one.path, set(one.acl or ())) for one in await walked(owner, "/app")] == [
                (one.path, set(one.acl or ())) for one in LOCKED
            ]

    on_a_server(story)


def test_while_it_waits_for_its_children_a_node_is_open_to_nobody_but_us() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with (
                paddock.connect(proxy.hosts) as client,
                paddock.connect(server.hosts) as super_reader,
            ):
                await client.add_auth("digest", b"alice:secret")
                await super_reader.add_auth("digest", b"bob:secret")
                held = proxy.when(operation="set_acl", path="/app").blackhole()
                job = asyncio.create_task(
                    imported(client, "/app", LOCKED, credentials=[("digest", "alice:secret")])
                )
                await held.happened()
                acl, _ = await super_reader.get_acl("/app")
                assert set(acl) - set(LOCKED[0].acl or ()) == {ACL(CREATE | ADMIN, ALICE)}
                proxy.heal()
                await job

    run_virtually(main())


def test_an_acl_that_an_interrupted_import_has_left_is_finished_by_the_next() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        await client.add_auth("digest", b"alice:secret")
        ours = [("digest", "alice:secret")]
        meanwhile = (*(LOCKED[0].acl or ()), ACL(CREATE | ADMIN, ALICE))
        await client.create("/app", acl=meanwhile)
        # Not a difference that would have to be overwritten.
        tally, differences = await imported(client, "/app", LOCKED, credentials=ours)
        assert (tally.created, tally.changed) == (3, 0)
        assert differences[0] == Difference(Verdict.FINISH, "/app")
        async with paddock.connect(server.hosts) as owner:
            await owner.add_auth("digest", b"bob:secret")
            acl, _ = await owner.get_acl("/app")
            assert set(acl) == set(LOCKED[0].acl or ())

    on_a_server(story)


def test_a_node_that_is_too_large_is_named() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        with pytest.raises(TransferError, match=r"^/app/a: create: the request has 20000.* bytes"):
            await imported(client, "/app", [node("/"), node("/a", bytes(2_000_000)), node("/b")])
        # What came before it is there, and nothing behind it.
        assert await client.children("/app") == []

    on_a_server(story)


def test_what_the_service_refuses_is_named() -> None:
    async def story(client: Client, server: EmbeddedServer) -> None:
        await client.create("/app", acl=READ_ONLY)
        with pytest.raises(NoAuthError, match="create /app/a"):
            await imported(client, "/app", [Node("/", b"", READ_ONLY), node("/a")])

    on_a_server(story)


def test_what_is_known_to_be_the_same_is_not_looked_at_again() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with paddock.connect(proxy.hosts) as client:
                await imported(client, "/app", TREE[:3])
                before = len(proxy.requests)
                tally, _ = await imported(client, "/app", TREE, ImportOptions(same_before=3))
                assert tally == Tally(same=3, created=2, first_different=3)
                asked = {path for one in proxy.requests[before:] for path in one.paths}
                assert asked == {"/app/b", "/app/c"}
                assert await walked(client, "/app") == TREE

    run_virtually(main())


def test_below_a_node_that_was_missing_nothing_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importing, "_WINDOW", 2)

    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with paddock.connect(proxy.hosts) as client:
                await imported(client, "/app", TREE)
                asked = {
                    path for one in proxy.requests if one.name == "get_acl" for path in one.paths
                }
                # Those of the first window: nobody knew yet that there was nothing.
                assert asked == {"/app", "/app/a"}

    run_virtually(main())


def test_data_that_cannot_be_the_same_are_not_read() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with paddock.connect(proxy.hosts) as client:
                await client.create("/app")
                for name, data in (("a", bytes(900_000)), ("b", b"other"), ("c", b"")):
                    await client.create(f"/app/{name}", data)
                nodes = [node("/"), node("/a", b"small"), node("/b", b"small"), node("/c")]
                _, differences = await imported(client, "/app", nodes, ImportOptions(is_dry=True))
                assert [one.path for one in differences] == ["/app/a", "/app/b"]
                read = [one.paths for one in proxy.requests if one.name == "get"]
                assert read == [("/app/b",)]

    run_virtually(main())


def test_somebody_who_writes_at_the_same_time_is_not_overwritten_unseen() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with (
                paddock.connect(proxy.hosts) as client,
                paddock.connect(server.hosts) as other,
            ):
                await client.create("/app", b"old")
                held = proxy.when(operation="create", path="/app/a").blackhole()
                job = asyncio.create_task(imported(client, "/app", [node("/", b"old"), node("/a")]))
                await held.happened()
                await other.create("/app/a", b"theirs")
                proxy.heal()
                with pytest.raises(TransferError, match=r"^/app/a: exists, and its data differ"):
                    await job
                held = proxy.when(operation="set", path="/app/a").blackhole()
                options = ImportOptions(existing=Existing.OVERWRITE)
                job = asyncio.create_task(
                    imported(client, "/app", [node("/", b"old"), node("/a", b"ours")], options)
                )
                await held.happened()
                await other.set("/app/a", b"theirs again")
                proxy.heal()
                # It is looked at once more, and overwritten as it is then.
                await job
                data, stat = await client.get("/app/a")
                assert (data, stat.version) == (b"ours", 2)
                assert sum(one.name == "set" for one in proxy.requests) == 2

    run_virtually(main())
