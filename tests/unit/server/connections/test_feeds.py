"""Change feeds of connections: pulls and wake-ups, the past behind the ring, limits, the end."""

from __future__ import annotations

import asyncio
from random import Random
from weakref import WeakKeyDictionary

import pytest
from librt.strings import BytesWriter

from paddock.errors import BAD_ARGUMENTS, MARSHALLING_ERROR, OK, QUOTA_EXCEEDED, SYSTEM_ERROR
from paddock.protocol import opcodes
from paddock.protocol.changes import (
    END,
    FROM_NOW,
    GONE,
    MORE,
    WAITS,
    WAKE_UP_XID,
    ChangeRecord,
    ChangesReply,
    ChangesRequest,
    read_change,
)
from paddock.protocol.jute import Reader
from paddock.server.connections import feeds as feeds_module
from paddock.server.connections.feeds import FEEDS_MAX, LINGER_SECONDS, HistoryGone, PastPage
from paddock.state.access import Identities, NodeACL
from paddock.state.feeds import ChangeRing, encode_change, may_see
from paddock.state.operations import Change
from paddock.state.watcher import Watcher
from tests.support import requests as rq
from tests.support.records import Request
from tests.unit.server.harness import FakeClient, Harness, errors, run, turn

# They replace methods of the machine and of the ring.
pytestmark = pytest.mark.source


def pull(path: str, since: int, feed: int = 1) -> Request:
    writer = BytesWriter()
    ChangesRequest(path.encode(), since, feed).write(writer)
    return Request(opcodes.CHANGES, writer.getvalue())


def changes_of(reply: ChangesReply) -> list[ChangeRecord]:
    reader, found = Reader(reply.changes or b""), []
    while reader.position < len(reader.data):
        found.append(read_change(reader))
    return found


def names(reply: ChangesReply) -> list[str]:
    return [change.path.decode() for change in changes_of(reply)]


# Wake-ups that came with something else.
heard: WeakKeyDictionary[FakeClient, list[int]] = WeakKeyDictionary()


def numbers_of(replies: list[tuple[int, int, bytes]]) -> list[int]:
    """Return which feeds are woken."""
    return [int.from_bytes(body, "big") for xid, _, body in replies if xid == WAKE_UP_XID]


async def pulled(client: FakeClient, path: str, since: int, feed: int = 1) -> ChangesReply:
    client.send(pull(path, since, feed))
    await turn()
    replies = client.replies()
    heard.setdefault(client, []).extend(numbers_of(replies))
    ((xid, error, body),) = [one for one in replies if one[0] != WAKE_UP_XID]
    assert (xid, error) == (1, OK)
    return ChangesReply.read(Reader(body))


async def write(harness: Harness, client: FakeClient, *requests: Request) -> None:
    client.send(*requests)
    await harness.settle()
    assert set(errors(client)) == {OK}


def woken(client: FakeClient) -> list[int]:
    """Take the wake-ups: which feeds."""
    found = client.replies()
    assert {(xid, error) for xid, error, _ in found} <= {(WAKE_UP_XID, OK)}
    return heard.pop(client, []) + numbers_of(found)


def test_a_feed_waits_is_woken_and_pulls_what_has_happened() -> None:
    async def scenario() -> None:
        harness = Harness()
        reader, writer = await harness.client(), await harness.client()
        reply = await pulled(reader, "/", FROM_NOW, 7)
        assert (reply.state, reply.until, names(reply)) == (WAITS, harness.machine.zxid, [])
        await write(harness, writer, rq.create("/a"), rq.create("/b"))
        assert woken(reader) == [7]
        reply = await pulled(reader, "/", reply.until, 7)
        assert (reply.state, names(reply)) == (WAITS, ["/a", "/b"])
        assert reply.until == harness.machine.zxid
        await write(harness, writer, rq.create("/c"))
        assert woken(reader) == [7]

    run(scenario)


def test_a_pull_behind_a_write_shows_it() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        since = (await pulled(client, "/", FROM_NOW)).until
        client.send(rq.create("/a"), pull("/", since), rq.get_data("/a"))
        await harness.settle()
        replies = [reply for reply in client.replies() if reply[0] != WAKE_UP_XID]
        assert [xid for xid, _, _ in replies] == [1, 2, 3]
        assert names(ChangesReply.read(Reader(replies[1][2]))) == ["/a"]

    run(scenario)


def test_nothing_is_recorded_without_a_feed_and_for_some_time_after_the_last() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        ring = harness.service.feeds.ring
        problems: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda *told: problems.append(told))
        assert not records(harness)
        since = (await pulled(client, "/", FROM_NOW, 1)).until
        await pulled(client, "/a", FROM_NOW, 2)
        await pulled(client, "/", END, 1)
        await asyncio.sleep(LINGER_SECONDS + 1)
        assert len(harness.service.feeds) == 1
        assert records(harness)
        client.connection.connection_lost(None)
        other, writing = await harness.client(), await harness.client()
        await write(harness, writing, rq.create("/a"))
        await asyncio.sleep(LINGER_SECONDS - 1)
        # In time: it goes on.
        assert names(await pulled(other, "/", since)) == ["/a"]
        await asyncio.sleep(LINGER_SECONDS)
        assert other.transport.is_open
        since = harness.machine.zxid
        await write(harness, writing, rq.create("/a/c"))
        assert names(await pulled(other, "/", since)) == ["/a/c"]
        await pulled(other, "/", END)
        await asyncio.sleep(LINGER_SECONDS + 1)
        assert not records(harness)
        assert (ring.is_on, ring.size) == (False, 0)
        await write(harness, writing, rq.create("/b"))
        gone = await pulled(other, "/", since)
        assert (gone.state, gone.until) == (GONE, harness.machine.zxid)
        assert not problems

    run(scenario)


def test_a_feed_whose_connection_is_gone_is_not_woken() -> None:
    async def scenario() -> None:
        harness = Harness()
        reader, writer = await harness.client(), await harness.client()
        await pulled(reader, "/", FROM_NOW)
        reader.connection.connection_lost(None)
        assert len(harness.service.feeds) == 0
        await write(harness, writer, rq.create("/a"))
        assert woken(reader) == []

    run(scenario)


@pytest.mark.parametrize(("path", "since"), [("a", 0), ("/a/", 0), ("", 0), ("/", END - 1)])
def test_what_cannot_be_is_refused(path: str, since: int) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        client.send(pull(path, since))
        client.send(Request(opcodes.CHANGES, b"\0"))
        await turn()
        assert errors(client) == [BAD_ARGUMENTS, MARSHALLING_ERROR]
        assert len(harness.service.feeds) == 0

    run(scenario)


def test_a_connection_has_so_many_feeds_and_paths_of_so_many_bytes() -> None:
    async def scenario() -> None:
        harness = Harness()
        feeds, watcher, other = harness.service.feeds, Watcher(), Watcher()
        for number in range(FEEDS_MAX):
            assert feeds.pull(pull("/", FROM_NOW, number).body, watcher)[0] == OK
        assert feeds.pull(pull("/", FROM_NOW, FEEDS_MAX).body, watcher)[0] == QUOTA_EXCEEDED
        # One that is there goes on, also on another path.
        assert feeds.pull(pull("/", FROM_NOW, 1).body, watcher)[0] == OK
        assert feeds.pull(pull("/a", FROM_NOW, 1).body, watcher)[0] == OK
        long = "/" + "x" * (600 << 10)
        assert feeds.pull(pull(long, FROM_NOW, 1).body, other)[0] == OK
        assert feeds.pull(pull(long, FROM_NOW, 2).body, other)[0] == QUOTA_EXCEEDED
        assert len(feeds) == FEEDS_MAX + 1
        feeds.forget(watcher)
        assert len(feeds) == 1
        feeds.pull(pull(long, END, 1).body, other)
        assert feeds.pull(pull(long, FROM_NOW, 2).body, other)[0] == OK

    run(scenario)


class FailingRing(ChangeRing):
    """A ring with a defect."""

    fails = False

    def record(self, found: list[Change]) -> None:
        if self.fails:
            raise RuntimeError("as the test wants it")
        super().record(found)


def records(harness: Harness) -> bool:
    """Tell whether anything is recorded."""
    return harness.replica.on_changes is not None


def test_a_change_that_cannot_be_recorded_makes_no_hole() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await harness.client()
        ring = harness.service.feeds.ring = FailingRing()
        since = (await pulled(client, "/", FROM_NOW)).until
        ring.fails = True
        await write(harness, client, rq.create("/a"))
        ring.fails = False
        client.send(rq.create("/b"))
        await harness.settle()
        client.replies()
        gone = await pulled(client, "/", since)
        assert (gone.state, gone.until) == (GONE, harness.machine.zxid - 1)
        assert names(await pulled(client, "/", gone.until)) == ["/b"]

    run(scenario)


class Past:
    """A past that has everything, and reads when it is told to."""

    def __init__(self, harness: Harness) -> None:
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.asked: list[tuple[bytes, int, int]] = []
        self.oldest = 0
        self.error: Exception | None = None
        self.page_transactions = 1000
        self.is_stuck = False
        self.all: list[tuple[int, bytes, NodeACL, bytes]] = []
        apply = harness.machine.apply
        machine = harness.machine

        def watched(entry):  # type: ignore[no-untyped-def]
            outcome = apply(entry)
            for change in outcome.changes:
                one = (change.zxid, change.path, change.node.acl, encode_change(change))
                self.all.append(one)
            return outcome

        machine.apply = watched  # type: ignore[method-assign]

    async def read(
        self,
        path: bytes,
        since: int,
        up_to: int,
        limit_bytes: int,
        identities: Identities,
    ) -> PastPage:
        self.asked.append((path, since, up_to))
        await self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        if since < self.oldest:
            raise HistoryGone(self.oldest)
        if self.is_stuck:
            return PastPage(b"", since, 0)
        below = path if path == b"/" else path + b"/"
        zxids = sorted({one[0] for one in self.all if since < one[0] <= up_to})
        until = up_to if len(zxids) <= self.page_transactions else zxids[self.page_transactions - 1]
        wires = [
            wire
            for zxid, at, acl, wire in self.all
            if since < zxid <= until
            and (at == path or at.startswith(below))
            and may_see(acl, identities)
        ]
        return PastPage(b"".join(wires), until, len(wires))


async def with_past(harness: Harness) -> tuple[FakeClient, Past]:
    past = Past(harness)
    harness.service.feeds.past = past
    client = await harness.client()
    await write(harness, client, rq.create("/a"), rq.create("/b"), rq.create("/a/c"))
    return client, past


def test_the_past_is_read_meanwhile_and_the_ring_goes_on_behind_it() -> None:
    async def scenario() -> None:
        harness = Harness()
        client, past = await with_past(harness)
        past.may_go_on.clear()
        other = await harness.client()
        await pulled(other, "/", FROM_NOW)
        await write(harness, client, rq.create("/a/b"))
        reply = await pulled(client, "/a", 0)
        assert (reply.state, reply.until, names(reply)) == (WAITS, 0, [])
        # Others are answered, and this one again, while it is read.
        client.send(rq.get_data("/a"))
        assert errors(client) == [OK]
        assert (await pulled(client, "/a", 0)).state == WAITS
        await write(harness, client, rq.create("/a/d"))
        past.may_go_on.set()
        await turn()
        assert woken(client) == [1]
        reply = await pulled(client, "/a", 0)
        assert (reply.state, names(reply)) == (MORE, ["/a", "/a/c"])
        reply = await pulled(client, "/a", reply.until)
        assert (reply.state, names(reply)) == (WAITS, ["/a/b", "/a/d"])
        # Up to where the ring begins.
        assert past.asked == [(b"/a", 0, 5)]

    run(scenario)


def test_what_the_past_does_not_have_is_told_with_the_oldest() -> None:
    async def scenario() -> None:
        harness = Harness()
        client, past = await with_past(harness)
        past.oldest = 3
        await pulled(client, "/", 2)
        assert woken(client) == [1]
        reply = await pulled(client, "/", 2)
        assert (reply.state, reply.until) == (GONE, 3)
        await pulled(client, "/", 3)
        assert woken(client) == [1]
        assert names(await pulled(client, "/", 3)) == ["/a/c"]

    run(scenario)


def counted(harness: Harness) -> tuple[int, int, int, int, int]:
    """Return what the metrics say: feeds, those that wait, pulls, changes, and feeds gone."""
    feeds, statistics = harness.service.feeds, harness.service.statistics
    return (
        len(feeds),
        feeds.waiting_count(),
        statistics.feed_pulls,
        statistics.feed_changes,
        statistics.feeds_gone,
    )


def test_feeds_are_counted() -> None:
    async def scenario() -> None:
        harness = Harness()
        client, past = await with_past(harness)
        other = await harness.client()
        assert counted(harness) == (0, 0, 0, 0, 0)
        zxid = harness.machine.zxid
        await pulled(client, "/", FROM_NOW, 1)
        await pulled(client, "/a", FROM_NOW, 2)
        assert counted(harness) == (2, 2, 2, 0, 0)
        await write(harness, other, rq.create("/d"), rq.create("/e"))
        assert counted(harness) == (2, 1, 2, 0, 0)
        await pulled(client, "/", zxid, 1)
        assert counted(harness) == (2, 2, 3, 2, 0)
        # A feed that waits for the past waits as well.
        past.may_go_on.clear()
        await pulled(other, "/", 1, 3)
        assert counted(harness) == (3, 3, 4, 2, 0)
        past.may_go_on.set()
        await turn()
        assert counted(harness) == (3, 2, 4, 2, 0)
        reply = await pulled(other, "/", 1, 3)
        found = 2 + len(names(reply))
        assert found > 3
        assert counted(harness) == (3, 2, 5, found, 0)
        past.oldest = 3
        await pulled(other, "/", 2, 3)
        assert (await pulled(other, "/", 2, 3)).state == GONE
        harness.service.feeds.past = None
        assert (await pulled(other, "/", 1, 3)).state == GONE
        assert counted(harness) == (3, 2, 8, found, 2)
        await pulled(client, "/", END, 1)
        assert counted(harness) == (2, 1, 8, found, 2)
        harness.service.statistics.reset()
        assert counted(harness) == (2, 1, 0, 0, 0)

    run(scenario)


@pytest.mark.parametrize("error", [RuntimeError("a bad file"), None])
def test_a_past_that_cannot_be_read_is_a_failure_of_the_server(error: Exception | None) -> None:
    async def scenario() -> None:
        harness = Harness()
        client, past = await with_past(harness)
        past.error = error
        # Without an error of its own, it goes nowhere.
        past.is_stuck = True
        await pulled(client, "/", 1)
        woken(client)
        client.send(pull("/", 1))
        await turn()
        assert errors(client) == [SYSTEM_ERROR]

    run(scenario)


def test_few_pages_are_read_at_a_time_and_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds_module, "_PAGES_BYTES_MAX", 1000)

    async def scenario() -> None:
        harness = Harness()
        client, past = await with_past(harness)
        past.may_go_on.clear()
        for number in range(20):
            await pulled(client, "/", 1, number)
        assert len(past.asked) == 4
        past.may_go_on.set()
        await asyncio.sleep(1)
        assert sorted(woken(client)) == list(range(20))
        # Those of the oldest were dropped, and are read again.
        assert (await pulled(client, "/", 1, 19)).state == MORE
        assert (await pulled(client, "/", 1, 0)).state == WAITS
        harness.service.feeds.stop()

    run(scenario)


def test_a_feed_that_ends_reads_no_more() -> None:
    async def scenario() -> None:
        harness = Harness()
        client, past = await with_past(harness)
        past.may_go_on.clear()
        await pulled(client, "/", 0)
        await pulled(client, "/", END)
        past.may_go_on.set()
        await turn()
        assert woken(client) == []

    run(scenario)


@pytest.mark.parametrize("seed", range(10))
def test_between_past_and_ring_nothing_is_lost_or_doubled(seed: int) -> None:
    async def scenario() -> None:
        random = Random(seed)
        harness = Harness()
        past = Past(harness)
        feeds = harness.service.feeds
        feeds.ring, feeds.past = ChangeRing(random.choice([1_000, 3_000])), past
        past.page_transactions = random.choice([1, 3, 100])
        client = await harness.client()
        since, found = 0, list[tuple[int, str]]()
        for number in range(120):
            if random.random() < 0.5:
                steps = random.randrange(1, 4)
                for step in range(steps):
                    client.send(rq.create(f"/{number}-{step}"))
                await harness.settle()
                client.replies()
            else:
                client.send(pull("/", since))
                await turn()
                replies = [body for xid, _, body in client.replies() if xid == 1]
                reply = ChangesReply.read(Reader(replies[0]))
                assert reply.state != GONE
                since = reply.until
                found += [(one.zxid, one.path.decode()) for one in changes_of(reply)]
            expected = [(one[0], one[1].decode()) for one in past.all if one[0] <= since]
            assert found == expected
        assert past.asked
        assert since > 10

    run(scenario)


def test_a_read_only_session_has_feeds() -> None:
    async def scenario() -> None:
        harness = Harness()
        writer, reader = await harness.client(), FakeClient(harness)
        since = (await pulled(writer, "/", FROM_NOW)).until
        await write(harness, writer, rq.create("/a"))
        harness.service.is_open = False
        harness.service.is_read_only = True
        reader.send_handshake(0, read_only=True)
        assert reader.take_handshake().read_only
        assert names(await pulled(reader, "/", since)) == ["/a"]

    run(scenario)
