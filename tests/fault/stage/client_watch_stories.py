"""Stories of watches and streams, and of what people build on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final

import pytest

from paddock.client.client import Client
from paddock.client.operations.streams import Change
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import SessionExpiredError
from tests.fault.stage.client_stories import Stories
from tests.fault.stage.cutting import LOST, SESSION_TIMEOUT_S, Stage

STORIES: Final = Stories()

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


@STORIES.tell
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


@STORIES.tell
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


@STORIES.tell
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


@STORIES.tell
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


@STORIES.tell
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


@STORIES.tell
async def updating_a_configuration(stage: Stage) -> None:
    """Two change it by its version, one behind the fault: no change is lost or made twice."""
    client, bystander = stage.client, stage.bystander
    changed = Heard()
    data, stat = await client.get("/leaf", watch=changed)
    await bystander.set("/leaf", data + b" b", version=stat.version)
    await changed.wait(1)
    data, stat = await client.get("/leaf", watch=changed)
    assert data == b"old b"
    written = await stage.attempt(client.set("/leaf", data + b" c", version=stat.version))
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


@STORIES.tell
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


@STORIES.tell
async def joining_a_group(stage: Stage) -> None:
    """A member whose reply was lost looks for itself by its session."""
    client, bystander = stage.client, stage.bystander
    if await stage.attempt(client.create("/box/me", b"here", ephemeral=True)) is LOST:
        stat = await client.exists("/box/me")
        if stat is None:
            if await stage.attempt(client.create("/box/me", b"here", ephemeral=True)) is LOST:
                return
        else:
            assert stat.ephemeral_owner == client.session_id
    stat = await bystander.exists("/box/me")
    assert stat is not None
    assert stat.ephemeral_owner == client.session_id


@STORIES.tell
async def closing(stage: Stage) -> None:
    """Closing is an answer: afterwards the session is gone, or it was said that it is left."""
    client, bystander = stage.client, stage.bystander
    await client.create("/box/mine", ephemeral=True, protected=True)
    reading = client.get("/leaf")
    await client.close()
    assert client.state is SessionState.CLOSED
    # It was asked before, so it is answered, unless there was no time for it, or for sending it.
    with suppress(SessionExpiredError):
        answer = await stage.attempt(reading)
        assert answer is LOST or answer.data == b"old"
    with pytest.raises(SessionExpiredError, match="the client is closed"):
        await client.get("/leaf")
    names = await bystander.children("/box")
    if names:
        await asyncio.sleep(2 * SESSION_TIMEOUT_S)
        names = await bystander.children("/box")
    assert names == []
