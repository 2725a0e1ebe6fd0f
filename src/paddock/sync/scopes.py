"""Scopes for blocking code: an async context manager that the loop holds, as a plain one."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Generic, TypeVar, cast

from paddock.sync.portal import Portal

T = TypeVar("T")


class Scope(AbstractContextManager[T, bool | None]):
    """A scope that the loop holds while the body runs in this thread."""

    def __init__(
        self, portal: Portal, manager: AbstractAsyncContextManager[T, bool | None]
    ) -> None:
        self._portal = portal
        self._held = _Held(manager)

    def __enter__(self) -> T:
        try:
            return self._portal.call(self._held.enter)
        except BaseException:
            # It may have been entered just when the wait was given up.
            self._portal.post(self._held.abandon)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            return self._portal.conclude(self._held.leave, error)
        finally:
            if error is not None:
                # Without the frames that it passed through on the loop.
                error.__traceback__ = traceback


class _Held(Generic[T]):
    """The asyncio side of a scope: one task that enters it, waits, and leaves it.

    One, because what a scope holds may belong to the task that entered it.
    """

    def __init__(self, manager: AbstractAsyncContextManager[T, bool | None]) -> None:
        self._manager = manager
        self._task: asyncio.Task[bool] | None = None
        self._value: T | None = None
        self._is_entered = asyncio.Event()
        self._is_left = asyncio.Event()
        # What the body raised.
        self._error: BaseException | None = None

    async def enter(self) -> T:
        """Enter it; give its value, or raise what kept us from it."""
        self._task = task = asyncio.create_task(self._run())
        entered = asyncio.create_task(self._is_entered.wait())
        try:
            await asyncio.wait((entered, task), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.abandon()
            raise
        finally:
            entered.cancel()
        if not self._is_entered.is_set():
            # It failed, and raises here what was wrong.
            task.result()
        return cast(T, self._value)

    async def leave(self, error: BaseException | None) -> bool:
        """Leave it; tell whether it took care of what the body raised."""
        assert self._task is not None, "it was entered"
        self._error = error
        self._is_left.set()
        return await self._task

    async def abandon(self) -> None:
        """Leave it, or enter it no more: nobody knows of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> bool:
        try:
            async with self._manager as self._value:
                self._is_entered.set()
                await self._is_left.wait()
                if self._error is not None:
                    raise self._error
        except BaseException as error:
            if error is self._error:
                # The body has raised it, and raises it again.
                return False
            raise
        return self._error is not None
