"""Time limits as those of `asyncio.timeout`, and what was waited for when the time was up.

    try:
        async with limited(asyncio.timeout(seconds)):
            await lock.acquire()
    except TimeoutError as error:
        print(waited_for(error))

Who is cancelled while it waits adds to the CancelledError, as a note, what it waits for. Then
`asyncio.timeout` makes a TimeoutError of it. Two things are as they are here from Python 3.11.3 on
only:

* The CancelledError is the cause of the TimeoutError. Before, it is the context, until the error
  passes a handler of another one.
* It does so in a task that was cancelled before, too. Who cleans up after a cancellation, and does
  not want to wait for ever, is in one.
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


def waited_for(error: TimeoutError) -> list[str]:
    """Return what was waited for, as who was cancelled by `asyncio.timeout` has noted it.

    To be asked by who has the scope, as soon as it has ended.
    """
    return list(getattr(error.__cause__ or error.__context__, "__notes__", ()))
