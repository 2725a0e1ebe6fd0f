"""Change feeds: every change once and in order, over lost connections and other servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import pytest

from paddock.api import connect as connect_plainly
from paddock.client.access import Permission, world_acl
from paddock.client.client import Client
from paddock.client.operations.feeds import FeedChange
from paddock.client.states import FeedKind
from paddock.errors import (
    HistoryGoneError,
    InvalidArgumentError,
    SessionExpiredError,
    UnimplementedError,
)
from paddock.testing import EmbeddedServer, expire_session
from tests.integration.test_client import DEADLINE_S, client_of, path, run
from tests.support.apis import api, asyncio_only, lose_connection
from tests.support.paddock_cluster import PaddockCluster
from tests.support.server import Service

__all__ = ["api", "path"]

MARKS = {
    FeedKind.CREATED: "+",
    FeedKind.DELETED: "-",
    FeedKind.DATA: "=",
    FeedKind.ACL: "?",
    FeedKind.GAP: "!",
    FeedKind.PROGRESS: ".",
}


@pytest.fixture
def server(shared_paddock: Service) -> Service:
    return shared_paddock


def shown(change: FeedChange) -> str:
    return f"{MARKS[change.kind]}{change.path}"


async def begun(feed: AsyncGenerator[FeedChange, None]) -> int:
    """Take the first step of a feed with progress; return where it begins."""
    first = await anext(feed)
    assert first.kind is FeedKind.PROGRESS
    return first.zxid


async def take(feed: AsyncGenerator[FeedChange, None], count: int) -> list[FeedChange]:
    """Take so many changes, without what says that there are none."""
    found: list[FeedChange] = []
    while len(found) < count:
        change = await anext(feed)
        if change.kind is not FeedKind.PROGRESS:
            found.append(change)
    return found


def test_every_change_comes_with_its_data_and_stat(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        async with client_of(server) as other:
            await other.create(path, b"0")
            feed = client.changes("/", progress=True)
            await begun(feed)
            stat = await other.set(path, b"1")
            await other.create(f"{path}/below", None)
            await other.create(f"{path}-beside")
            await other.set_acl(path, [world_acl(Permission.ALL)])
            await other.delete(f"{path}/below")
            await other.delete(path)
            found = await take(feed, 5)
            assert [shown(change) for change in found] == ["=/", "+/below", "?/", "-/below", "-/"]
            assert found[0][2:] == (stat.mzxid, b"1", stat, True, True)
            assert found[1].data == b""
            assert found[2].data == b"1"
            assert found[4][3:5] == (None, None)
            zxids = [change.zxid for change in found]
            assert zxids == sorted(set(zxids))
            await other.delete(f"{path}-beside")

    run(server, scenario, chroot=path)


def test_a_feed_goes_on_over_lost_connections(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        async with client_of(server) as other:
            feed, whole = client.changes(path, progress=True), other.changes(path, progress=True)
            await begun(feed)
            await begun(whole)
            await other.create(path)
            for number in range(20):
                if number % 4 == 1:
                    await client.sync()  # So that there is a connection to lose.
                    lose_connection(client)
                await other.create(f"{path}/{number}", b"%d" % number)
                if number % 5 == 0:
                    await take(feed, 2 if number == 0 else 5)
            await other.delete_tree(path)
            rest = await take(feed, 4 + 21)
            everything = await take(whole, 42)
            assert rest == everything[-25:]
            # Once more from the middle, in the same session and in another one.
            for reader in (client, other):
                async with aclosing(reader.changes(path, since=everything[10].zxid)) as again:
                    assert await take(again, 31) == everything[11:]

    run(server, scenario)


def test_a_transaction_is_not_split_and_its_last_change_is_marked(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        feed = client.changes(path, progress=True)
        since = await begun(feed)
        async with client.transaction() as transaction:
            transaction.create(path, b"0")
            transaction.create(f"{path}/a")
            transaction.set(path, b"1")
        await client.delete_tree(path)
        found = await take(feed, 5)
        assert [change.is_last for change in found] == [False, False, True, True, True]
        assert [change.zxid for change in found[:3]] == [since + 1] * 3
        assert found[0].data == found[2].data == b"1"

    run(server, scenario)


@asyncio_only
def test_a_reader_that_is_slow_holds_up_nobody(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        feed = client.changes(path, progress=True)
        await begun(feed)
        await client.create(path)
        data = bytes(8 << 10)
        await asyncio.gather(*[client.create(f"{path}/{n:03}", data) for n in range(200)])
        found = await take(feed, 201)
        assert [change.path for change in found[1:]] == [f"{path}/{n:03}" for n in range(200)]
        assert {change.data for change in found[1:]} == {data}
        await client.delete_tree(path)

    run(server, scenario)


def test_what_may_not_be_read_is_left_out(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        async with client_of(server) as other:
            feed = client.changes(path, progress=True)
            since = await begun(feed)
            await other.add_auth("digest", b"bob:secret")
            await other.create(path, b"open")
            hidden = [world_acl(Permission.ALL & ~Permission.READ)]
            await other.create(f"{path}/hidden", b"secret", acl=hidden)
            await other.set(f"{path}/hidden", b"more")
            await other.delete(f"{path}/hidden")
            await other.delete(path)
            assert [shown(change) for change in await take(feed, 2)] == [f"+{path}", f"-{path}"]
            async with aclosing(other.changes(path, since=since)) as again:
                assert [shown(change) for change in await take(again, 2)] == [
                    f"+{path}",
                    f"-{path}",
                ]

    run(server, scenario)


def test_arguments_that_cannot_be_are_refused(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        wrong: list[dict[str, object]] = [
            {"path": "no/path"},
            {"since": -1},
            {"since": "now"},
            {"best_effort": 1},
            {"progress": None},
        ]
        for arguments in wrong:
            with pytest.raises(InvalidArgumentError, match=next(iter(arguments))):
                client.changes(**arguments)  # type: ignore[arg-type]
        ahead = client.last_zxid + 1_000_000
        with pytest.raises(InvalidArgumentError, match="is ahead of it"):
            await anext(client.changes(path, since=ahead))

    run(server, scenario)


@asyncio_only
def test_a_feed_ends_with_its_session(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        feed = client.changes(path, progress=True)
        await begun(feed)
        waiting = asyncio.ensure_future(anext(feed))
        await expire_session(server.address, client.session_id, client.session_password)
        with pytest.raises(SessionExpiredError):
            await waiting

    run(server, scenario)


def on_a_server(scenario: Callable[[EmbeddedServer], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), EmbeddedServer() as server:
            await scenario(server)

    asyncio.run(main())


def hosts(server: EmbeddedServer) -> str:
    host, port = server.address
    return f"{host}:{port}"


@asyncio_only
def test_what_the_service_has_no_more_names_the_oldest() -> None:
    async def scenario(server: EmbeddedServer) -> None:
        async with connect_plainly(hosts(server)) as client:
            await client.create("/a")
            with pytest.raises(HistoryGoneError, match=r"changes /: .*oldest.* 0x2$") as gone:
                await anext(client.changes("/", since=1))
            assert (gone.value.since, gone.value.oldest) == (1, 2)
            feed = client.changes("/", since=gone.value.oldest)
            await client.create("/b")
            assert shown(await anext(feed)) == "+/b"

    on_a_server(scenario)


@asyncio_only
def test_a_feed_that_is_closed_is_forgotten_by_the_server() -> None:
    async def scenario(server: EmbeddedServer) -> None:
        assert server._server is not None
        assert server._server._core is not None
        feeds = server._server._core.feeds
        async with connect_plainly(hosts(server)) as client:
            for _ in range(3):
                async with aclosing(client.changes(progress=True)) as feed:
                    await begun(feed)
                    assert len(feeds) == 1
                await client.sync()
                assert len(feeds) == 0

    on_a_server(scenario)


@asyncio_only
def test_without_exact_no_server_is_asked_and_best_effort_does_what_it_can() -> None:
    async def scenario(server: EmbeddedServer) -> None:
        async with (
            connect_plainly(hosts(server), exact=False) as client,
            connect_plainly(hosts(server)) as other,
        ):
            with pytest.raises(UnimplementedError, match=r"without `exact`.*best_effort=True"):
                await anext(client.changes("/"))
            await check_best_effort(client, other, "/app", lambda: lose_connection(client))

    on_a_server(scenario)


async def check_best_effort(
    client: Client, other: Client, path: str, lose: Callable[[], None]
) -> None:
    await other.create(path, b"0")
    await other.create(f"{path}/old", b"0")
    feed = client.changes(path, best_effort=True)
    coming = asyncio.ensure_future(anext(feed))
    # When it watches, what is written is seen.
    number = 0
    while not coming.done():
        number += 1
        stat = await other.set(path, b"%d" % number)
        await asyncio.wait([coming], timeout=0.02)
    first = await coming
    assert shown(first) == f"={path}"
    assert (first.is_exact, first.stat is not None) == (False, True)
    assert first.zxid <= stat.mzxid
    change = first
    while change.zxid < stat.mzxid:
        change = await anext(feed)
    await other.create(f"{path}/new", b"1")
    assert shown(await anext(feed)) == f"+{path}/new"
    lose()
    await other.delete(f"{path}/new")
    assert shown(await anext(feed)) == f"!{path}"
    assert shown(await anext(feed)) == f"-{path}/new"
    await feed.aclose()
    # From some time in the past nobody knows what has happened, but what is there.
    async with aclosing(client.changes(path, since=stat.mzxid - 1, best_effort=True)) as again:
        assert [shown(await anext(again)) for _ in range(2)] == [f"!{path}", f"={path}"]


@asyncio_only
@pytest.mark.judge
def test_apache_zookeeper_says_that_it_cannot_or_does_what_it_can(
    shared_apache: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        message = f"changes {path}: the server has no change feeds; best_effort=True gives"
        with pytest.raises(UnimplementedError, match=message):
            await anext(client.changes(path))
        async with client_of(shared_apache) as other:
            await check_best_effort(client, other, path, lambda: lose_connection(client))
            await other.delete_tree(path)

    run(shared_apache, scenario)


@asyncio_only
@pytest.mark.judge
@pytest.mark.cluster
def test_a_feed_moves_from_server_to_server(shared_cluster: PaddockCluster, path: str) -> None:
    async def scenario(client: Client) -> None:
        members = [one.hosts for one in shared_cluster.members]
        async with (
            connect_plainly(members[0]) as one,
            connect_plainly(members[1]) as two,
            connect_plainly(members[2]) as three,
        ):
            # So that each server records.
            feeds = [other.changes(path, progress=True) for other in (one, two, three)]
            for other in feeds:
                await begun(other)
            feed = client.changes(path, progress=True)
            await begun(feed)
            await one.create(path)
            found: list[FeedChange] = []
            for number in range(12):
                await one.create(f"{path}/{number}", b"%d" % number)
                if number % 3 == 1:
                    await client.sync()  # So that there is a connection to lose.
                    lose_connection(client)
                if number % 4 == 3:
                    found += await take(feed, 4)
            await one.delete_tree(path)
            found += await take(feed, 14)
            for other in feeds:
                assert await take(other, 26) == found

    run(shared_cluster, scenario)
