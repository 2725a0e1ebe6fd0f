"""Waiting for compiled code: a method returns a future, or None when nothing is left to wait for.

It has no coroutines: mypyc's pass an exception on in a way that Python deprecates from 3.12 on, so
where warnings are errors, a cancelled one raises DeprecationWarning in place of CancelledError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until_none(look: Callable[[], asyncio.Future[None] | None]) -> None:
    """Wait for the futures that `look` returns, one by one, until it returns None."""
    while (change := look()) is not None:
        await change
