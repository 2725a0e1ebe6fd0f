"""Streams and scopes of the loop, as threads without one use them."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from paddock.sync import timeout
from paddock.sync.bridge import Bridge, Owner, Scope, Stream, Twin

DEADLINE_S = 30.0


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    bridge = Bridge()
    yield bridge
    bridge.leave()


class Numbers:
    """A source of numbers, each when it is let through."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.queue: asyncio.Queue[int] = asyncio.Queue()
        self.is_over = threading.Event()

    async def stream(self, last: int | None = None) -> AsyncIterator[int]:
        try:
            while True:
                number = await self.queue.get()
                yield number
                if number == last:
                    return
        finally:
            self.is_over.set()

    def put(self, *numbers: int) -> None:
        for number in numbers:
            self.bridge.run(self.queue.put_nowait, number)


def test_a_stream_gives_everything_and_ends(bridge: Bridge) -> None:
    numbers = Numbers(bridge)
    numbers.put(1, 2, 3)
    stream = Stream(bridge, numbers.stream(last=3))
    assert list(stream) == [1, 2, 3]
    assert list(stream) == []
    assert numbers.is_over.is_set()


def test_a_stream_that_is_left_is_closed(bridge: Bridge) -> None:
    numbers = Numbers(bridge)
    numbers.put(1, 2)
    for _number in Stream(bridge, numbers.stream()):
        break
    gc.collect()
    assert numbers.is_over.wait(DEADLINE_S)


def test_a_stream_that_is_left_after_a_wait_was_given_up_is_closed_too(bridge: Bridge) -> None:
    numbers = Numbers(bridge)
    stream = Stream(bridge, numbers.stream())
    with timeout(0.05), pytest.raises(TimeoutError):
        next(stream)
    numbers.put(1)
    assert next(stream) == 1
    with timeout(0.05), pytest.raises(TimeoutError):
        next(stream)
    del stream
    assert numbers.is_over.wait(DEADLINE_S)


def test_a_stream_is_closed_with_its_scope(bridge: Bridge) -> None:
    numbers = Numbers(bridge)
    numbers.put(1)
    with Stream(bridge, numbers.stream()) as stream:
        assert next(stream) == 1
    assert numbers.is_over.is_set()
    assert list(stream) == []
    stream.close()


def test_a_wait_that_was_given_up_loses_nothing(bridge: Bridge) -> None:
    numbers = Numbers(bridge)
    stream = Stream(bridge, numbers.stream())
    for number in range(20):
        with timeout(0.005), pytest.raises(TimeoutError):
            next(stream)
        numbers.put(number)
        assert next(stream) == number


def test_closing_a_stream_ends_the_wait_of_another_thread(bridge: Bridge) -> None:
    numbers = Numbers(bridge)
    stream = Stream(bridge, numbers.stream())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(list, stream)
        numbers.put(7)
        while numbers.queue.qsize():
            bridge.run(lambda: None)
        stream.close()
        assert waiting.result(DEADLINE_S) in ([7], [])


def test_threads_take_turns_with_a_stream(bridge: Bridge) -> None:
    numbers = Numbers(bridge)
    stream = Stream(bridge, numbers.stream())
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(next, stream) for _ in range(40)]
        numbers.put(*range(40))
        assert sorted(one.result(DEADLINE_S) for one in waiting) == list(range(40))


def test_an_error_of_a_stream_comes_once_and_ends_it(bridge: Bridge) -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise ValueError("no more")

    stream = Stream(bridge, failing())
    assert next(stream) == 1
    with pytest.raises(ValueError, match="no more"):
        next(stream)
    assert list(stream) == []


class Room:
    """A scope that belongs to the task that entered it, as `asyncio.timeout` does."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.is_left = threading.Event()
        self.may_open = True

    @asynccontextmanager
    async def scope(self, *, swallows: bool = False) -> AsyncIterator[str]:
        async with asyncio.timeout(DEADLINE_S):
            task = asyncio.current_task()
            if not self.may_open:
                await asyncio.get_running_loop().create_future()
            self.log.append("entered")
            try:
                yield "value"
            except ValueError as error:
                self.log.append(f"saw {error}")
                if not swallows:
                    raise
            finally:
                assert asyncio.current_task() is task
                self.log.append("left")
                self.is_left.set()


def fail(error: Exception) -> None:
    raise error


def test_a_scope_is_entered_and_left_by_one_task(bridge: Bridge) -> None:
    room = Room()
    with Scope(bridge, room.scope()) as value:
        assert value == "value"
        assert room.log == ["entered"]
    assert room.log == ["entered", "left"]


def test_a_scope_sees_what_its_body_raises(bridge: Bridge) -> None:
    room = Room()
    error = ValueError("wrong")
    with pytest.raises(ValueError, match="wrong") as caught, Scope(bridge, room.scope()):
        raise error
    assert caught.value is error
    assert {frame.path.name for frame in caught.traceback if hasattr(frame.path, "name")} == {
        "test_bridge.py"
    }
    assert room.log == ["entered", "saw wrong", "left"]


def test_a_scope_may_take_care_of_what_its_body_raises(bridge: Bridge) -> None:
    room = Room()
    with Scope(bridge, room.scope(swallows=True)):
        fail(ValueError("minor"))
    assert room.log == ["entered", "saw minor", "left"]


def test_a_scope_that_cannot_be_entered_in_time_is_not(bridge: Bridge) -> None:
    room = Room()
    room.may_open = False
    with timeout(0.05), pytest.raises(TimeoutError), Scope(bridge, room.scope()):
        room.log.append("the body")
    assert room.log == []


def test_a_scope_that_was_entered_when_control_c_came_is_left(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room()
    call = bridge.portal.call

    def interrupted(function: Callable[[], Awaitable[object]]) -> None:
        call(function)
        raise KeyboardInterrupt

    monkeypatch.setattr(bridge.portal, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Scope(bridge, room.scope()).__enter__()
    assert room.is_left.wait(DEADLINE_S)
    assert room.log == ["entered", "left"]


def test_a_scope_is_left_also_when_the_time_is_up(bridge: Bridge) -> None:
    room = Room()
    never = asyncio.Event()
    with pytest.raises(TimeoutError), timeout(0.05), Scope(bridge, room.scope()):
        bridge.call(never.wait)
    assert room.log == ["entered", "left"]


class Service:
    """Something that has to be closed."""

    def __init__(self) -> None:
        self.is_closed = threading.Event()

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
        self._leave_scope(None, None, None)


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
