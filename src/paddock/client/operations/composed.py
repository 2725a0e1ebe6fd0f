"""Calls that take several requests, and what their errors say.

This is not compiled: see `tests/unit/test_compiled_rules.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from paddock.errors import ServiceError

T = TypeVar("T")


async def compose(
    work: Callable[[], Coroutine[Any, Any, T]], first: asyncio.Future[Any] | None
) -> T:
    """Do the work; of all requests but the first, others before them may have had an effect."""
    try:
        return await work()
    except ServiceError as error:
        if not _is_of(first, error):
            error.may_be_applied = True
        raise


def _is_of(future: asyncio.Future[Any] | None, error: ServiceError) -> bool:
    if future is None or not future.done() or future.cancelled():
        return False
    return future.exception() is error
