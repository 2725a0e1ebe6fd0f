"""Streams for blocking code: an async iterator that the loop advances, as a plain iterator.

Items that are left when the loop ends, as after the close of the last client, can still be read.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, Self, TypeVar

from paddock.errors import ConnectionLostError, SessionExpiredError
from paddock.sync import deadline
from paddock.sync.portal import Portal

T = TypeVar("T")

# How much of a stream is kept when the loop ends.
_DRAINED_MAX: Final = 10_000


class Stream(Iterator[T]):
    """An iterator that waits for the next item.

    It ends when it is closed, when its scope is left, or when its last reference goes, as after a
    `break`. A wait that ends by `timeout` or Ctrl-C loses nothing: the next one goes on. Threads
    that share a stream take turns.

        with client.watch("/config") as changes:
            for change in changes:
                print(change.data)
                break
    """

    # One that never began, since Ctrl-C came first, is over.
    _is_over = True

    def __init__(
        self, portal: Portal, iterator: AsyncIterator[Any], wrap: Callable[[Any], T] | None = None
    ) -> None:
        self._portal = portal
        self._source = _Source(iterator)
        # How an item becomes one of blocking code.
        self._wrap = wrap
        self._portal.drain_at_end(self._source)
        # How many items have arrived here.
        self._taken = 0
        self._turn = threading.Lock()
        self._is_over = False

    def __next__(self) -> T:
        seconds = deadline.remaining()
        if not self._turn.acquire(timeout=-1 if seconds is None else max(seconds, 0)):
            raise TimeoutError("next: another thread waits for it")
        try:
            item: Any = _END if self._is_over else self._next()
            if item is _END:
                raise StopIteration
            self._taken += 1
        finally:
            self._turn.release()
        return item if self._wrap is None else self._wrap(item)

    def _next(self) -> Any:
        """Take the next item from the loop, or from what it has left when it ended."""
        try:
            item: Any = self._portal.call(self._source.next, self._taken)
        except (ConnectionLostError, SessionExpiredError):
            # The portal's own: it has ended. The stream's errors come as items.
            if self._taken not in self._source.rest:
                raise
            item = _END
        if item is _END and self._taken in self._source.rest:
            item = self._source.rest[self._taken]
            if isinstance(item, Exception):
                # Once; what was left ends behind it.
                self._taken += 1
        if isinstance(item, Exception):
            try:
                raise item
            finally:
                # The error's traceback holds this frame.
                del item
        return item

    def close(self) -> None:
        """End it; a thread that waits for the next item gets StopIteration."""
        if not self._is_over and self._portal.is_open:
            self._is_over = True
            self._portal.conclude(self._source.finish)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._is_over:
            self._portal.post(self._source.finish)


# Stands for the end of a stream.
_END: Final = object()


class _Source:
    """The asyncio side of a stream: what it iterates over, and the step that is under way.

    The items are numbered. An item is kept until the next number is asked for, so none is lost when
    its waiter has given up.
    """

    def __init__(self, iterator: AsyncIterator[Any]) -> None:
        self._iterator = iterator
        self._step: asyncio.Task[Any] | None = None
        # Of the item that the step brings.
        self._number = 0
        # What was left when the loop came to its end, by number.
        self.rest: dict[int, Any] = {}

    async def next(self, number: int) -> Any:
        """Wait for the item with this number, the last one again or the one after it.

        An error is returned and not raised, to tell it from one of the portal.
        """
        if self._step is None or number > self._number:
            self._number = number
            self._step = asyncio.create_task(self._take())
            # A thread that gave up may never fetch the error, and the loop must not complain.
            self._step.add_done_callback(lambda step: step.cancelled() or step.exception())
        step = self._step
        await asyncio.wait([step])
        if step.cancelled():
            return _END
        error = step.exception()
        if error is not None:
            # Once; after that there is nothing.
            if self._step is not step:
                return _END
            self._step = None
            if isinstance(error, Exception):
                return error
        return step.result()

    async def drain(self) -> None:
        """Take what is left, for those who read it after the end."""
        for number in range(self._number, self._number + _DRAINED_MAX):
            item = self.rest[number] = await self.next(number)
            if isinstance(item, Exception):
                self.rest[number + 1] = _END
            if item is _END or isinstance(item, Exception):
                return

    async def finish(self) -> None:
        """Iterate no more, and let the iterator clean up after itself."""
        if self._step is not None:
            self._step.cancel()
            await asyncio.wait([self._step])
        if hasattr(self._iterator, "aclose"):
            await self._iterator.aclose()

    async def _take(self) -> Any:
        return await anext(self._iterator, _END)
