"""A change feed that is cut anywhere gives the same as one that was not, and the state folds of it.

The client that reads the feed writes as well, in an exact session: so each of its writes happens
once, wherever its connection is cut, and what the feed has to show is known.
"""

from __future__ import annotations

import asyncio

from paddock.api import connect
from paddock.client.client import Client
from paddock.client.operations.feeds import FeedChange
from paddock.client.states import FeedKind
from paddock.protocol.records import Stat
from paddock.testing import Cut, CutPoint, EmbeddedServer, FaultProxy, at_every_cut
from paddock.testing.clock import run_virtually

EXPECTED = [
    (FeedKind.CREATED, "/app"),
    (FeedKind.CREATED, "/app/a"),
    (FeedKind.DATA, "/app/a"),
    (FeedKind.CREATED, "/app/b"),
    (FeedKind.CREATED, "/app/c"),
    (FeedKind.DATA, "/app"),
    (FeedKind.DELETED, "/app/b"),
    (FeedKind.CREATED, "/app/end"),
]


async def write(client: Client) -> None:
    await client.create("/app")
    await client.create("/app/a", b"1")
    await client.set("/app/a", b"2")
    async with client.transaction() as transaction:
        transaction.create("/app/b")
        transaction.create("/app/c")
        transaction.set("/app", b"3")
    await client.create("/other")
    await client.delete("/app/b")
    await client.create("/app/end")


async def scenario(proxy: FaultProxy, cut: CutPoint | None) -> None:
    async with connect(proxy.hosts) as client:
        feed = client.changes("/app", progress=True)
        assert (await anext(feed)).kind is FeedKind.PROGRESS
        writing = asyncio.create_task(write(client))
        found: list[FeedChange] = []
        async for change in feed:
            if change.kind is not FeedKind.PROGRESS:
                found.append(change)
            if change.path == "/app/end":
                break
        await writing
        assert [(change.kind, change.path) for change in found] == EXPECTED
        last = [change.is_last for change in found]
        assert last == [True, True, True, False, False, True, True, True]
        folded: dict[str, tuple[bytes | None, Stat]] = {}
        for change in found:
            if change.stat is None:
                del folded[change.path]
            else:
                folded[change.path] = change.data, change.stat
        async for node in client.walk("/app", data=True):
            data, stat = folded.pop(node.path)
            assert data == node.data
            assert node.stat is not None
            assert (stat.czxid, stat.mzxid, stat.version) == (*node.stat[:2], node.stat.version)
        assert not folded
        # And so does one that begins where this one was in between.
        for number, change in enumerate(found):
            if change.is_last and number < len(found) - 1:
                again = client.changes("/app", since=change.zxid)
                assert [await anext(again) for _ in found[number + 1 :]] == found[number + 1 :]
                await again.aclose()
                break
        await feed.aclose()


def test_a_feed_that_is_cut_gives_what_one_gives_that_is_not() -> None:
    async def main() -> int:
        return len(await at_every_cut(EmbeddedServer, scenario, tuple(Cut)))

    assert run_virtually(main()) >= 60
