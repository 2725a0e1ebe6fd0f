"""Stories of calls: what is asked of a client, and what is there afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from paddock.client.client import Client
from paddock.errors import ConnectionLostError, NoNodeError
from paddock.protocol.acl import ACL, ALL, CREATOR_ALL, READ, Identity
from paddock.protocol.records import Stat
from tests.fault.stage.client_stories import Stories
from tests.fault.stage.cutting import LOST, Stage, Story

STORIES: Final = Stories()

SECRET: Final = b"somebody:his password"
READ_BY_ALL: Final = [ACL(READ, Identity("world", "anyone"))]

# Reading: always the right answer.


@STORIES.tell
async def reading(stage: Stage) -> None:
    client, bystander = stage.client, stage.bystander
    assert await client.exists("/node") == await bystander.exists("/node")
    assert await client.exists("/none") is None
    assert await client.get("/node") == await bystander.get("/node")
    with pytest.raises(NoNodeError, match="get /none: no such node"):
        await client.get("/none")
    assert sorted(await client.children("/tree")) == ["1", "2"]
    assert await client.children_with_stat("/node") == await bystander.children_with_stat("/node")


@STORIES.tell
async def other_reading(stage: Stage) -> None:
    client, bystander = stage.client, stage.bystander
    assert await client.get_acl("/node") == await bystander.get_acl("/node")
    assert await client.count_descendants("/tree") == 6
    assert await client.ephemerals() == []
    assert await client.who_am_i() == [("ip", "127.0.0.1")]
    await client.sync("/node")


@STORIES.tell
async def reading_several_as_one(stage: Stage) -> None:
    async with stage.client.multi_read() as reads:
        data, names, missing = reads.get("/leaf"), reads.children("/tree"), reads.get("/none")
    assert data.result() == await stage.bystander.get("/leaf")
    assert sorted(names.result()) == ["1", "2"]
    assert isinstance(missing.error, NoNodeError)


@STORIES.tell
async def many_reads_at_once(stage: Stage) -> None:
    calls = [stage.client.get("/node" if number % 2 else "/leaf") for number in range(6)]
    expected = [await stage.bystander.get("/leaf"), await stage.bystander.get("/node")] * 3
    assert await asyncio.gather(*calls) == expected


# Writing: the right answer, or that it is unknown.


def creating(
    create: Callable[[Client, str], Awaitable[str]],
) -> Story:
    async def play(stage: Stage) -> None:
        created = await stage.attempt(create(stage.client, "/box/new-"))
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
        created = await stage.attempt(
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


@STORIES.tell
async def creating_with_parents(stage: Stage) -> None:
    created = await stage.attempt(stage.client.create("/a/b/c", b"data", make_parents=True))
    while created is LOST and await stage.client.exists("/a/b/c") is None:
        # It is not refused because of what we have done before.
        created = await stage.attempt(stage.client.create("/a/b/c", b"data", make_parents=True))
    assert created in (LOST, "/a/b/c")
    assert (await stage.bystander.get("/a/b/c")).data == b"data"
    assert (await stage.bystander.get("/a/b")).stat.cversion == 1


@STORIES.tell
async def creating_protected_with_parents(stage: Stage) -> None:
    created = await stage.client.create("/a/b/c", b"data", make_parents=True, protected=True)
    assert [created] == [f"/a/b/{name}" for name in await stage.bystander.children("/a/b")]


def changing(change: Callable[[Client], Awaitable[Stat]]) -> Story:
    async def play(stage: Stage) -> None:
        stat = await stage.attempt(change(stage.client))
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


@STORIES.tell
async def setting_with_a_mark(stage: Stage) -> None:
    data = b"new, by somebody who can be recognised"
    await stage.client.sync()
    stat = await stage.client.set("/leaf", data, version=0, mark=b"recognised")
    assert await stage.bystander.get("/leaf") == (data, stat)
    assert stat.version == 1


def deleting(version: int) -> Story:
    async def play(stage: Stage) -> None:
        is_lost = await stage.attempt(stage.client.delete("/leaf", version=version)) is LOST
        await stage.client.sync()
        assert is_lost or await stage.bystander.exists("/leaf") is None

    return play


STORIES["deleting"] = deleting(-1)
STORIES["deleting a version"] = deleting(0)


@STORIES.tell
async def deleting_a_tree(stage: Stage) -> None:
    deleted = await stage.client.delete_tree("/tree", batch=3)
    assert await stage.bystander.exists("/tree") is None
    if stage.is_undisturbed or stage.client.is_exact:
        assert deleted == 7
    else:
        assert deleted <= 7


@STORIES.tell
async def committing(stage: Stage) -> None:
    transaction = stage.client.transaction()
    transaction.check("/node", version=0).set("/leaf", b"new").create("/box/1")
    transaction.create("/box/n-", sequential=True).delete("/node/child")
    results = await stage.attempt(transaction.commit())
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


@STORIES.tell
async def committing_by_a_scope(stage: Stage) -> None:
    is_done = True
    try:
        async with stage.client.transaction() as transaction:
            transaction.set("/leaf", b"new", version=0)
            transaction.create("/box/1")
    except ConnectionLostError:
        assert not stage.client.is_exact
        is_done = False
    await stage.client.sync()
    _, leaf = await stage.bystander.get("/leaf")
    names = await stage.bystander.children("/box")
    assert (leaf.version, names) in ([(0, []), (1, ["1"])] if not is_done else [(1, ["1"])])


@STORIES.tell
async def writing_and_reading_at_once(stage: Stage) -> None:
    """Requests that are under way together are carried out in their order, up to the fault."""
    client = stage.client
    writes = [client.set("/leaf", b"%d" % number) for number in range(5)]
    read = client.get("/leaf")
    more = [client.create(f"/box/{number}") for number in range(3)]
    outcomes = [await stage.attempt(write) for write in writes]
    data, stat = await read
    created = [await stage.attempt(one) for one in more]
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


@STORIES.tell
async def authenticating(stage: Stage) -> None:
    client = stage.client
    await client.add_auth("digest", SECRET)
    assert ("digest", "somebody") in await client.who_am_i()
    created = await stage.attempt(client.create("/box/mine", b"data", acl=CREATOR_ALL))
    # The credentials are known on any connection.
    assert ("digest", "somebody") in await client.who_am_i()
    if created is not LOST:
        assert (await client.get("/box/mine")).data == b"data"
        entries, _ = await client.get_acl("/box/mine")
        assert [one.permissions for one in entries] == [ALL]
