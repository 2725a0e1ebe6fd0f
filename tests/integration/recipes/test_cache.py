"""A cache equals the service's tree whenever both are quiet, and tells what has changed."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from paddock import CREATOR_ALL_ACL
from paddock.client.client import Client
from paddock.errors import (
    InvalidArgumentError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RecipeClosedError,
    SessionExpiredError,
    UsageError,
)
from paddock.recipes import Cache, CacheChange, ChangeKind, Snapshot
from tests.support.apis import lose_connection, recipe
from tests.support.recipes import clients, expire, run, until
from tests.support.server import Service

Tree = dict[str, tuple[bytes, int, int]]


async def tree_of(client: Client, path: str, depth: int | None) -> Tree:
    """Return the tree that the service has, as another client reads it."""
    await client.sync()
    try:
        data, stat = await client.get(path)
    except NoNodeError:
        return {}
    found = {path: (data, stat.czxid, stat.mzxid)}
    if depth != 0:
        for name in await client.children(path):
            below = None if depth is None else depth - 1
            found |= await tree_of(client, f"{path}/{name}", below)
    return found


def contents(snapshot: Snapshot) -> Tree:
    return {path: (node.data, node.stat.czxid, node.stat.mzxid) for path, node in snapshot.items()}


async def disturb(client: Client, path: str, random: Random, count: int) -> None:
    """Create, change and delete whatever there is, at random."""
    for _ in range(count):
        names = [random.choice("ab") for _ in range(random.randint(0, 3))]
        node = "/".join([path, *names])
        try:
            match random.randint(0, 3):
                case 0 | 1:
                    await client.create(node, b"%d" % random.randint(0, 9))
                case 2:
                    await client.set(node, b"%d" % random.randint(0, 9))
                case 3:
                    await client.delete(node)
        except (NodeExistsError, NoNodeError, NotEmptyError):
            pass


@pytest.mark.everywhere
@pytest.mark.parametrize("depth", [0, 1, 2, None])
def test_it_equals_the_tree_whenever_both_are_quiet(
    service: Service, path: str, depth: int | None
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            random = Random(7)
            await disturb(other, path, random, 20)
            async with recipe(Cache)(client, path, depth=depth) as cache:
                assert contents(cache.snapshot()) == await tree_of(other, path, depth)
                for _ in range(6):
                    await disturb(other, path, random, 15)
                    await cache.sync()
                    assert contents(cache.snapshot()) == await tree_of(other, path, depth)
                    assert not cache.is_stale

    run(scenario)


def test_it_equals_the_tree_after_lost_connections(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            random = Random(8)
            async with recipe(Cache)(client, path) as cache:
                for _ in range(6):
                    lose_connection(client)
                    await disturb(other, path, random, 15)
                    await cache.sync()
                    assert contents(cache.snapshot()) == await tree_of(other, path, None)
                    assert not cache.is_stale

    run(scenario)


@pytest.mark.everywhere
def test_changes_come_with_old_and_new_parents_first(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            await other.create(path, b"1")
            async with recipe(Cache)(client, path) as cache:
                changes = cache.changes()
                seen = [await anext(changes)]
                await other.create(f"{path}/a/b", b"2", make_parents=True)
                seen += [await anext(changes), await anext(changes)]
                await other.set(f"{path}/a/b", b"3")
                seen.append(await anext(changes))
                await other.delete_tree(f"{path}/a")
                seen += [await anext(changes), await anext(changes)]
                assert [shown(change, path) for change in seen] == [
                    ("created", "", None, b"1"),
                    ("created", "/a", None, b""),
                    ("created", "/a/b", None, b"2"),
                    ("changed", "/a/b", b"2", b"3"),
                    ("deleted", "/a/b", b"3", None),
                    ("deleted", "/a", b"", None),
                ]

    run(scenario)


def shown(change: CacheChange, path: str) -> tuple[str, str, bytes | None, bytes | None]:
    old = None if change.old is None else change.old.data
    new = None if change.new is None else change.new.data
    return str(change.kind), change.path.removeprefix(path), old, new


def test_readers_of_changes_always_know_the_tree_however_slow_they_are(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            random = Random(9)
            known: dict[str, Any] = {}
            async with recipe(Cache)(client, path) as cache:
                changes = cache.changes()
                for _ in range(8):
                    await disturb(other, path, random, 20)
                    await other.create(f"{path}/end", make_parents=True)
                    await cache.sync()
                    async for change in changes:
                        follow(known, change, path)
                        if change.path == f"{path}/end":
                            break
                    await other.delete(f"{path}/end")
                    await cache.sync()
                    # All but the last one, which the reader has not come to yet.
                    change = await anext(changes)
                    while change.kind is not ChangeKind.DELETED or not change.path.endswith("/end"):
                        follow(known, change, path)
                        change = await anext(changes)
                    follow(known, change, path)
                    assert known == dict(cache.snapshot())

    run(scenario)


def follow(known: dict[str, Any], change: CacheChange, path: str) -> None:
    """Take note of a change, and see that it follows from what was told before."""
    assert known.get(change.path) == change.old
    if change.new is not None:
        known[change.path] = change.new
        above = change.path.rpartition("/")[0]
        assert change.path == path or above in known
    else:
        del known[change.path]
        assert not any(one.startswith(f"{change.path}/") for one in known)


def test_a_node_that_was_made_anew_is_seen_as_another_one(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            await other.create(f"{path}/node", b"same", make_parents=True)
            async with recipe(Cache)(client, path, depth=1) as cache:
                changes = cache.changes()
                first = [await anext(changes), await anext(changes)][1].new
                async with other.transaction() as transaction:
                    transaction.delete(f"{path}/node")
                    transaction.create(f"{path}/node", b"same")
                change = await anext(changes)
                assert change.old == first
                if change.kind is ChangeKind.DELETED:
                    change = await anext(changes)
                assert change.new is not None
                assert first is not None
                assert change.new.data == b"same"
                assert change.new.stat.czxid > first.stat.czxid

    run(scenario)


def test_what_stands_below_a_node_that_was_made_anew_is_seen_whatever_is_read_first(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [writer, reader]:
            # More than are read at once, so that some are read before the node above them.
            names = [f"{path}/a/{number}" for number in range(300)]
            await writer.create(f"{path}/a", make_parents=True)
            await asyncio.gather(*(writer.create(name) for name in names))
            async with recipe(Cache)(reader, path) as cache:
                known: dict[str, Any] = {}
                changes = cache.changes()
                while len(known) < 302:
                    follow(known, await anext(changes), path)
                async with writer.transaction() as transaction:
                    for name in names:
                        transaction.delete(name)
                    transaction.delete(f"{path}/a").create(f"{path}/a", b"anew")
                    for name in names:
                        transaction.create(name, b"anew")
                await cache.sync()
                there = await tree_of(writer, path, None)
                assert contents(cache.snapshot()) == there
                while {node.data for node in known.values()} != {b"", b"anew"} or any(
                    known[name].data != b"anew" for name in [*names, f"{path}/a"]
                ):
                    follow(known, await anext(changes), path)

    run(scenario)


def test_snapshots_never_change(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            await other.create(f"{path}/a/b", b"old", make_parents=True)
            async with recipe(Cache)(client, path) as cache:
                before = cache.snapshot()
                assert cache.snapshot() is before
                await other.set(f"{path}/a/b", b"new")
                await other.create(f"{path}/a/c")
                await cache.sync()
                after = cache.snapshot()
            assert before[f"{path}/a/b"].data == b"old"
            assert before.children(f"{path}/a") == ["b"]
            assert after[f"{path}/a/b"].data == b"new"
            assert after.children(f"{path}/a") == ["b", "c"]
            assert list(after) == [path, f"{path}/a", f"{path}/a/b", f"{path}/a/c"]
            assert (len(before), len(after)) == (3, 4)
            assert f"{path}/nothing" not in after
            assert after.children(f"{path}/nothing") == []

    run(scenario)


def test_what_is_asked_of_it_is_answered_from_memory(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(f"{path}/b", b"data", make_parents=True)
            await client.create(f"{path}/a/deep", make_parents=True)
            async with recipe(Cache)(client, path, depth=1) as cache:
                node = cache.get(f"{path}/b")
                assert node is not None
                assert (node.path, node.data) == (f"{path}/b", b"data")
                assert node.stat == (await client.get(f"{path}/b")).stat
                assert cache.children(path) == ["a", "b"]
                assert cache.get(f"{path}/nothing") is None
                assert cache.children(f"{path}/nothing") == []
                assert cache.path == path
                with pytest.raises(InvalidArgumentError, match="is not below"):
                    cache.get("/elsewhere")
                with pytest.raises(InvalidArgumentError, match="is too deep for this cache"):
                    cache.get(f"{path}/a/deep")
            # What was known stays to be read.
            assert cache.children(path) == ["a", "b"]
            assert cache.is_stale

    run(scenario)


def test_a_cache_that_is_closed_stays_closed(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            cache = recipe(Cache)(client, path)
            with pytest.raises(UsageError, match="was not started"):
                await cache.wait_ready()
            cache.start()
            with pytest.raises(UsageError, match="was started before"):
                cache.start()
            await cache.wait_ready()
            reading = asyncio.ensure_future(gathered(cache))
            await cache.close()
            await cache.close()
            assert await reading == []
            with pytest.raises(RecipeClosedError, match=f"the cache of {path} was closed"):
                await cache.wait_ready()
            with pytest.raises(RecipeClosedError):
                await cache.sync()
            with pytest.raises(RecipeClosedError):
                cache.start()

    run(scenario)


async def gathered(cache: Cache) -> list[CacheChange]:
    return [change async for change in cache.changes()]


def test_an_expired_session_ends_it_with_an_error_and_what_is_known_stays(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path, b"last")
            async with recipe(Cache)(client, path) as cache:
                changes = cache.changes()
                assert (await anext(changes)).path == path
                await expire(service, client)
                with pytest.raises(SessionExpiredError):
                    await anext(changes)
                with pytest.raises(SessionExpiredError):
                    await cache.sync()
                node = cache.get(path)
                assert node is not None
                assert node.data == b"last"
                assert cache.is_stale

    run(scenario)


def test_what_may_not_be_read_is_left_out(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            await other.add_auth("digest", b"alice:secret")
            await other.create(f"{path}/open", make_parents=True)
            await other.create(f"{path}/hidden", acl=CREATOR_ALL_ACL)
            await other.create(f"{path}/hidden/below")
            await client.sync()
            async with recipe(Cache)(client, path) as cache:
                assert list(cache.snapshot()) == [path, f"{path}/open"]
            with pytest.raises(NoAuthError):
                async with recipe(Cache)(client, f"{path}/hidden"):
                    pass

    run(scenario)


def test_what_is_below_a_node_that_may_not_be_read_any_more_stays(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [writer, reader]:
            await writer.add_auth("digest", b"alice:secret")
            await writer.create(f"{path}/hidden/below", b"seen", make_parents=True)
            async with recipe(Cache)(reader, path) as cache:
                await writer.set_acl(f"{path}/hidden", CREATOR_ALL_ACL)
                # Nobody is told of that, but it is read again.
                lose_connection(reader)

                async def is_hidden() -> bool:
                    return cache.get(f"{path}/hidden") is None

                await until(is_hidden)
                await cache.sync()
                assert sorted(cache.snapshot()) == [path, f"{path}/hidden/below"]

    run(scenario)


def test_a_cache_of_everything(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            async with recipe(Cache)(client, "/", depth=1) as cache:
                assert "zookeeper" in cache.children("/")
                await client.create(path, b"here")
                await cache.sync()
                node = cache.get(path)
                assert node is not None
                assert node.data == b"here"

    run(scenario)


def test_a_large_tree_is_read_in_pieces(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path)
            await asyncio.gather(*(client.create(f"{path}/{number}") for number in range(600)))
            async with recipe(Cache)(client, path) as cache:
                assert len(cache.snapshot()) == 601
                await asyncio.gather(*(client.delete(f"{path}/{number}") for number in range(599)))
                await cache.sync()
                assert cache.children(path) == ["599"]

    run(scenario)


def test_bad_arguments_are_named(service: Service) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for named, text in (
                ({"path": "no slash"}, "path: "),
                ({"path": "/a", "depth": -1}, "depth: -1 is not 0 or more"),
                ({"path": "/a", "depth": True}, "depth: "),
            ):
                with pytest.raises(InvalidArgumentError, match=text):
                    recipe(Cache)(client, **named)

    run(scenario)
