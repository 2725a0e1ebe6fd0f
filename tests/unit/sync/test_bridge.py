"""What generated classes stand on: owners that are closed, scopes that threads enter."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from paddock.sync.bridge import Bridge, Owner, Twin

DEADLINE_S = 30.0


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    bridge = Bridge()
    yield bridge
    bridge.leave()


class Service:
    """Something that has to be closed."""

    def __init__(self) -> None:
        self.is_closed = threading.Event()

    async def __aenter__(self) -> None: ...

    async def close(self) -> None:
        self.is_closed.set()


def test_an_owner_that_nobody_refers_to_is_closed_with_a_warning() -> None:
    bridge = Bridge()
    service = bridge.own(Service)
    owner = Owner(bridge, service)
    with pytest.warns(ResourceWarning, match="Owner was not closed"):
        del owner
    assert service.is_closed.wait(DEADLINE_S)
    bridge.portal._thread.join(DEADLINE_S)
    assert not bridge.portal._thread.is_alive()


def test_an_owner_that_cannot_be_made_leaves_no_thread() -> None:
    def refuse() -> Service:
        raise ValueError("refused")

    bridge = Bridge()
    with pytest.raises(ValueError, match="refused"):
        bridge.own(refuse)
    assert not bridge.portal._thread.is_alive()


class Door(Twin["AsyncDoor"]):
    """Written as the tool would write it."""

    def __enter__(self) -> int:
        return self._enter_scope(self._inner)

    def __exit__(self, *raised: object) -> None:
        super().__exit__(None, None, None)


class AsyncDoor:
    """A scope that gives each who enters a number, and is left by the number."""

    def __init__(self) -> None:
        self.entered: dict[asyncio.Task[object] | None, int] = {}
        self.left: list[int] = []

    async def __aenter__(self) -> int:
        self.entered[asyncio.current_task()] = len(self.entered)
        return self.entered[asyncio.current_task()]

    async def __aexit__(self, *raised: object) -> None:
        self.left.append(self.entered[asyncio.current_task()])


def test_each_thread_leaves_the_scope_that_it_has_entered(bridge: Bridge) -> None:
    inner = AsyncDoor()
    door = Door(bridge, inner)
    with ThreadPoolExecutor(1) as pool:
        with door as ours:
            theirs = pool.submit(door.__enter__).result(DEADLINE_S)
            with door as again:
                pass
        pool.submit(door.__exit__, None, None, None).result(DEADLINE_S)
    assert inner.left == [again, ours, theirs]
    assert door._scopes == {}
