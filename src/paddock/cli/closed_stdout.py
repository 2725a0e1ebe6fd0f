"""Detect that the reader of stdout has gone, as `head` does, before the next write."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def until_stdout_closes() -> AsyncIterator[None]:
    """Raise BrokenPipeError in this scope when stdout is a pipe and its reader has gone.

    For commands that may print nothing for hours.
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
    """Return the file descriptor of stdout if it is a pipe."""
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else None
    except (OSError, ValueError):
        return None
