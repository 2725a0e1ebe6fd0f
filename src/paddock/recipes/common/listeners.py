"""Listeners and feeds: how a recipe publishes its events.

Listeners are functions that are called at once and in order; the error of one stops none. A feed is
for any number of readers, each at its own pace. It keeps the last thousand events: a reader that is
further behind goes on with the oldest of these. It does not know its readers, so one that stops
reading costs nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, Self, TypeVar

from paddock.client.requests.arguments import check_watcher

T = TypeVar("T")

_KEPT_MAX: Final = 1000


class Listeners(Generic[T]):
    """Functions that are called with every event."""

    def __init__(self) -> None:
        self._listeners: dict[Callable[[T], None], None] = {}

    def add(self, listener: Callable[[T], None]) -> None:
        """Add a function; adding it twice is the same as once."""
        check_watcher("listener", listener)
        self._listeners[listener] = None

    def remove(self, listener: Callable[[T], None]) -> None:
        """Remove a function, if it is there."""
        self._listeners.pop(listener, None)

    def notify(self, event: T) -> None:
        """Call every listener; errors go to the event loop's exception handler."""
        for listener in list(self._listeners):
            try:
                listener(event)
            except Exception as error:
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"a listener failed on {event!r}", "exception": error}
                )


class Feed(Generic[T]):
    """The last events."""

    def __init__(self) -> None:
        self._kept: deque[T] = deque(maxlen=_KEPT_MAX)
        # How many there were in all.
        self._count = 0
        # Replaced and set when there is one more.
        self._has_more = asyncio.Event()

    def publish(self, event: T) -> None:
        """Add an event for every reader."""
        self._kept.append(event)
        self._count += 1
        self._has_more.set()
        self._has_more = asyncio.Event()

    def stream(self, is_last: Callable[[T], bool]) -> Stream[T]:
        """Return a stream of the last event, if there is one, and every later one."""
        return Stream(self, max(self._count - 1, 0), is_last)

    async def read(self, position: int) -> tuple[T, int]:
        """Wait for the event at a position, or the oldest after it; return it and its position."""
        while position >= self._count:
            await self._has_more.wait()
        oldest = self._count - len(self._kept)
        found = max(position, oldest)
        return self._kept[found - oldest], found


class Stream(Generic[T]):
    """One reader; its stream ends after the event that `is_last`."""

    def __init__(self, feed: Feed[T], position: int, is_last: Callable[[T], bool]) -> None:
        self._feed = feed
        self._position = position
        self._is_last = is_last
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._is_over:
            raise StopAsyncIteration
        event, position = await self._feed.read(self._position)
        self._position = position + 1
        self._is_over = self._is_last(event)
        return event
