"""Whoever reads our output may leave, as `head` does: noticed at once, and not at the next line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def while_read() -> AsyncIterator[None]:
    """Give a scope that ends with BrokenPipeError when nobody reads our output any more.

    That is for what may have nothing to say for hours. Only a pipe tells; anything else is taken
    for something that is read.
    """
    number = _pipe()
    if number is None:
        yield
        return
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    has_left = False

    def leave() -> None:
        nonlocal has_left
        has_left = True
        loop.remove_reader(number)
        task.cancel()

    # Nothing can be read from our end of a pipe, so this is called for an error, and there is one.
    loop.add_reader(number, leave)
    try:
        yield
    except asyncio.CancelledError:
        if has_left and task.uncancel() == 0:
            raise BrokenPipeError from None
        raise
    finally:
        loop.remove_reader(number)


def _pipe() -> int | None:
    """Give the number of stdout if it is a pipe."""
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else None
    except (OSError, ValueError):
        return None
