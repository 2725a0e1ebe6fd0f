"""A cache in every trouble: in the end it is what the service has, and so is what it has told."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

import pytest

from paddock.api import connect
from paddock.client.client import Client
from paddock.errors import NodeExistsError, NoNodeError, NotEmptyError, TransactionFailedError
from paddock.protocol.paths import parent_path
from paddock.recipes import Cache
from paddock.recipes.cache.tree import CachedNode
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Scene, Story
from tests.fault.stage.recipe_troubles import TROUBLES

END: Final = "/recipe/end"


async def prepare(observer: Client) -> None:
    await observer.create("/recipe")
    await observer.create("/recipe/old", b"1")


async def write(me: Player) -> None:
    """Change what the other one follows, for longer than it may be cut off."""
    client = me.client
    await asyncio.sleep(0.5)
    await client.create("/recipe/new", b"1")
    await asyncio.sleep(2.0)
    await client.delete("/recipe/old")
    # The same node by its path, its data and its version, and yet another one.
    await client.create("/recipe/old", b"1")
    await asyncio.sleep(12.0)
    await client.set("/recipe/new", b"2")
    await client.create("/recipe/new/below")
    await client.create(END)
    # Not before the other one has come to its end, or never will.
    await asyncio.sleep(12.0)


async def follow(me: Player) -> None:
    """Keep a copy by what the cache tells, until the end."""
    known: dict[str, tuple[bytes, int, int]] = {}
    async with Cache(me.client, "/recipe") as cache:
        async for change in cache.changes():
            old = change.old and (change.old.data, change.old.stat.czxid, change.old.stat.mzxid)
            assert known.pop(change.path, None) == old
            if change.new is not None:
                stat = change.new.stat
                assert old is None or stat.mzxid > old[2], "it went back to an older state"
                known[change.path] = (change.new.data, stat.czxid, stat.mzxid)
            if change.path == END:
                break
        await cache.sync()
        assert not cache.is_stale
        me.note("told", known)
        me.note(
            "cached",
            {
                path: (node.data, node.stat.czxid, node.stat.mzxid)
                for path, node in cache.snapshot().items()
            },
        )


async def judge(scene: Scene) -> None:
    there = {}
    for path in ("/recipe", "/recipe/old", "/recipe/new", "/recipe/new/below", END):
        data, stat = await scene.observer.get(path)
        there[path] = (data, stat.czxid, stat.mzxid)
    for note in scene.notes:
        assert note.value == there, note.what
    if scene.is_undisturbed:
        assert [note.what for note in scene.notes] == ["told", "cached"]


STORY: Final = Story(
    subject=follow, rivals=(write,), prepare=prepare, judge=judge, remains=("/recipe/*",)
)


# It writes nothing: it has no node to delete, and no reply is lost for good.
BESIDE_THE_POINT: Final = {"its nodes deleted", "every cancellation on a lost connection"}


@pytest.mark.parametrize("trouble", [name for name in TROUBLES if name not in BESIDE_THE_POINT])
def test_a_cache_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](STORY) > 1


def test_it_is_stale_from_the_loss_of_the_connection_until_everything_was_read_again() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(server.hosts) as other, connect(proxy.hosts) as client:
                await other.create("/node/gone", make_parents=True)
                async with Cache(client, "/node") as cache:
                    stale = [cache.is_stale]
                    proxy.refuse()
                    proxy.cut()
                    await asyncio.sleep(1)
                    stale.append(cache.is_stale)
                    await other.delete("/node/gone")
                    await other.set("/node", b"meanwhile")
                    assert list(cache.snapshot()) == ["/node", "/node/gone"]
                    proxy.heal()
                    await cache.sync()
                    assert [*stale, cache.is_stale] == [False, True, False]
                    node = cache.get("/node")
                    assert node is not None
                    assert node.data == b"meanwhile"
                    assert list(cache.snapshot()) == ["/node"]

    run_virtually(main())


async def make_and_delete(client: Client, random: Random, path: str = "/recipe") -> None:
    """Have branches of a small tree come and go, faster than anybody reads them."""
    for _ in range(random.randint(20, 80)):
        node = path + "".join("/" + random.choice("ab") for _ in range(random.randint(0, 3)))
        transaction = client.transaction()
        try:
            match random.randint(0, 7):
                case 0 | 1:
                    await client.create(node, random.randbytes(1), make_parents=True)
                case 2:
                    await client.set(node, random.randbytes(1))
                case 3 | 4:
                    await client.delete(node)
                case 5:
                    await client.delete_tree(node)
                case 6:
                    await asyncio.sleep(random.uniform(0.0, 0.01))
                case 7:
                    transaction.delete(f"{node}/a").delete(node).create(node).create(f"{node}/a")
                    await transaction.commit()
        except (NodeExistsError, NoNodeError, NotEmptyError, TransactionFailedError):
            pass


async def keep_a_tree(cache: Cache, known: dict[str, CachedNode], random: Random) -> None:
    """Follow a cache, slowly, and see that what was told is a tree at every moment."""
    async for change in cache.changes():
        assert known.get(change.path) == change.old
        if change.new is not None:
            known[change.path] = change.new
            assert change.path == cache.path or parent_path(change.path) in known
        else:
            del known[change.path]
            assert not any(path.startswith(f"{change.path}/") for path in known)
        if random.random() < 0.2:
            await asyncio.sleep(random.uniform(0.0, 0.003))


def contents(known: dict[str, CachedNode]) -> dict[str, tuple[bytes, int, int]]:
    return {path: (node.data, node.stat.czxid, node.stat.mzxid) for path, node in known.items()}


@pytest.mark.parametrize("seed", range(12))
def test_branches_that_come_and_go_while_they_are_read(seed: int) -> None:
    async def play() -> None:
        random = Random(seed)
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(server.hosts) as one,
            connect(server.hosts) as two,
            connect(proxy.hosts) as reader,
        ):
            proxy.when(operation="get", times=None).delay(random.uniform(0.0, 0.003))
            async with Cache(reader, "/recipe") as cache:
                known: dict[str, CachedNode] = {}
                following = asyncio.ensure_future(keep_a_tree(cache, known, random))
                for _ in range(4):
                    await asyncio.gather(make_and_delete(one, random), make_and_delete(two, random))
                    await asyncio.sleep(random.choice((0.0, 1.0)))
                await one.create("/recipe/end", make_parents=True)
                await cache.sync()
                async with Cache(one, "/recipe") as fresh:
                    assert contents(dict(cache.snapshot())) == contents(dict(fresh.snapshot()))
                await asyncio.wait([following], timeout=5.0)
                if following.done():
                    following.result()
                assert known == dict(cache.snapshot())
                following.cancel()

    run_virtually(play())
