"""The client tells the truth about lost connections: every fault, at every request of a story.

Each story asks the client for something and then looks, on another connection, at what is really
there. Wherever the connection is lost:

* What may be repeated gives the right answer, as if nothing had happened.
* Anything else gives the right answer, or says that the outcome is unknown; then it has happened
  once or not at all, and never twice.
* Nothing is called done that was not, and no error is due to an earlier attempt of our own.
* Nothing hangs, and the client is of use afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from typing import Final

import pytest

from paddock.client.client import Client
from paddock.client.states import Event, EventType, SessionState
from paddock.client.streams import Change
from paddock.errors import ConnectionLostError, NoNodeError, SessionExpiredError
from paddock.protocol.acl import ACL, ALL, CREATOR_ALL, READ, Identity
from paddock.protocol.records import Stat
from tests.fault.cutting import (
    CUTS,
    LOST,
    SESSION_TIMEOUT_S,
    Stage,
    Story,
    attempt,
    play_on,
    play_with_every_fault,
    play_with_every_two_faults,
)
from tests.support.apache import ApacheServer
from tests.support.judges import skip_or_fail
from tests.support.server import Options, ServerMissingError

SECRET: Final = b"somebody:his password"
READ_BY_ALL: Final = [ACL(READ, Identity("world", "anyone"))]


async def prepare(bystander: Client) -> None:
    # Together: they are carried out in their order.
    made = [bystander.create("/node", b"old"), bystander.create("/leaf", b"old")]
    paths = ["/node/child", "/box", "/tree", "/tree/1", "/tree/2"]
    paths += ["/tree/1/a", "/tree/1/b", "/tree/2/a", "/tree/2/b"]
    await asyncio.gather(*made, *(bystander.create(path) for path in paths))


STORIES: dict[str, Story] = {}


def story(play: Story) -> Story:
    STORIES[play.__name__.replace("_", " ")] = play
    return play


# Reading: always the right answer.


@story
async def reading(stage: Stage) -> None:
    client, bystander = stage.client, stage.bystander
    assert await client.exists("/node") == await bystander.exists("/node")
    assert await client.exists("/none") is None
    assert await client.get("/node") == await bystander.get("/node")
    with pytest.raises(NoNodeError, match="get /none: no such node"):
        await client.get("/none")
    assert sorted(await client.children("/tree")) == ["1", "2"]
    assert await client.children_with_stat("/node") == await bystander.children_with_stat("/node")


@story
async def other_reading(stage: Stage) -> None:
    client, bystander = stage.client, stage.bystander
    assert await client.get_acl("/node") == await bystander.get_acl("/node")
    assert await client.count_descendants("/tree") == 6
    assert await client.ephemerals() == []
    assert await client.who_am_i() == [("ip", "127.0.0.1")]
    await client.sync("/node")


@story
async def reading_several_as_one(stage: Stage) -> None:
    async with stage.client.multi_read() as reads:
        data, names, missing = reads.get("/leaf"), reads.children("/tree"), reads.get("/none")
    assert data.result() == await stage.bystander.get("/leaf")
    assert sorted(names.result()) == ["1", "2"]
    assert isinstance(missing.error, NoNodeError)


@story
async def many_reads_at_once(stage: Stage) -> None:
    calls = [stage.client.get("/node" if number % 2 else "/leaf") for number in range(6)]
    expected = [await stage.bystander.get("/leaf"), await stage.bystander.get("/node")] * 3
    assert await asyncio.gather(*calls) == expected


# Writing: the right answer, or that it is unknown.


def creating(
    create: Callable[[Client, str], Awaitable[str]],
) -> Story:
    async def play(stage: Stage) -> None:
        created = await attempt(create(stage.client, "/box/new-"))
        await stage.client.sync()
        names = await stage.bystander.children("/box")
        if created is LOST:
            assert len(names) <= 1
        else:
            assert [created] == [f"/box/{name}" for name in names]
            assert (await stage.bystander.get(created)).data == b"data"

    return play


STORIES["creating"] = creating(lambda client, path: client.create(path, b"data"))
STORIES["creating sequential"] = creating(
    lambda client, path: client.create(path, b"data", sequential=True)
)
STORIES["creating a container"] = creating(
    lambda client, path: client.create(path, b"data", container=True)
)
STORIES["creating with a ttl"] = creating(
    lambda client, path: client.create(path, b"data", ttl=10_000)
)


def creating_ephemeral(*, sequential: bool) -> Story:
    async def play(stage: Stage) -> None:
        client, bystander = stage.client, stage.bystander
        created = await attempt(
            client.create_with_stat("/box/new-", ephemeral=True, sequential=sequential)
        )
        # The session is the same one, before and after.
        mine = await client.ephemerals()
        assert mine == [f"/box/{name}" for name in await bystander.children("/box")]
        if created is LOST:
            assert len(mine) <= 1
        else:
            assert mine == [created.path]
            assert created.stat == await bystander.exists(created.path)
            assert created.stat.ephemeral_owner == client.session_id

    return play


STORIES["creating ephemeral"] = creating_ephemeral(sequential=False)
STORIES["creating ephemeral sequential"] = creating_ephemeral(sequential=True)


def creating_protected(*, sequential: bool, ephemeral: bool) -> Story:
    async def play(stage: Stage) -> None:
        client, bystander = stage.client, stage.bystander
        created = await client.create_with_stat(
            "/box/new-", b"data", sequential=sequential, ephemeral=ephemeral, protected=True
        )
        names = await bystander.children("/box")
        assert [created.path] == [f"/box/{name}" for name in names]
        assert created.stat == await bystander.exists(created.path)
        assert created.stat.ephemeral_owner == (client.session_id if ephemeral else 0)

    return play


for sequential in (False, True):
    for ephemeral in (False, True):
        words = ["creating protected"] + ["sequential"] * sequential + ["ephemeral"] * ephemeral
        name = " ".join(words)
        STORIES[name] = creating_protected(sequential=sequential, ephemeral=ephemeral)


@story
async def creating_with_parents(stage: Stage) -> None:
    created = await attempt(stage.client.create("/a/b/c", b"data", make_parents=True))
    while created is LOST and await stage.client.exists("/a/b/c") is None:
        # It is not refused because of what we have done before.
        created = await attempt(stage.client.create("/a/b/c", b"data", make_parents=True))
    assert created in (LOST, "/a/b/c")
    assert (await stage.bystander.get("/a/b/c")).data == b"data"
    assert (await stage.bystander.get("/a/b")).stat.cversion == 1


@story
async def creating_protected_with_parents(stage: Stage) -> None:
    created = await stage.client.create("/a/b/c", b"data", make_parents=True, protected=True)
    assert [created] == [f"/a/b/{name}" for name in await stage.bystander.children("/a/b")]


def changing(change: Callable[[Client], Awaitable[Stat]]) -> Story:
    async def play(stage: Stage) -> None:
        stat = await attempt(change(stage.client))
        await stage.client.sync()
        data, now = await stage.bystander.get("/leaf")
        acl, _ = await stage.bystander.get_acl("/leaf")
        changes = now.version + now.aversion
        if stat is LOST:
            assert changes <= 1
        else:
            assert (changes, now) == (1, stat)
        assert (data == b"new" or acl == READ_BY_ALL) == (changes == 1)

    return play


STORIES["setting"] = changing(lambda client: client.set("/leaf", b"new"))
STORIES["setting a version"] = changing(lambda client: client.set("/leaf", b"new", version=0))
STORIES["setting an acl"] = changing(lambda client: client.set_acl("/leaf", READ_BY_ALL))
STORIES["setting a version of an acl"] = changing(
    lambda client: client.set_acl("/leaf", READ_BY_ALL, version=0)
)


@story
async def setting_with_a_mark(stage: Stage) -> None:
    data = b"new, by somebody who can be recognised"
    await stage.client.sync()
    stat = await stage.client.set("/leaf", data, version=0, mark=b"recognised")
    assert await stage.bystander.get("/leaf") == (data, stat)
    assert stat.version == 1


def deleting(version: int) -> Story:
    async def play(stage: Stage) -> None:
        is_lost = await attempt(stage.client.delete("/leaf", version=version)) is LOST
        await stage.client.sync()
        assert is_lost or await stage.bystander.exists("/leaf") is None

    return play


STORIES["deleting"] = deleting(-1)
STORIES["deleting a version"] = deleting(0)


@story
async def deleting_a_tree(stage: Stage) -> None:
    deleted = await stage.client.delete_tree("/tree", batch=3)
    assert await stage.bystander.exists("/tree") is None
    if stage.is_undisturbed:
        assert deleted == 7
    else:
        assert deleted <= 7


@story
async def committing(stage: Stage) -> None:
    transaction = stage.client.transaction()
    transaction.check("/node", version=0).set("/leaf", b"new").create("/box/1")
    transaction.create("/box/n-", sequential=True).delete("/node/child")
    results = await attempt(transaction.commit())
    await stage.client.sync()
    _, leaf = await stage.bystander.get("/leaf")
    names = sorted(await stage.bystander.children("/box"))
    child = await stage.bystander.exists("/node/child")
    # As a whole, once or not at all.
    if leaf.version == 0:
        assert (names, child is None) == ([], False)
        assert results is LOST
    else:
        assert (leaf.version, len(names), child) == (1, 2, None)
        assert results is LOST or results[1] == leaf


@story
async def committing_by_a_scope(stage: Stage) -> None:
    is_done = True
    try:
        async with stage.client.transaction() as transaction:
            transaction.set("/leaf", b"new", version=0)
            transaction.create("/box/1")
    except ConnectionLostError:
        is_done = False
    await stage.client.sync()
    _, leaf = await stage.bystander.get("/leaf")
    names = await stage.bystander.children("/box")
    assert (leaf.version, names) in ([(0, []), (1, ["1"])] if not is_done else [(1, ["1"])])


@story
async def writing_and_reading_at_once(stage: Stage) -> None:
    """Requests that are under way together are carried out in their order, up to the fault."""
    client = stage.client
    writes = [client.set("/leaf", b"%d" % number) for number in range(5)]
    read = client.get("/leaf")
    more = [client.create(f"/box/{number}") for number in range(3)]
    outcomes = [await attempt(write) for write in writes]
    data, stat = await read
    created = [await attempt(one) for one in more]
    await client.sync()
    now, last = await stage.bystander.get("/leaf")
    done = sum(outcome is not LOST for outcome in outcomes)
    assert done <= last.version <= 5
    # Not one is called done behind one that is unknown: they were sent together.
    assert all(outcome is LOST for outcome in outcomes[done:])
    assert [one.version for one in outcomes if one is not LOST] == [*range(1, done + 1)]
    assert (now, stat) == (data, last)
    names = {f"/box/{name}" for name in await stage.bystander.children("/box")}
    assert {one for one in created if one is not LOST} <= names


# Who we are.


@story
async def authenticating(stage: Stage) -> None:
    client = stage.client
    await client.add_auth("digest", SECRET)
    assert ("digest", "somebody") in await client.who_am_i()
    created = await attempt(client.create("/box/mine", b"data", acl=CREATOR_ALL))
    # The credentials are known on any connection.
    assert ("digest", "somebody") in await client.who_am_i()
    if created is not LOST:
        assert (await client.get("/box/mine")).data == b"data"
        entries, _ = await client.get_acl("/box/mine")
        assert [one.permissions for one in entries] == [ALL]


# Watches.


class Heard:
    """A watcher that remembers, without what concerns the session."""

    def __init__(self) -> None:
        self.events: list[tuple[EventType, str | None]] = []
        self.states: list[SessionState] = []
        self._came = asyncio.Event()

    def __call__(self, event: Event) -> None:
        if event.type is EventType.NONE:
            self.states.append(event.state)
        else:
            self.events.append((event.type, event.path))
            self._came.set()

    async def wait(self, count: int) -> None:
        while len(self.events) < count:
            self._came.clear()
            await self._came.wait()


@story
async def watching_once(stage: Stage) -> None:
    """A one-shot watch fires once, wherever the connection is lost, and not again."""
    client, bystander = stage.client, stage.bystander
    data, missing, children = Heard(), Heard(), Heard()
    await client.get("/leaf", watch=data)
    await client.exists("/box/later", watch=missing)
    await client.children("/node", watch=children)
    await client.sync()
    await bystander.set("/leaf", b"new")
    await bystander.create("/box/later")
    await bystander.delete("/node/child")
    await data.wait(1)
    await missing.wait(1)
    await children.wait(1)
    await bystander.set("/leaf", b"newer")
    await bystander.delete("/box/later")
    await bystander.create("/node/child")
    await client.sync()
    assert data.events == [(EventType.CHANGED, "/leaf")]
    assert missing.events == [(EventType.CREATED, "/box/later")]
    assert children.events == [(EventType.CHILDREN_CHANGED, "/node")]


@story
async def missing_what_happens(stage: Stage) -> None:
    """What happens while nobody can be reached is told after the reconnect, once."""
    client, bystander = stage.client, stage.bystander
    watchers = {path: Heard() for path in ("/leaf", "/box", "/box/later", "/node/child", "/none")}
    await client.get("/leaf", watch=watchers["/leaf"])
    await client.children("/box", watch=watchers["/box"])
    await client.exists("/box/later", watch=watchers["/box/later"])
    await client.exists("/node/child", watch=watchers["/node/child"])
    await client.exists("/none", watch=watchers["/none"])
    stage.proxy.refuse(0.5)
    await bystander.set("/leaf", b"new")
    await bystander.create("/box/later")
    await bystander.delete("/node/child")
    # What was changed and is as it was is a change all the same.
    await bystander.set("/leaf", b"old")
    for path in ("/leaf", "/box", "/box/later", "/node/child"):
        await watchers[path].wait(1)
    await client.sync()
    assert {path: one.events for path, one in watchers.items()} == {
        "/leaf": [(EventType.CHANGED, "/leaf")],
        "/box": [(EventType.CHILDREN_CHANGED, "/box")],
        "/box/later": [(EventType.CREATED, "/box/later")],
        "/node/child": [(EventType.DELETED, "/node/child")],
        "/none": [],
    }
    assert all(SessionState.DISCONNECTED in one.states for one in watchers.values())
    # That one is still set.
    await bystander.create("/none")
    await watchers["/none"].wait(1)


@story
async def watching_persistently(stage: Stage) -> None:
    client, bystander = stage.client, stage.bystander
    here, below = Heard(), Heard()
    await client.add_watch("/leaf", here)
    await client.add_watch("/box", below, recursive=True)
    await client.sync()
    await bystander.set("/leaf", b"1")
    await bystander.create("/box/1")
    await client.sync()
    await bystander.set("/leaf", b"2")
    await bystander.create("/box/2")
    await client.sync()
    assert here.events == [(EventType.CHANGED, "/leaf")] * 2
    assert below.events == [(EventType.CREATED, "/box/1"), (EventType.CREATED, "/box/2")]
    await client.remove_watches("/leaf")
    await client.remove_watches("/box")
    await bystander.set("/leaf", b"3")
    await bystander.create("/box/3")
    await client.sync()
    assert (len(here.events), len(below.events)) == (2, 2)


# A stream sees the last state, whatever happens.


def followed(
    client: Client, path: str, *, recursive: bool = False
) -> aclosing[AsyncGenerator[Change, None]]:
    """Follow a node or a tree, up to the end of a scope."""
    return aclosing(client.watch(path, recursive=recursive))


@story
async def following_a_node(stage: Stage) -> None:
    client, bystander = stage.client, stage.bystander
    seen: list[bytes | None] = []
    is_written = asyncio.Event()

    async def write() -> None:
        await bystander.create("/box/config", b"0")
        for number in range(1, 4):
            await client.sync()
            await bystander.set("/box/config", b"%d" % number)
        await bystander.delete("/box/config")
        await client.sync()
        await bystander.create("/box/config", b"end")
        is_written.set()

    async with asyncio.TaskGroup() as group, followed(client, "/box/config") as changes:
        group.create_task(write())
        async for change in changes:
            seen.append(change.data)
            if change.data == b"end":
                break
        await is_written.wait()
    # Some may be left out, but they come in their order, each once.
    order = [None, b"0", b"1", b"2", b"3", None, b"end"]
    assert seen[-1] == b"end"
    remaining = iter(order)
    assert all(one in remaining for one in seen), seen


@story
async def following_a_tree(stage: Stage) -> None:
    client, bystander = stage.client, stage.bystander
    tree: dict[str, bytes] = {}
    expected = {
        "/tree": b"",
        "/tree/1": b"",
        "/tree/1/b": b"",
        "/tree/2": b"",
        "/tree/2/a": b"",
        "/tree/3": b"4",
        "/tree/3/x": b"5",
        "/tree/end": b"end",
    }

    async def write() -> None:
        await bystander.create("/tree/3", b"3")
        await client.sync()
        await bystander.set("/tree/3", b"4")
        await bystander.delete("/tree/1/a")
        await client.sync()
        await bystander.create("/tree/3/x", b"5")
        await bystander.delete("/tree/2/b")
        await client.sync()
        await bystander.create("/tree/end", b"end")

    async with (
        asyncio.TaskGroup() as group,
        followed(client, "/tree", recursive=True) as changes,
    ):
        group.create_task(write())
        async for change in changes:
            if change.data is None:
                del tree[change.path]
            else:
                tree[change.path] = change.data
            if tree == expected:
                break


# Together.


@story
async def updating_a_configuration(stage: Stage) -> None:
    """Two change it by its version, one behind the fault: no change is lost or made twice."""
    client, bystander = stage.client, stage.bystander
    changed = Heard()
    data, stat = await client.get("/leaf", watch=changed)
    await bystander.set("/leaf", data + b" b", version=stat.version)
    await changed.wait(1)
    data, stat = await client.get("/leaf", watch=changed)
    assert data == b"old b"
    written = await attempt(client.set("/leaf", data + b" c", version=stat.version))
    after, now = await client.get("/leaf")
    if written is LOST:
        assert (after, now.version) in ((b"old b", 1), (b"old b c", 2))
    else:
        assert (after, now) == (b"old b c", written)
    if now.version == 2:
        await changed.wait(2)
    await bystander.set("/leaf", after + b" d", version=now.version)
    await changed.wait(2)
    await client.sync()
    assert changed.events == [(EventType.CHANGED, "/leaf")] * 2


@story
async def producing_and_consuming(stage: Stage) -> None:
    """Protected elements of a queue: each is there once, in the order in which they were put."""
    client, bystander = stage.client, stage.bystander
    put = []
    for number in range(4):
        path = await client.create("/box/element-", b"%d" % number, sequential=True, protected=True)
        put.append(path.rpartition("/")[2])
    names = sorted(await bystander.children("/box"), key=lambda name: name[-10:])
    assert names == put
    assert [(await bystander.get(f"/box/{name}")).data for name in names] == [
        b"0",
        b"1",
        b"2",
        b"3",
    ]


@story
async def joining_a_group(stage: Stage) -> None:
    """A member whose reply was lost looks for itself by its session."""
    client, bystander = stage.client, stage.bystander
    if await attempt(client.create("/box/me", b"here", ephemeral=True)) is LOST:
        stat = await client.exists("/box/me")
        if stat is None:
            if await attempt(client.create("/box/me", b"here", ephemeral=True)) is LOST:
                return
        else:
            assert stat.ephemeral_owner == client.session_id
    stat = await bystander.exists("/box/me")
    assert stat is not None
    assert stat.ephemeral_owner == client.session_id


@story
async def closing(stage: Stage) -> None:
    """Closing is an answer: afterwards the session is gone, or it was said that it is left."""
    client, bystander = stage.client, stage.bystander
    await client.create("/box/mine", ephemeral=True, protected=True)
    reading = client.get("/leaf")
    await client.close()
    assert client.state is SessionState.CLOSED
    # It was asked before, so it is answered, unless there was no time for it, or for sending it.
    with suppress(SessionExpiredError):
        answer = await attempt(reading)
        assert answer is LOST or answer.data == b"old"
    with pytest.raises(SessionExpiredError, match="the client is closed"):
        await client.get("/leaf")
    names = await bystander.children("/box")
    if names:
        await asyncio.sleep(2 * SESSION_TIMEOUT_S)
        names = await bystander.children("/box")
    assert names == []


@pytest.mark.parametrize("name", STORIES)
def test_the_answer_is_right_whatever_happens_to_a_request(name: str) -> None:
    assert play_with_every_fault(STORIES[name], prepare) >= 27


# Of so many requests that two faults have very many places.
LONG: Final = ("following a tree", "deleting a tree")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in STORIES],
)
def test_the_answer_is_right_also_if_the_next_connection_is_lost(name: str) -> None:
    assert play_with_every_two_faults(STORIES[name], prepare) >= 20


# What is played on Apache ZooKeeper, too, in real time: one of each kind.
ON_APACHE: Final = (
    "reading",
    "creating sequential",
    "creating protected sequential ephemeral",
    "creating protected with parents",
    "setting a version",
    "setting with a mark",
    "deleting a tree",
    "committing",
    "authenticating",
    "watching once",
    "watching persistently",
    "following a node",
    "producing and consuming",
    "closing",
)


@pytest.fixture(scope="module")
def apache() -> Iterator[ApacheServer]:
    try:
        with ApacheServer(Options(durable=False)) as server:
            yield server
    except ServerMissingError as missing:
        skip_or_fail(str(missing))


@pytest.mark.judge
@pytest.mark.parametrize("name", ON_APACHE)
def test_the_answer_is_right_on_apache_zookeeper_too(apache: ApacheServer, name: str) -> None:
    place = f"/{ON_APACHE.index(name)}"
    assert asyncio.run(play_on(apache.address, place, STORIES[name], prepare, CUTS)) >= 6
