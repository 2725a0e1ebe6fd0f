"""Streams and scopes of the loop whose items and values are wrapped for blocking code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class WrappedItems(AsyncIterator[T], Generic[S, T]):
    """An iterator whose items are wrapped, one by one."""

    def __init__(self, iterator: AsyncIterator[S], wrap: Callable[[S], T]) -> None:
        self._iterator = iterator
        self._wrap = wrap

    async def __anext__(self) -> T:
        return self._wrap(await anext(self._iterator))

    async def aclose(self) -> None:
        """Close it, if it can be closed."""
        close = getattr(self._iterator, "aclose", None)
        if close is not None:
            await close()


class WrappedValue(AbstractAsyncContextManager[T, bool | None], Generic[S, T]):
    """A scope whose value is wrapped."""

    def __init__(
        self, manager: AbstractAsyncContextManager[S, bool | None], wrap: Callable[[S], T]
    ) -> None:
        self._manager = manager
        self._wrap = wrap

    async def __aenter__(self) -> T:
        return self._wrap(await self._manager.__aenter__())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, traceback)
