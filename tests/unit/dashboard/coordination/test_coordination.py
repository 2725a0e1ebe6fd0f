"""The reader: bounded, in steps, and again only what has changed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable

import pytest

from paddock.client.operations.walk import WalkedNode
from paddock.client.results import NodeData
from paddock.dashboard.coordination import coordination as coordination_module
from paddock.dashboard.coordination.coordination import Coordination
from paddock.errors import ConnectionLostError, NoAuthError, NoNodeError
from paddock.protocol.paths import child_path, parent_path
from paddock.protocol.records import Stat

MARK = "0123456789abcdef" * 2
A, B = 1, 2


class Service:
    """A tree in memory, which counts what is read of it."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes, int, int]] = {"/": (b"", 0, 0)}
        self.read: Counter[str] = Counter()
        self.unreadable: set[str] = set()
        self.failure: Exception | None = None
        self.closed = 0
        # Called when a path was read, before it is told.
        self.on_walked: Callable[[str], None] = lambda path: None

    def add(self, path: str, data: bytes = b"", owner: int = 0) -> None:
        while path not in self.nodes:
            self.nodes[path] = (data, owner, len(self.nodes))
            path, data, owner = parent_path(path), b"", 0

    def lock(self, path: str, number: int, session: int) -> str:
        name = child_path(path, f"_c_{MARK}-lock-{number:010}")
        self.add(name, b"", session)
        return name

    def stat(self, path: str) -> Stat:
        data, owner, zxid = self.nodes[path]
        children = sum(parent_path(one) == path for one in self.nodes if one != "/")
        return Stat(zxid, zxid, 1000, 1000, 0, 0, 0, owner, len(data), children, zxid)

    async def walk(
        self, path: str = "/", *, data: bool | Callable[[str, Stat], bool] = False
    ) -> AsyncGenerator[WalkedNode, None]:
        if path not in self.nodes:
            raise NoNodeError("walk", path)
        try:
            todo = [path]
            while todo:
                here = todo.pop()
                if here not in self.nodes:
                    continue
                stat = self.stat(here)
                node = WalkedNode(here, 0, stat)
                self.read["walked"] += 1
                if callable(data) and data(here, stat):
                    node.data = self.nodes[here][0]
                if here in self.unreadable:
                    node.error, node.data = NoAuthError("get", here), None
                self.on_walked(here)
                if self.failure is not None:
                    raise self.failure
                yield node
                if node.descends and stat.num_children:
                    todo += sorted(one for one in self.nodes if parent_path(one) == here != one)
        finally:
            self.closed += 1

    async def exists(self, path: str, /) -> Stat | None:
        self.read[path] += 1
        if self.failure is not None:
            raise self.failure
        return self.stat(path) if path in self.nodes else None

    async def get(self, path: str, /) -> NodeData:
        if path in self.unreadable:
            raise NoAuthError("get", path)
        if path not in self.nodes:
            raise NoNodeError("get", path)
        return NodeData(self.nodes[path][0], self.stat(path))


async def look_all(coordination: Coordination, service: Service, limit: int = 1000) -> int:
    """Look until there is nothing more; return how many calls that took."""
    calls = 0
    while coordination.needs_look:
        assert await coordination.look(service, limit) <= limit
        calls += 1
    return calls


def sessions(coordination: Coordination) -> dict[str, list[int]]:
    return {
        one.path: [each.session for each in (*one.holders, *one.waiters)]
        for one in coordination.recipes
    }


def test_a_large_tree_takes_many_short_calls() -> None:
    async def scenario() -> None:
        service = Service()
        for number in range(300):
            service.add(f"/app/{number}")
        service.lock("/app/lock", 1, A)
        coordination = Coordination()
        await coordination.look(service, 100)
        assert (coordination.looked, coordination.is_complete) == (100, False)
        assert coordination.fields()["is_partial"]
        # The nodes above what was found are read as well.
        assert await look_all(coordination, service, 100) >= 3
        assert coordination.is_complete
        assert coordination.looked == len(service.nodes)
        assert sessions(coordination) == {"/app/lock": [A]}
        assert service.read["walked"] == len(service.nodes)

    asyncio.run(scenario())


def test_only_what_has_changed_is_read_again() -> None:
    async def scenario() -> None:
        service = Service()
        for number in range(50):
            service.add(f"/app/{number}")
        first = service.lock("/app/lock", 1, A)
        coordination = Coordination()
        await look_all(coordination, service)
        service.read.clear()
        second = service.lock("/app/lock", 2, B)
        coordination.note_change(second)
        assert not coordination.is_complete
        assert not coordination.is_partial
        await look_all(coordination, service)
        assert sessions(coordination) == {"/app/lock": [A, B]}
        del service.nodes[first]
        coordination.note_change(first)
        await look_all(coordination, service)
        assert sessions(coordination) == {"/app/lock": [B]}
        del service.nodes[second]
        coordination.note_change(second)
        await look_all(coordination, service)
        assert sessions(coordination) == {}
        assert service.read == {first: 1, second: 2}

    asyncio.run(scenario())


def test_a_new_recipe_is_found_with_its_parts() -> None:
    async def scenario() -> None:
        service = Service()
        coordination = Coordination()
        await look_all(coordination, service)
        service.add("/s", b"2")
        for path, session in ((f"/s/{MARK}", A), (f"/s-__lock__/{MARK}__lock__0000000000", B)):
            service.add(path, b"", session)
            coordination.note_change(path)
            await look_all(coordination, service)
        [recipe] = coordination.recipes
        assert (recipe.kind, recipe.limit, len(recipe.waiters)) == ("semaphore", 2, 1)

    asyncio.run(scenario())


def test_a_new_node_and_its_first_child_may_be_read_together() -> None:
    async def main() -> None:
        service = Service()
        coordination = Coordination()
        await coordination.look(service)
        name = service.lock("/locks/new", 0, A)
        for path in ("/locks", "/locks/new", name):
            coordination.note_change(path)
        await coordination.look(service)
        assert [one.path for one in coordination.recipes] == ["/locks/new"]
        del service.nodes[name]
        del service.nodes["/locks/new"]
        for path in ("/locks/new", name):
            coordination.note_change(path)
        await coordination.look(service)
        assert coordination.recipes == []

    asyncio.run(main())


def test_items_of_a_queue_are_counted_and_not_read() -> None:
    async def scenario() -> None:
        service = Service()
        items = [f"/jobs/entry-100-{number:010}" for number in range(200)]
        for item in items:
            service.add(item, b"x")
        coordination = Coordination()
        await look_all(coordination, service)
        assert [one.size for one in coordination.recipes] == [200]
        service.read.clear()
        for item in items[:150]:
            del service.nodes[item]
            coordination.note_change(item)
        await look_all(coordination, service)
        assert [one.size for one in coordination.recipes] == [50]
        # The node above tells it once for all of them.
        assert service.read == {"/jobs": 1}

    asyncio.run(scenario())


def test_a_change_during_the_walk_is_not_undone_by_what_was_read_before() -> None:
    async def scenario() -> None:
        service = Service()
        gone = service.lock("/lock", 1, A)
        coordination = Coordination()

        def vanish(path: str) -> None:
            if path == gone:
                service.nodes.pop(gone)
                coordination.note_change(gone)

        service.on_walked = vanish
        await look_all(coordination, service, 1)
        assert coordination.is_complete
        assert sessions(coordination) == {}

    asyncio.run(scenario())


def test_after_a_restart_what_is_known_stays_until_it_is_found_again() -> None:
    async def scenario() -> None:
        service = Service()
        gone = service.lock("/a/lock", 1, A)
        service.lock("/b/lock", 1, B)
        coordination = Coordination()
        await look_all(coordination, service)
        # Changes that nobody has told of.
        del service.nodes[gone]
        service.lock("/c/lock", 1, A)
        coordination.restart()
        await coordination.look(service, 1)
        assert sessions(coordination) == {"/a/lock": [A], "/b/lock": [B]}
        await look_all(coordination, service)
        assert sessions(coordination) == {"/b/lock": [B], "/c/lock": [A]}

    asyncio.run(scenario())


def test_a_lost_connection_is_raised_and_the_next_call_begins_again() -> None:
    async def scenario() -> None:
        service = Service()
        path = service.lock("/lock", 1, A)
        coordination = Coordination()
        await coordination.look(service, 1)
        service.failure = ConnectionLostError("get", "/")
        with pytest.raises(ConnectionLostError):
            await coordination.look(service)
        service.failure = None
        await look_all(coordination, service)
        assert sessions(coordination) == {"/lock": [A]}
        coordination.note_change(path)
        service.failure = ConnectionLostError("get", "/")
        with pytest.raises(ConnectionLostError):
            await coordination.look(service)
        assert not coordination.is_complete
        service.failure = None
        del service.nodes[path]
        await look_all(coordination, service)
        assert sessions(coordination) == {}

    asyncio.run(scenario())


def test_a_walk_that_is_given_up_is_closed() -> None:
    async def scenario() -> None:
        service = Service()
        service.add("/a")
        coordination = Coordination()
        await coordination.look(service, 1)
        coordination.restart()
        assert service.closed == 0
        await coordination.look(service, 1)
        assert service.closed == 1
        await coordination.close()
        assert service.closed == 2

    asyncio.run(scenario())


def test_unreadable_nodes_are_counted_and_still_stand_in_the_line() -> None:
    async def scenario() -> None:
        service = Service()
        service.add(f"/lock/_c_{MARK}-lock-0000000001", b"secret", A)
        service.unreadable = set(service.nodes)
        coordination = Coordination()
        await look_all(coordination, service)
        [recipe] = coordination.recipes
        assert (recipe.holders[0].session, recipe.holders[0].data) == (A, b"")
        assert coordination.hidden >= 1

    asyncio.run(scenario())


def test_the_number_of_kept_nodes_is_limited_and_said() -> None:
    async def scenario() -> None:
        service = Service()
        for number in range(20):
            service.lock("/lock", number, A)
        coordination = Coordination(kept_max=10)
        await look_all(coordination, service)
        assert (coordination.is_complete, coordination.is_partial) == (False, True)
        assert len(coordination.recipes[0].waiters) < 10

    asyncio.run(scenario())


def test_only_the_tree_below_the_root_counts() -> None:
    async def scenario() -> None:
        service = Service()
        service.lock("/app/lock", 1, A)
        other = service.lock("/other/lock", 1, B)
        service.add("/zookeeper/config", b"x", A)
        coordination = Coordination("/app")
        await look_all(coordination, service)
        coordination.note_change(other)
        coordination.note_change("/zookeeper/config")
        assert coordination.is_complete
        assert sessions(coordination) == {"/app/lock": [A]}
        missing = Coordination("/none")
        await look_all(missing, service)
        assert (missing.is_complete, missing.recipes) == (True, [])
        everything = Coordination()
        await look_all(everything, service)
        assert sessions(everything) == {"/app/lock": [A], "/other/lock": [B]}

    asyncio.run(scenario())


def test_plain_data_have_deadlocks_and_the_locks_between() -> None:
    async def scenario() -> None:
        service = Service()
        service.lock("/one", 1, A)
        service.lock("/two", 1, B)
        service.lock("/one", 2, B)
        service.lock("/two", 2, A)
        coordination = Coordination()
        await look_all(coordination, service)
        fields = coordination.fields()
        assert fields["deadlocks"] == [["0x1", "0x2"]]
        assert fields["deadlock_waits"] == [
            [
                {"waiter_session": "0x1", "holder_session": "0x2", "path": "/two"},
                {"waiter_session": "0x2", "holder_session": "0x1", "path": "/one"},
            ]
        ]
        assert len(fields["waits"]) == 2
        assert [one["path"] for one in fields["recipes"]] == ["/one", "/two"]
        assert (fields["looked"], fields["is_complete"]) == (len(service.nodes), True)

    asyncio.run(scenario())


def test_of_many_recipes_those_with_waiters_are_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordination_module, "RECIPES_SHOWN", 3)

    async def scenario() -> None:
        service = Service()
        for number in range(5):
            service.lock(f"/lock{number}", 1, A)
        service.lock("/lock4", 2, B)
        coordination = Coordination()
        await look_all(coordination, service)
        fields = coordination.fields()
        assert [one["path"] for one in fields["recipes"]] == ["/lock0", "/lock1", "/lock4"]
        assert fields["recipe_count"] == 5

    asyncio.run(scenario())
