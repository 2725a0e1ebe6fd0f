"""Watches of several modes on one path: however many of them a server has, each hears its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.client.states import Event, EventType
from paddock.client.watches.watches import WatchKind
from paddock.errors import NoWatcherError
from paddock.protocol.records import WatcherEvent
from tests.conformance.differences import EVENTS_HAVE_A_ZXID
from tests.integration.test_client import client_of, path, run, server
from tests.integration.test_client_watches import CHANGED, CHILDREN, CREATED, DELETED, Heard
from tests.support.apis import lose_connection
from tests.support.server import Service

__all__ = ["path", "server"]


async def reconnect(client: Client) -> None:
    lose_connection(client)
    async for state in client.states():
        if not state.is_connected:
            break
    await client.wait_connected()


@pytest.mark.parametrize("loses_connection", [False, True])
def test_a_recursive_watch_outlives_reads_with_watches_on_its_path(
    server: Service, path: str, loses_connection: bool
) -> None:
    async def scenario(client: Client) -> None:
        node = f"{path}/node"
        await client.create(node, make_parents=True)
        lasting, once = Heard(), Heard()
        # Not waiting in between: the server sets one, then the other.
        adding = client.add_watch(path, lasting, recursive=True)
        await client.get(path, watch=once)
        await adding
        await client.exists(path, watch=once)
        if loses_connection:
            await reconnect(client)
        await client.set(path, b"1")
        await client.set(node, b"1")
        await client.set(path, b"2")
        await client.sync()
        await lasting.is_told((CHANGED, path), (CHANGED, node), (CHANGED, path))
        await once.is_told((CHANGED, path))

    run(server, scenario)


@pytest.mark.parametrize("recursive_first", [False, True])
@pytest.mark.parametrize("loses_connection", [False, True])
def test_a_persistent_and_a_recursive_watch_may_stand_on_one_path(
    server: Service, path: str, recursive_first: bool, loses_connection: bool
) -> None:
    async def scenario(client: Client) -> None:
        node = f"{path}/node"
        await client.create(path)
        recursive, persistent = Heard(), Heard()
        both = [(recursive, True), (persistent, False)]
        for heard, is_recursive in both if recursive_first else reversed(both):
            await client.add_watch(path, heard, recursive=is_recursive)
        if loses_connection:
            await reconnect(client)
        await client.create(node)
        await client.set(node, b"1")
        await client.delete(node)
        await client.set(path, b"1")
        await client.sync()
        await recursive.is_told((CREATED, node), (CHANGED, node), (DELETED, node), (CHANGED, path))
        await persistent.is_told((CHILDREN, path), (CHILDREN, path), (CHANGED, path))
        # The persistent one goes on alone.
        await client.remove_watches(path, watcher=recursive)
        await client.create(node)
        await client.sync()
        assert persistent.told[3:] == [(CHILDREN, path)]
        assert len(recursive.told) == 4

    run(server, scenario)


@pytest.mark.parametrize("recursive", [False, True])
def test_a_watch_of_children_fires_also_where_a_lasting_one_comes_after_it(
    server: Service, path: str, recursive: bool
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        once, lasting, again = Heard(), Heard(), Heard()
        await client.children(path, watch=once)
        await client.add_watch(path, lasting, recursive=recursive)
        await client.create(f"{path}/a")
        await once.is_told((CHILDREN, path))
        await client.children(path, watch=again)
        await client.create(f"{path}/b")
        await again.is_told((CHILDREN, path))
        await client.create(f"{path}/c")
        await client.sync()
        assert len(lasting.told) == 3
        assert len(once.told) == len(again.told) == 1

    run(server, scenario)


@pytest.mark.parametrize("recursive", [False, True])
def test_a_read_that_counted_on_a_lasting_watch_asks_again_when_that_has_gone(
    server: Service, path: str, recursive: bool
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        lasting, once = Heard(), Heard()
        await client.add_watch(path, lasting, recursive=recursive)
        removing = client.remove_watches(path)
        reading = client.get(path, watch=once)
        await removing
        await reading
        await client.set(path, b"1")
        await client.sync()
        await once.is_told((CHANGED, path))
        await lasting.is_told()

    run(server, scenario)


def test_a_read_keeps_its_watch_when_the_lasting_one_is_removed(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        lasting, once = Heard(), Heard()
        await client.add_watch(path, lasting, recursive=True)
        await client.get(path, watch=once)
        await client.remove_watches(path, watcher=lasting)
        await client.set(path, b"1")
        await client.sync()
        await once.is_told((CHANGED, path))
        await lasting.is_told()

    run(server, scenario)


def test_a_read_is_sent_as_it_suits_the_watches_of_the_next_connection(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        recursive, persistent, once = Heard(), Heard(), Heard()
        await client.add_watch(path, recursive, recursive=True)
        await client.add_watch(path, persistent)
        # The server's is still recursive, and would not tell of children.
        await client.remove_watches(path, watcher=recursive)
        lose_connection(client)
        await client.children(path, watch=once)
        for name in ("a", "b"):
            await client.create(f"{path}/{name}")
        await client.sync()
        await once.is_told((CHILDREN, path))
        await persistent.is_told((CHILDREN, path), (CHILDREN, path))

    run(server, scenario)


def test_a_read_does_not_count_on_a_lasting_watch_that_was_given_up(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        persistent, once = Heard(), Heard()
        lose_connection(client)
        adding = client.add_watch(path, persistent)
        client.add_watch(path, once, recursive=True).cancel()
        await asyncio.sleep(0)
        await client.children(path, watch=once)
        await adding
        for name in ("a", "b"):
            await client.create(f"{path}/{name}")
        await client.sync()
        await once.is_told((CHILDREN, path))
        await persistent.is_told((CHILDREN, path), (CHILDREN, path))

    run(server, scenario)


class Four:
    """A watcher of each kind on one path."""

    def __init__(self, client: Client, path: str) -> None:
        self.client = client
        self.path = path
        self.heard = {kind: Heard() for kind in WatchKind if kind is not WatchKind.ANY}

    async def set(self, *, lasting_first: bool) -> None:
        client, path, heard = self.client, self.path, self.heard
        steps: list[Callable[[], Awaitable[object]]] = [
            lambda: client.get(path, watch=heard[WatchKind.DATA]),
            lambda: client.children(path, watch=heard[WatchKind.CHILDREN]),
            lambda: client.add_watch(path, heard[WatchKind.PERSISTENT]),
            lambda: client.add_watch(path, heard[WatchKind.RECURSIVE], recursive=True),
        ]
        for step in reversed(steps) if lasting_first else steps:
            await step()

    async def check_all_but(self, *gone: WatchKind) -> None:
        """Change the node and its children twice; see what everybody hears, but for some."""
        node = f"{self.path}/node"
        for data in (b"1", b"2"):
            await self.client.set(self.path, data)
            await self.client.create(node)
            await self.client.delete(node)
        await self.client.sync()
        changed, children = (CHANGED, self.path), (CHILDREN, self.path)
        expected = {
            WatchKind.DATA: [changed],
            WatchKind.CHILDREN: [children],
            WatchKind.PERSISTENT: [changed, children, children] * 2,
            WatchKind.RECURSIVE: [changed, (CREATED, node), (DELETED, node)] * 2,
        }
        told = {kind: heard.told for kind, heard in self.heard.items()}
        assert told == {**expected, **{kind: [] for kind in gone}}


FOUR = [kind for kind in WatchKind if kind is not WatchKind.ANY]


@pytest.mark.parametrize("loses_connection", [False, True])
@pytest.mark.parametrize("lasting_first", [False, True])
@pytest.mark.parametrize("gone", FOUR)
def test_one_kind_is_removed_and_the_three_others_hear_everything(
    server: Service, path: str, gone: WatchKind, lasting_first: bool, loses_connection: bool
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        four = Four(client, path)
        await four.set(lasting_first=lasting_first)
        if loses_connection:
            await reconnect(client)
        await client.remove_watches(path, gone)
        await four.check_all_but(gone)
        with pytest.raises(NoWatcherError):
            await client.remove_watches(path, gone)

    run(server, scenario)


@pytest.mark.parametrize("stays", FOUR)
def test_three_kinds_are_removed_and_the_one_that_is_left_hears_everything(
    server: Service, path: str, stays: WatchKind
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        four = Four(client, path)
        await four.set(lasting_first=True)
        gone = [kind for kind in FOUR if kind is not stays]
        for kind in gone:
            await client.remove_watches(path, kind, watcher=four.heard[kind])
        await four.check_all_but(*gone)

    run(server, scenario)


def told_by_server(client: Client) -> list[str]:
    """Return where everything goes that the server tells from now on, also if nobody needs it."""
    told: list[str] = []
    dispatcher = client._session.dispatcher
    listen = dispatcher._on_event

    def note(event: WatcherEvent, zxid: int) -> None:
        told.append(event.path.decode())
        listen(event, zxid)

    dispatcher._on_event = note
    return told


@pytest.mark.parametrize("is_known", [False, True])
def test_a_recursive_watch_that_went_leaves_no_events_of_what_is_below(
    server: Service, path: str, is_known: bool
) -> None:
    """The persistent one beside it stays, whatever the server makes of two."""

    async def scenario(client: Client) -> None:
        node = f"{path}/node"
        await client.create(node, make_parents=True)
        recursive, persistent = Heard(), Heard()
        await client.add_watch(path, recursive, recursive=True)
        await client.add_watch(path, persistent)
        if is_known:
            # It may tell by its event of what kind it is.
            await client.set(path, b"0")
        await client.remove_watches(path, WatchKind.RECURSIVE)
        # What follows from the answer is asked, too.
        for _ in range(2):
            await client.sync()
        told = told_by_server(client)
        await client.set(node, b"1")
        await client.set(path, b"1")
        await client.sync()
        assert told == [path]
        assert persistent.told[is_known:] == [(CHANGED, path)]
        assert len(recursive.told) == is_known

    run(server, scenario)


def test_events_have_the_zxid_of_their_change_if_the_server_tells(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        node = f"{path}/node"
        zxids: list[int | None] = []

        def note(event: Event) -> None:
            if event.type is not EventType.NONE:
                zxids.append(event.zxid)

        await client.create(path)
        await client.add_watch(path, note, recursive=True)
        created = await client.create_with_stat(node)
        changed = await client.set(node, b"1")
        await client.delete(node)
        above = await client.exists(path)
        assert above is not None
        await client.sync()
        changes = [created.stat.czxid, changed.mzxid, above.pzxid]
        assert zxids == (changes if EVENTS_HAVE_A_ZXID.on(server) else [None] * 3)

    run(server, scenario)


def test_streams_of_a_node_and_of_its_tree_do_not_disturb_each_other(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        node = f"{path}/node"
        await client.create(node, b"0", make_parents=True)
        tree, alone = client.watch(path, recursive=True), client.watch(path)
        assert [(await anext(tree)).path for _ in range(2)] == [path, node]
        assert (await anext(alone)).data == b""
        for data in (b"1", b"2", b"3"):
            await client.set(node, data)
            assert (await anext(tree)).data == data
            await client.set(path, data)
            assert (await anext(tree)).data == data
            assert (await anext(alone)).data == data

    run(server, scenario)


@pytest.mark.parametrize("seed", range(8))
def test_nobody_misses_anything_whatever_is_watched_beside_it(
    server: Service, path: str, seed: int
) -> None:
    """Watches come and go at random, without waiting in between, while the nodes change."""
    random = Random(seed)
    node = f"{path}/node"

    async def scenario(client: Client) -> None:
        async with client_of(server) as writer:
            await client.create(path)
            for _ in range(6):
                await story(client, writer)

    async def story(client: Client, writer: Client) -> None:
        # Each with the events of which it must hear.
        waiting: list[tuple[Heard, list[EventType]]] = []
        lasting: list[Heard] = []
        calls: list[asyncio.Future[Any]] = []
        ask = calls.append

        for _ in range(random.randrange(2, 14)):
            heard = Heard()
            match random.randrange(8):
                case 0:
                    waiting.append((heard, [CHANGED]))
                    ask(client.get(path, watch=heard))
                case 1:
                    waiting.append((heard, [CHILDREN]))
                    ask(client.children(path, watch=heard))
                case 2:
                    lasting.append(heard)
                    waiting.append((heard, [CHANGED, CHILDREN, CHILDREN]))
                    ask(client.add_watch(path, heard))
                case 3:
                    lasting.append(heard)
                    waiting.append((heard, [CHANGED, CREATED, DELETED]))
                    ask(client.add_watch(path, heard, recursive=True))
                case 4 if lasting:
                    gone = lasting.pop(random.randrange(len(lasting)))
                    waiting = [(one, kinds) for one, kinds in waiting if one is not gone]
                    ask(client.remove_watches(path, watcher=gone))
                case 5:
                    given_up = client.add_watch(path, heard, recursive=random.random() < 0.5)
                    await asyncio.sleep(0)
                    given_up.cancel()
                case 6:
                    await asyncio.sleep(0)
                case 7 if random.random() < 0.5:
                    if client.state.is_connected and client._session.is_attached:
                        lose_connection(client)
        await asyncio.gather(*calls)
        await client.sync()
        await writer.set(path, b"")
        await writer.create(node)
        await writer.delete(node)
        await client.sync()
        for heard, kinds in waiting:
            assert [kind for kind, _ in heard.told] == kinds
        if client._session.watches.has(path.encode(), WatchKind.ANY):
            await client.remove_watches(path)

    run(server, scenario)
