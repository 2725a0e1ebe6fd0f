"""News in their order, for any number of readers, each at its own pace.

The last thousand are kept, and no more: a reader that is further behind goes on with the oldest of
these. Readers are known to nobody, so one that stops reading costs nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, Self, TypeVar

T = TypeVar("T")

_KEPT_MAX: Final = 1000


class Feed(Generic[T]):
    """What was told, as far back as it is kept."""

    def __init__(self) -> None:
        self._kept: deque[T] = deque(maxlen=_KEPT_MAX)
        # How many there have been.
        self._count = 0
        # Set when there is one more; then another one takes its place.
        self._has_more = asyncio.Event()

    def tell(self, news: T) -> None:
        """Give every reader one more."""
        self._kept.append(news)
        self._count += 1
        self._has_more.set()
        self._has_more = asyncio.Event()

    def stream(self, is_last: Callable[[T], bool]) -> Stream[T]:
        """Give the last piece of news, if there was any, then every newer one, to the last one."""
        return Stream(self, max(self._count - 1, 0), is_last)

    async def read(self, position: int) -> tuple[T, int]:
        """Give what is at a position, or the oldest after it, once there is any; and where."""
        while position >= self._count:
            await self._has_more.wait()
        oldest = self._count - len(self._kept)
        found = max(position, oldest)
        return self._kept[found - oldest], found


class Stream(Generic[T]):
    """One reader."""

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
        news, position = await self._feed.read(self._position)
        self._position = position + 1
        self._is_over = self._is_last(news)
        return news
