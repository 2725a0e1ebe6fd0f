"""What a page is told that takes its events slowly, and watches that bring too much."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from paddock.client.client import Client
from paddock.client.states import Event, EventType, SessionState
from paddock.dashboard import watched
from paddock.dashboard.watched import EVENTS_MAX, Stream, Watched


def test_a_slow_page_is_told_to_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "QUEUE_MAX", 3)

    async def main() -> None:
        stream = Stream(["/"])
        # The last one comes when it is to read anew already.
        for number in range(5):
            stream.change({"path": f"/{number}"})
        assert await stream.next() == [("resync", {})]
        stream.change({"path": "/5"})
        assert await stream.next() == [("changed", {"path": "/5"})]

    asyncio.run(main())


def test_of_states_and_overviews_the_newest_counts() -> None:
    async def main() -> None:
        stream = Stream(["/"])
        for number in range(3):
            stream.tell("overview", {"number": number})
        stream.change({"path": "/a"})
        assert await stream.next() == [("overview", {"number": 2}), ("changed", {"path": "/a"})]
        stream.close()
        assert await stream.next() == []

    asyncio.run(main())


class Service:
    """The client of a service where watches are set, and nothing happens."""

    def __init__(self) -> None:
        self.set: list[Callable[[Event], None]] = []
        self.forgotten: list[Callable[[Event], None]] = []

    async def add_watch(
        self, path: str, watcher: Callable[[Event], None], *, recursive: bool
    ) -> None:
        self.set.append(watcher)

    def forget_watcher(self, watcher: Callable[[Event], None]) -> None:
        self.forgotten.append(watcher)


async def _passes() -> None:
    """Let tasks do what they can do now."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("recent_s", [60.0, 0.0])
def test_a_page_reads_anew_what_was_not_watched_when_it_may_have_been_read(
    monkeypatch: pytest.MonkeyPatch, recent_s: float
) -> None:
    """Another page, or what looks for recipes, has had the same node watched just now."""
    monkeypatch.setattr(watched, "_RECENT_SECONDS", recent_s)

    async def main() -> None:
        service, pages = Service(), Watched()
        pages.use(cast(Client, service))
        pages.follow("/", lambda path: None)
        await _passes()
        stream = pages.add(["/a"])
        await _passes()
        assert len(service.set) == 1
        service.set[0](Event(SessionState.CONNECTED, EventType.DELETED, "/a"))
        [(name, fields)] = await stream.next()
        assert (name, fields.get("kind")) == (
            ("resync", None) if recent_s else ("changed", "deleted")
        )
        await pages.close()

    asyncio.run(main())


def test_a_watch_that_brings_too_much_is_given_up_at_once() -> None:
    """The answer to any other request comes behind all of its events."""

    async def main() -> None:
        service, pages = Service(), Watched()
        stream = pages.add(["/"])
        pages.use(cast(Client, service))
        await _passes()
        (busy,) = service.set
        event = Event(SessionState.CONNECTED, EventType.CHANGED, "/busy")
        for _ in range(EVENTS_MAX):
            busy(event)
        assert not service.forgotten
        busy(event)
        assert service.forgotten == [busy]
        await _passes()
        assert pages.watches == [("/", False)]
        assert ("resync", {}) in await stream.next()
        await pages.close()

    asyncio.run(main())
