"""Recipes with the addresses of those who hold them, and how often the tree is walked for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from paddock.client.client import Client
from paddock.dashboard import coordinating
from paddock.dashboard.coordinating import Coordinating, with_addresses
from paddock.dashboard.people import Connection
from paddock.dashboard.watched import Watched

NOBODY = cast(Client, None)


class Tree:
    """A tree of so many nodes, of which a look takes a part."""

    def __init__(self, nodes: int, look: int) -> None:
        self.nodes = nodes
        self.look_size = look
        self.left = nodes
        self.walks = self.looks = 0
        # Called in a look, when its nodes were read.
        self.on_look: Callable[[], None] = lambda: None

    @property
    def needs_look(self) -> bool:
        return self.left > 0

    async def look(self, client: Client, /) -> int:
        self.looks += 1
        await asyncio.sleep(0)
        count = min(self.look_size, self.left)
        self.left -= count
        self.on_look()
        return count

    def note_change(self, path: str, /) -> None:
        self.left += 1

    def restart(self) -> None:
        self.walks += 1
        self.left = self.nodes

    async def close(self) -> None:
        pass

    def fields(self) -> dict[str, Any]:
        return {"left": self.left}


class Person:
    """What is used of a connection: watches that are never set, because too much happens."""

    client = NOBODY

    def __init__(self) -> None:
        self.watched = Watched()


class Stage:
    """A tree that is looked at."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._person = cast(Connection, Person())
        self._coordinating = Coordinating(lambda root: tree)

    async def ask(self) -> dict[str, Any]:
        return await self._coordinating.present(self._person, "/")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinating, "NODES_PER_SECOND", 1e9)


def test_a_large_tree_that_cannot_be_followed_is_walked_to_its_end_and_not_again_at_once() -> None:
    stage = Stage(Tree(100_000, 20_000))

    async def main() -> None:
        first = await stage.ask()
        assert first == {"left": 80_000, "read_ms": None}
        for _ in range(4):
            found = await stage.ask()
        assert (found["left"], stage.tree.walks) == (0, 1)
        assert found["read_ms"] is not None
        # There may be changes that nobody has told of, but it has not paid for itself yet.
        assert await stage.ask() == found
        assert (stage.tree.walks, stage.tree.looks) == (1, 5)

    asyncio.run(main())


def test_a_walk_that_has_begun_is_gone_on_with() -> None:
    stage = Stage(Tree(100, 20))

    async def main() -> None:
        for number in range(1, 6):
            assert (await stage.ask())["left"] == 100 - 20 * number
        assert stage.tree.walks == 1

    asyncio.run(main())


def test_a_small_tree_that_cannot_be_followed_is_read_for_each_answer() -> None:
    stage = Stage(Tree(10, 20_000))

    async def main() -> None:
        for number in range(3):
            await stage.ask()
            assert stage.tree.walks == number + 1

    asyncio.run(main())


def test_those_who_ask_while_a_tree_is_walked_share_a_look() -> None:
    stage = Stage(Tree(100_000, 20_000))

    async def main() -> None:
        await asyncio.gather(*(stage.ask() for _ in range(10)))
        assert stage.tree.looks == 1

    asyncio.run(main())


def test_a_change_that_was_told_is_looked_at_by_the_next_who_asks() -> None:
    stage = Stage(Tree(100_000, 100_000))

    async def main() -> None:
        await stage.ask()
        stage.tree.note_change("/a")
        await asyncio.gather(*(stage.ask() for _ in range(10)))
        assert (stage.tree.left, stage.tree.looks, stage.tree.walks) == (0, 2, 1)

    asyncio.run(main())


def test_a_change_while_others_look_is_looked_at_for_those_who_wait() -> None:
    stage = Stage(Tree(100_000, 100_000))

    async def main() -> None:
        await stage.ask()
        stage.tree.note_change("/a")
        changes = iter(["/b"])

        def change() -> None:
            for path in changes:
                stage.tree.note_change(path)

        stage.tree.on_look = change
        await asyncio.gather(stage.ask(), stage.ask())
        assert (stage.tree.left, stage.tree.looks) == (0, 3)

    asyncio.run(main())


def test_contenders_get_the_addresses_of_their_sessions() -> None:
    fields = {
        "recipes": [
            {
                "path": "/lock",
                "holders": [{"session": "0x1", "address": None}],
                "waiters": [{"session": "0x2"}, {"session": None}],
            },
            {"path": "/queue"},
        ],
        "is_complete": True,
    }
    found = with_addresses(fields, {"0x1": "h:1", "0x2": "h:2"})
    lock, queue = found["recipes"]
    assert [one["address"] for one in lock["holders"]] == ["h:1"]
    assert [one["address"] for one in lock["waiters"]] == ["h:2", None]
    assert (queue, found["is_complete"]) == ({"path": "/queue"}, True)
