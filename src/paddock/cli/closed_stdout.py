"""The end of a command whose reader has gone, such as `paddock watch /config | head -1`."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def until_stdout_closes() -> AsyncIterator[None]:
    """Raise BrokenPipeError in this scope when stdout is a pipe and its reader has gone.

    For commands that may print nothing for hours.
    """
    try:
        number = sys.stdout.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(number).st_mode)
    except (OSError, ValueError):
        is_pipe = False
    if not is_pipe:
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
