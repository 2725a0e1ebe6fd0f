"""What a stream yields, step by step, from a client that plays a scene."""

from __future__ import annotations

import asyncio
from typing import TypeVar, cast

from paddock.client.client import Client
from paddock.client.operations.streams import watch_tree
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType, SessionState
from paddock.client.watches.watches import Watcher
from paddock.errors import NoNodeError
from paddock.protocol.records import Stat

T = TypeVar("T")


class Scene:
    """A client on a tree in which a node is born while its siblings are listed."""

    def __init__(self) -> None:
        self._nodes = {"/": 1, "/old": 2}
        self._watcher: Watcher | None = None

    async def add_watch(self, path: str, watcher: Watcher, *, recursive: bool) -> None:
        assert recursive
        self._watcher = watcher

    async def children(self, path: str) -> list[str]:
        listed = [name[1:] for name in self._nodes if name != "/"] if path == "/" else []
        if "/new" not in self._nodes:
            self._nodes["/new"] = 3
            assert self._watcher is not None
            self._watcher(Event(SessionState.CONNECTED, EventType.CREATED, "/new"))
            await asyncio.sleep(0)
        return listed

    async def get(self, path: str) -> NodeData:
        if path not in self._nodes:
            raise NoNodeError("get", path)
        zxid = self._nodes[path]
        return NodeData(b"", Stat(zxid, zxid, 0, 0, 0, 0, 0, 0, 0, 0, zxid))

    def forget_watcher(self, watcher: Watcher) -> None:
        self._watcher = None


def test_what_is_told_while_the_tree_is_walked_is_not_missed() -> None:
    async def scenario() -> None:
        stream = watch_tree(cast(Client, Scene()), "/")
        async with asyncio.timeout(20):
            assert [(await anext(stream)).path for _ in range(3)] == ["/", "/old", "/new"]

    asyncio.run(scenario())


class Plantation(Scene):
    """A client on a wide tree, which counts how many nodes are read at the same time."""

    def __init__(self, size: int) -> None:
        self._nodes = {"/": 1} | {f"/{number:04}": 2 for number in range(size)}
        self._under_way = 0
        self.under_way_max = 0

    async def children(self, path: str) -> list[str]:
        names = [name[1:] for name in self._nodes if name != "/"] if path == "/" else []
        return await self._count(names)

    async def get(self, path: str) -> NodeData:
        return await self._count(await super().get(path))

    async def _count(self, answer: T) -> T:
        self._under_way += 1
        self.under_way_max = max(self.under_way_max, self._under_way)
        await asyncio.sleep(0)
        self._under_way -= 1
        return answer


def test_a_large_tree_is_read_in_parts() -> None:
    async def scenario() -> None:
        size = 2000
        client = Plantation(size)
        stream = watch_tree(cast(Client, client), "/")
        async with asyncio.timeout(20):
            found = [(await anext(stream)).path for _ in range(1 + size)]
        assert found == ["/", *(f"/{number:04}" for number in range(size))]
        assert client.under_way_max < size / 4

    asyncio.run(scenario())
