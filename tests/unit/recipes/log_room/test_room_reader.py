"""How a room is followed, whatever its watch tells."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

import pytest

from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType, SessionState
from paddock.client.watches.watches import Watcher
from paddock.errors import NoNodeError
from paddock.protocol.records import Stat
from paddock.recipes.log_room import room_reader
from paddock.recipes.log_room.room_reader import ChannelDeleted, ChannelOpened, LogEntry, RoomReader

T = TypeVar("T")

CHANNEL = "/room/_c_00-channel-0000000000"


class FakeService:
    """Nodes by their paths, each with the number of its creation, and the one who watches them."""

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {"/room": 1}
        self.watcher: Watcher
        self.lists = 0

    def tell(self, kind: EventType, path: str) -> None:
        self.watcher(Event(SessionState.CONNECTED, kind, path))

    def append(self, number: int) -> str:
        path = f"{CHANNEL}/_c_00-entry-{number:010}"
        self.nodes[path] = len(self.nodes) + 1
        return path

    # What a reader asks of a client.

    def add_watch(
        self, path: str, watcher: Watcher, *, recursive: bool = False
    ) -> asyncio.Future[None]:
        assert recursive
        self.watcher = watcher
        return _answered(None)

    def forget_watcher(self, watcher: Watcher) -> None:
        assert watcher is self.watcher

    def children(self, path: str) -> asyncio.Future[list[str]]:
        self.lists += 1
        names = [one.removeprefix(f"{path}/") for one in self.nodes if one.startswith(f"{path}/")]
        return _answered([name for name in names if "/" not in name])

    def exists(self, path: str) -> asyncio.Future[Stat | None]:
        return _answered(_stat(self.nodes[path]) if path in self.nodes else None)

    def get(self, path: str) -> asyncio.Future[NodeData]:
        if path not in self.nodes:
            future: asyncio.Future[NodeData] = asyncio.get_running_loop().create_future()
            future.set_exception(NoNodeError("get", path))
            return future
        return _answered(NodeData(path[-1:].encode(), _stat(self.nodes[path])))


def _answered(result: T) -> asyncio.Future[T]:
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    future.set_result(result)
    return future


def _stat(zxid: int) -> Stat:
    return Stat(zxid, zxid, 0, 0, 0, 0, 0, 0, 0, 0, zxid)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await scenario

    asyncio.run(main())


def reader_of(service: FakeService) -> RoomReader:
    return RoomReader(cast(Client, service), "/room", None)


def test_what_is_told_again_is_told_once() -> None:
    async def scenario() -> None:
        service = FakeService()
        events = reader_of(service).events()
        service.nodes[CHANNEL] = 2
        first = service.append(0)
        assert await anext(events) == ChannelOpened(0)
        assert await anext(events) == LogEntry(0, 0, b"0", 3)
        for path in (CHANNEL, first, CHANNEL, service.append(1), first):
            service.tell(EventType.CREATED, path)
        assert await anext(events) == LogEntry(0, 1, b"1", 4)
        service.tell(EventType.DELETED, CHANNEL)
        # Of a channel that is gone nothing comes back.
        service.tell(EventType.CREATED, CHANNEL)
        service.tell(EventType.DELETED, CHANNEL)
        assert await anext(events) == ChannelDeleted(0, is_complete=True)
        second = CHANNEL[:-1] + "1"
        service.tell(EventType.CREATED, second)
        assert await anext(events) == ChannelOpened(1)
        await events.aclose()

    run(scenario())


def test_more_events_than_are_kept_make_it_list_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_reader, "_EVENTS_MAX", 3)

    async def scenario() -> None:
        service = FakeService()
        events = reader_of(service).events()
        service.nodes[CHANNEL] = 2
        assert await anext(events) == ChannelOpened(0)
        before = service.lists
        for number in range(10):
            service.tell(EventType.CREATED, service.append(number))
        assert [await anext(events) for _ in range(10)] == [
            LogEntry(0, number, b"%d" % number, 3 + number) for number in range(10)
        ]
        assert service.lists == before + 2
        await events.aclose()

    run(scenario())


def test_a_deleted_entry_is_skipped_and_the_end_of_its_channel_says_so() -> None:
    async def scenario() -> None:
        service = FakeService()
        events = reader_of(service).events()
        service.nodes[CHANNEL] = 2
        assert await anext(events) == ChannelOpened(0)
        gone = service.append(0)
        del service.nodes[gone]
        for path in (gone, service.append(1)):
            service.tell(EventType.CREATED, path)
        assert await anext(events) == LogEntry(0, 1, b"1", 3)
        service.tell(EventType.DELETED, CHANNEL)
        assert await anext(events) == ChannelDeleted(0, is_complete=False)
        await events.aclose()

    run(scenario())
