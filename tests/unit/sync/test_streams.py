"""Streams of the loop, as threads without one use them."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from paddock.errors import ConnectionLostError
from paddock.sync import timeout
from paddock.sync.portal import Portal
from paddock.sync.streams import Stream

DEADLINE_S = 30.0


class Numbers:
    """A source of numbers, each when it is let through."""

    def __init__(self, portal: Portal) -> None:
        self.portal = portal
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
            self.portal.run(self.queue.put_nowait, number)


def test_a_stream_gives_everything_and_ends(portal: Portal) -> None:
    numbers = Numbers(portal)
    numbers.put(1, 2, 3)
    stream = Stream[int](portal, numbers.stream(last=3))
    assert list(stream) == [1, 2, 3]
    assert list(stream) == []
    assert numbers.is_over.is_set()


def test_a_stream_that_is_left_is_closed(portal: Portal) -> None:
    numbers = Numbers(portal)
    numbers.put(1, 2)
    for _number in Stream[int](portal, numbers.stream()):
        break
    gc.collect()
    assert numbers.is_over.wait(DEADLINE_S)


def test_a_stream_that_is_left_after_a_wait_was_given_up_is_closed_too(portal: Portal) -> None:
    numbers = Numbers(portal)
    stream = Stream[int](portal, numbers.stream())
    with timeout(0.05), pytest.raises(TimeoutError):
        next(stream)
    numbers.put(1)
    assert next(stream) == 1
    with timeout(0.05), pytest.raises(TimeoutError):
        next(stream)
    del stream
    assert numbers.is_over.wait(DEADLINE_S)


def test_a_stream_is_closed_with_its_scope(portal: Portal) -> None:
    numbers = Numbers(portal)
    numbers.put(1)
    with Stream[int](portal, numbers.stream()) as stream:
        assert next(stream) == 1
    assert numbers.is_over.is_set()
    assert list(stream) == []
    stream.close()


def test_a_wait_that_was_given_up_loses_nothing(portal: Portal) -> None:
    numbers = Numbers(portal)
    stream = Stream[int](portal, numbers.stream())
    for number in range(20):
        with timeout(0.005), pytest.raises(TimeoutError):
            next(stream)
        numbers.put(number)
        assert next(stream) == number


def test_closing_a_stream_ends_the_wait_of_another_thread(portal: Portal) -> None:
    numbers = Numbers(portal)
    stream = Stream[int](portal, numbers.stream())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(list, stream)
        numbers.put(7)
        while numbers.queue.qsize():
            portal.run(lambda: None)
        stream.close()
        assert waiting.result(DEADLINE_S) in ([7], [])


def test_threads_take_turns_with_a_stream(portal: Portal) -> None:
    numbers = Numbers(portal)
    stream = Stream[int](portal, numbers.stream())
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(next, stream) for _ in range(40)]
        numbers.put(*range(40))
        assert sorted(one.result(DEADLINE_S) for one in waiting) == list(range(40))


def test_an_error_of_a_stream_comes_once_and_ends_it(portal: Portal) -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise ValueError("no more")

    stream = Stream[int](portal, failing())
    assert next(stream) == 1
    with pytest.raises(ValueError, match="no more"):
        next(stream)
    assert list(stream) == []


class Hasty(Portal):
    """A portal that ends, once it is in a hurry, before its caller hears of the outcome."""

    is_in_a_hurry = False

    def call(self, *arguments: Any, **named: Any) -> Any:
        try:
            return super().call(*arguments, **named)
        finally:
            if self.is_in_a_hurry:
                self.end()


def test_an_error_is_told_also_if_the_loop_ends_before_it_is_heard_of() -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise ConnectionLostError("watch", "/config")

    portal = Hasty()
    stream = Stream[int](portal, failing())
    assert next(stream) == 1
    portal.is_in_a_hurry = True
    with pytest.raises(ConnectionLostError, match="watch /config"):
        next(stream)
    assert list(stream) == []


def test_an_error_that_nobody_comes_back_for_before_the_exit_is_complained_of_nowhere(
    portal: Portal, caplog: pytest.LogCaptureFixture
) -> None:
    may_fail = portal.run(asyncio.Event)
    has_failed = threading.Event()

    async def failing() -> AsyncIterator[int]:
        await may_fail.wait()
        has_failed.set()
        for number in ("too late",):
            yield int(number)

    stream = Stream[int](portal, failing())
    source = weakref.ref(stream._source)
    with timeout(0.05), pytest.raises(TimeoutError):
        next(stream)
    portal.run(may_fail.set)
    assert has_failed.wait(DEADLINE_S)
    portal.exit()
    del stream
    gc.collect()
    assert source() is None
    assert caplog.text == ""
