"""Watches of several modes on one path, on servers that keep them apart and on those with one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final

import pytest

import paddock
from paddock import Client, Event, EventType, NoWatcherError, WatchKind
from paddock.client.requests.encoder import encoded, watched
from paddock.errors import MARSHALLING_ERROR
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.protocol.records import SET_WATCHES_XID
from paddock.protocol.requests import AddWatchRequest, SetWatchesRequest, WatchesRequest
from paddock.testing import run_virtually
from tests.support.scripted import Asked, ScriptedServer, Talk, event, good_body

CREATED, CHANGED, CHILDREN = EventType.CREATED, EventType.CHANGED, EventType.CHILDREN_CHANGED
# More than a removal takes.
ROUNDS: Final = 4

Told = tuple[EventType, str | None, int | None]


class Heard:
    """A watcher that remembers events, without what concerns the session."""

    def __init__(self) -> None:
        self.told: list[Told] = []

    def __call__(self, event: Event) -> None:
        if event.type is not EventType.NONE:
            self.told.append((event.type, event.path, event.zxid))


class Played:
    """A server that answers everything well, and tells what it is asked to tell."""

    def __init__(self, *, knows_lasting_kinds: bool, replay: tuple[bytes, ...] = ()) -> None:
        self._knows_lasting_kinds = knows_lasting_kinds
        # What it tells while it sets watches again.
        self._replay = replay
        self.asked: list[Asked] = []
        # The zxid that the client says it has seen, on each connection.
        self.greeted_with: list[int] = []
        self._talk: Talk | None = None

    async def lead(self, talk: Talk) -> None:
        self.greeted_with.append((await talk.grant()).last_zxid_seen)
        self._talk = talk
        while True:
            asked = await talk.request()
            if asked.xid == SET_WATCHES_XID:
                for frame in self._replay:
                    talk.say(frame)
            self.asked.append(asked)
            talk.answer(asked.xid, good_body(asked.operation), code=self._code(asked))

    def _code(self, asked: Asked) -> int:
        if asked.operation != opcodes.REMOVE_WATCHES or self._knows_lasting_kinds:
            return 0
        return MARSHALLING_ERROR if WatchesRequest.read(Reader(asked.body)).kind > 3 else 0

    def tell(self, kind: EventType, path: str, zxid: int = -1) -> None:
        assert self._talk is not None
        self._talk.say(event(kind, path.encode(), zxid))

    def cut(self) -> None:
        assert self._talk is not None
        self._talk.writer.close()

    def has_asked(self) -> list[tuple[int, bytes]]:
        """Return the requests since the last time, but for those that settle matters."""
        asked, self.asked = self.asked, []
        return [(one.operation, one.body) for one in asked if one.operation != opcodes.SYNC]


def old_and_new() -> list[Played]:
    return [Played(knows_lasting_kinds=False), Played(knows_lasting_kinds=True)]


def add(mode: int) -> tuple[int, bytes]:
    return opcodes.ADD_WATCH, encoded(AddWatchRequest(b"/a", mode))


def remove(kind: WatchKind) -> tuple[int, bytes]:
    return opcodes.REMOVE_WATCHES, encoded(WatchesRequest(b"/a", kind))


ADD_PERSISTENT, ADD_RECURSIVE = add(0), add(1)
ADD_BOTH = (opcodes.SET_WATCHES2, encoded(SetWatchesRequest(0, [], [], [], [b"/a"], [b"/a"])))
REMOVE_PERSISTENT, REMOVE_RECURSIVE = remove(WatchKind.PERSISTENT), remove(WatchKind.RECURSIVE)
REMOVE_ANY = remove(WatchKind.ANY)


async def settle(client: Client) -> None:
    """Let everything that was asked, and what follows from the answers, be answered."""
    for _ in range(ROUNDS):
        await client.sync()


def on(server: Played, story: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def scenario() -> None:
        async with (
            ScriptedServer(server.lead) as listening,
            paddock.connect(listening.hosts, random=Random(1)) as client,
        ):
            await story(client)

    run_virtually(scenario())


async def add_both(client: Client) -> tuple[Heard, Heard]:
    """Have a persistent and a recursive watch on a path, the recursive one first."""
    persistent, recursive = Heard(), Heard()
    await client.add_watch("/a", recursive, recursive=True)
    await client.add_watch("/a", persistent)
    return persistent, recursive


def test_a_server_that_keeps_modes_apart_calls_each_watcher_once() -> None:
    server = Played(knows_lasting_kinds=True)

    async def story(client: Client) -> None:
        persistent, recursive = await add_both(client)
        server.tell(CREATED, "/a/b", 5)
        server.tell(CHILDREN, "/a", 5)
        await client.sync()
        assert persistent.told == [(CHILDREN, "/a", 5)]
        assert recursive.told == [(CREATED, "/a/b", 5)]

    on(server, story)


def test_a_server_with_one_mode_leaves_it_to_us_that_children_changed() -> None:
    server = Played(knows_lasting_kinds=False)

    async def story(client: Client) -> None:
        persistent, recursive = await add_both(client)
        server.tell(CREATED, "/a/b")
        await client.sync()
        assert persistent.told == [(CHILDREN, "/a", None)]
        assert recursive.told == [(CREATED, "/a/b", None)]

    on(server, story)


def test_a_persistent_watch_beside_a_recursive_one_is_asked_for_with_it() -> None:
    """By itself it would end the recursive one on a server with one mode."""
    server = Played(knows_lasting_kinds=False)

    async def story(client: Client) -> None:
        await add_both(client)
        assert server.has_asked() == [ADD_RECURSIVE, ADD_BOTH]

    on(server, story)


def test_what_a_reconnect_fires_tells_nothing_of_children() -> None:
    """Watches of children are told by themselves then, and lasting ones not at all."""
    replay = (event(CREATED, b"/a/b"), event(CHILDREN, b"/a"))
    server = Played(knows_lasting_kinds=True, replay=replay)

    async def story(client: Client) -> None:
        persistent, _ = await add_both(client)
        missing, children = Heard(), Heard()
        client._session.watches.add(client._session.watches.exists, b"/a/b", missing)
        client._session.watches.add(client._session.watches.child, b"/a", children)
        server.cut()
        await wait_reconnected(client)
        await client.sync()
        assert missing.told == [(CREATED, "/a/b", None)]
        assert children.told == [(CHILDREN, "/a", None)]
        assert persistent.told == [(CHILDREN, "/a", None)]
        server.tell(CREATED, "/a/c")
        await client.sync()
        assert persistent.told[1:] == [(CHILDREN, "/a", None)]

    on(server, story)


async def wait_reconnected(client: Client) -> None:
    async for state in client.states():
        if not state.is_connected:
            break
    await client.wait_connected()


@pytest.mark.parametrize("recursive", [False, True])
def test_one_of_two_modes_is_removed_by_its_kind(recursive: bool) -> None:
    server = Played(knows_lasting_kinds=True)

    async def story(client: Client) -> None:
        await add_both(client)
        server.has_asked()
        await client.remove_watches(
            "/a", WatchKind.RECURSIVE if recursive else WatchKind.PERSISTENT
        )
        await settle(client)
        assert server.has_asked() == [REMOVE_RECURSIVE if recursive else REMOVE_PERSISTENT]
        # The last one goes as on every server.
        await client.remove_watches(
            "/a", WatchKind.PERSISTENT if recursive else WatchKind.RECURSIVE
        )
        assert server.has_asked() == [REMOVE_ANY]

    on(server, story)


@pytest.mark.parametrize("kind", [WatchKind.DATA, WatchKind.CHILDREN])
def test_watches_of_reads_are_removed_beside_a_lasting_one_if_they_are_kept_apart(
    kind: WatchKind,
) -> None:
    server = Played(knows_lasting_kinds=True)

    async def story(client: Client) -> None:
        read = client.get if kind is WatchKind.DATA else client.children
        lasting, others = Heard(), Heard()
        await client.add_watch("/a", lasting)
        # Nothing has shown yet what kind of server it is, so the read relies on the lasting one.
        await read("/a", watch=Heard())
        server.has_asked()
        await client.remove_watches("/a", kind)
        assert server.has_asked() == []
        server.tell(CHANGED, "/a", 5)
        await client.sync()
        await read("/a", watch=Heard())
        server.has_asked()
        await client.remove_watches("/a", kind)
        assert server.has_asked() == [remove(kind)]
        # It stays while another watcher needs it.
        mine = Heard()
        for one in (mine, others):
            await read("/a", watch=one)
        server.has_asked()
        await client.remove_watches("/a", kind, watcher=mine)
        assert server.has_asked() == []
        # The lasting one is still known, and goes with everything else.
        assert len(lasting.told) == 1
        await client.remove_watches("/a", WatchKind.PERSISTENT)
        await settle(client)
        assert server.has_asked() == [REMOVE_PERSISTENT]

    on(server, story)


def test_where_kinds_are_not_known_the_persistent_watch_takes_the_place_of_the_recursive_one() -> (
    None
):
    server = Played(knows_lasting_kinds=False)

    async def story(client: Client) -> None:
        for asks_for_the_kind in (True, False):
            persistent, recursive = await add_both(client)
            server.has_asked()
            await client.remove_watches("/a", watcher=recursive)
            await settle(client)
            # Refused once on a connection, it is not asked again.
            asked = [REMOVE_RECURSIVE] * asks_for_the_kind
            assert server.has_asked() == [*asked, ADD_PERSISTENT]
            server.tell(CHILDREN, "/a")
            await client.sync()
            assert persistent.told == [(CHILDREN, "/a", None)]
            await client.remove_watches("/a")

    on(server, story)


def test_where_kinds_are_not_known_the_recursive_watch_stays_when_the_persistent_one_goes() -> None:
    server = Played(knows_lasting_kinds=False)

    async def story(client: Client) -> None:
        persistent, recursive = await add_both(client)
        server.has_asked()
        await client.remove_watches("/a", watcher=persistent)
        await settle(client)
        assert server.has_asked() == [REMOVE_PERSISTENT]
        server.tell(CREATED, "/a/b")
        await client.sync()
        assert recursive.told == [(CREATED, "/a/b", None)]
        assert persistent.told == []
        # Of children it does not tell.
        server.has_asked()
        await client.children("/a", watch=Heard())
        assert server.has_asked() == [(opcodes.GET_CHILDREN, watched(b"/a", True))]

    on(server, story)


def test_where_kinds_are_not_known_a_lasting_watch_stays_for_the_read_whose_place_it_took() -> None:
    server = Played(knows_lasting_kinds=False)

    async def story(client: Client) -> None:
        once = Heard()
        await client.get("/a", watch=once)
        await client.add_watch("/a", Heard(), recursive=True)
        server.has_asked()
        await client.remove_watches("/a", WatchKind.RECURSIVE)
        await settle(client)
        assert server.has_asked() == [REMOVE_RECURSIVE]
        server.tell(CHANGED, "/a")
        await settle(client)
        assert once.told == [(CHANGED, "/a", None)]
        assert server.has_asked() == [REMOVE_ANY]

    on(server, story)


def test_what_one_server_does_not_know_another_one_is_asked_for() -> None:
    server = Played(knows_lasting_kinds=False)

    async def story(client: Client) -> None:
        _, recursive = await add_both(client)
        await client.remove_watches("/a", watcher=recursive)
        await settle(client)
        server.cut()
        await wait_reconnected(client)
        await client.add_watch("/a", recursive, recursive=True)
        server.has_asked()
        await client.remove_watches("/a", watcher=recursive)
        await settle(client)
        assert server.has_asked() == [REMOVE_RECURSIVE, ADD_PERSISTENT]

    on(server, story)


@pytest.mark.parametrize("server", old_and_new(), ids=["old", "new"])
def test_a_watch_that_reads_rely_on_goes_when_the_last_of_them_is_over(server: Played) -> None:
    async def story(client: Client) -> None:
        lasting, once = Heard(), Heard()
        await client.add_watch("/a", lasting, recursive=True)
        await client.get("/a", watch=once)
        assert server.has_asked() == [ADD_RECURSIVE, (opcodes.GET_DATA, watched(b"/a", False))]
        await client.remove_watches("/a", WatchKind.RECURSIVE)
        await settle(client)
        assert server.has_asked() == []
        server.tell(CHANGED, "/a")
        await settle(client)
        assert once.told == [(CHANGED, "/a", None)]
        assert lasting.told == []
        assert server.has_asked() == [REMOVE_ANY]

    on(server, story)


def test_a_watch_that_reads_rely_on_goes_when_the_last_of_them_is_forgotten() -> None:
    server = Played(knows_lasting_kinds=True)

    async def story(client: Client) -> None:
        once = Heard()
        await client.add_watch("/a", Heard(), recursive=True)
        await client.get("/a", watch=once)
        await client.remove_watches("/a", WatchKind.RECURSIVE)
        server.has_asked()
        client.forget_watcher(once)
        await settle(client)
        assert server.has_asked() == [REMOVE_ANY]

    on(server, story)


@pytest.mark.parametrize("server", old_and_new(), ids=["old", "new"])
def test_a_watch_that_reads_rely_on_is_not_cut_in_halves(server: Played) -> None:
    async def story(client: Client) -> None:
        of_data, of_children = Heard(), Heard()
        await client.add_watch("/a", Heard())
        await client.get("/a", watch=of_data)
        await client.children("/a", watch=of_children)
        server.has_asked()
        for kind in (WatchKind.PERSISTENT, WatchKind.DATA):
            await client.remove_watches("/a", kind)
        await settle(client)
        assert server.has_asked() == []
        server.tell(CHILDREN, "/a")
        await settle(client)
        assert of_children.told == [(CHILDREN, "/a", None)]
        assert server.has_asked() == [REMOVE_ANY]

    on(server, story)


def test_what_is_removed_while_a_read_is_under_way_is_dropped_after_it() -> None:
    server = Played(knows_lasting_kinds=True)

    async def story(client: Client) -> None:
        await add_both(client)
        server.tell(CHANGED, "/a", 5)
        await client.sync()
        server.has_asked()
        reading = client.get("/a", watch=Heard())
        await client.remove_watches("/a", WatchKind.RECURSIVE)
        await reading
        await settle(client)
        assert server.has_asked() == [
            (opcodes.GET_DATA, watched(b"/a", True)),
            # It only waits for its turn.
            (opcodes.CHECK_WATCHES, encoded(WatchesRequest(b"/a", WatchKind.ANY))),
            REMOVE_RECURSIVE,
        ]

    on(server, story)


def test_a_read_has_a_watch_of_its_own_once_it_is_known_that_modes_are_kept_apart() -> None:
    server = Played(knows_lasting_kinds=True)

    async def story(client: Client) -> None:
        lasting, once = Heard(), Heard()
        await client.add_watch("/a", lasting)
        server.tell(CHANGED, "/a", 5)
        await client.sync()
        server.has_asked()
        await client.get("/a", watch=once)
        await client.remove_watches("/a", watcher=lasting)
        await settle(client)
        assert server.has_asked() == [
            (opcodes.GET_DATA, watched(b"/a", True)),
            REMOVE_PERSISTENT,
        ]

    on(server, story)


@pytest.mark.parametrize("kind", [WatchKind.PERSISTENT, WatchKind.RECURSIVE])
def test_a_lasting_kind_that_is_not_there_is_not_found_whatever_else_is(kind: WatchKind) -> None:
    server = Played(knows_lasting_kinds=False)

    async def story(client: Client) -> None:
        other = kind is WatchKind.PERSISTENT
        for _ in range(2):
            with pytest.raises(NoWatcherError):
                await client.remove_watches("/a", kind)
            await client.add_watch("/a", Heard(), recursive=other)
        assert client._session.watches.has(b"/a", WatchKind.ANY)

    on(server, story)


def test_a_lasting_watch_that_is_given_up_beside_another_one_is_dropped() -> None:
    server = Played(knows_lasting_kinds=True)

    async def story(client: Client) -> None:
        await client.add_watch("/a", Heard())
        adding = client.add_watch("/a", Heard(), recursive=True)
        # Now it is sent, and cannot be called back.
        await asyncio.sleep(0)
        adding.cancel()
        await settle(client)
        assert server.has_asked() == [ADD_PERSISTENT, ADD_RECURSIVE, REMOVE_RECURSIVE]

    on(server, story)


def test_after_an_event_no_server_will_do_that_has_not_seen_its_change() -> None:
    """But watches are set again as of the last answer: others of its zxid may have been lost."""
    server = Played(knows_lasting_kinds=True)

    async def story(client: Client) -> None:
        await client.add_watch("/a", Heard())
        server.tell(CHANGED, "/a", 9)
        await client.sync()
        assert client.last_zxid == 9
        server.has_asked()
        server.cut()
        await wait_reconnected(client)
        await client.sync()
        assert server.greeted_with == [0, 9]
        [(operation, body)] = server.has_asked()
        assert operation == opcodes.SET_WATCHES2
        assert SetWatchesRequest.read(Reader(body)).relative_zxid == 1

    on(server, story)
