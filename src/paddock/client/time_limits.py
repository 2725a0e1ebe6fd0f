"""Time limits as those of `asyncio.timeout`, and what was waited for when the time was up.

    try:
        async with limited(asyncio.timeout(seconds)):
            await lock.acquire()
    except TimeoutError as error:
        print(waited_for(error))

A wait that is cancelled notes on the CancelledError what it waits for. `asyncio.timeout` makes a
TimeoutError of it. Two things are as they are here from Python 3.11.3 on
only:

* The CancelledError is the cause of the TimeoutError. Before, it is the context, until the error
  passes a handler of another one.
* It does so in a task that was cancelled before, too: a cleanup after a cancellation, with a limit,
  runs in one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def limited(scope: asyncio.Timeout) -> AsyncIterator[None]:
    """Enter a scope of `asyncio.timeout`; it raises TimeoutError in every task, with the cause."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine is always run by a task"
    before = task.cancelling()
    cancelled: asyncio.CancelledError | None = None
    try:
        async with scope:
            try:
                yield
            except asyncio.CancelledError as error:
                cancelled = error
                raise
    except (asyncio.CancelledError, TimeoutError):
        if cancelled is not None and scope.expired() and task.cancelling() <= before:
            raise TimeoutError from cancelled
        raise
    finally:
        # Its traceback has this frame: they would keep each other, and all that waited.
        cancelled = None


def waited_for(error: TimeoutError) -> list[str]:
    """Return what was waited for, as the cancelled wait has noted it.

    Before 3.11.3 it is known only until the error passes a handler of another one.
    """
    return list(getattr(error.__cause__ or error.__context__, "__notes__", ()))
