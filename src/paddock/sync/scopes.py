"""Scopes for blocking code: an async context manager that the loop holds, as a plain one.

A scope may end before its body does, as that of a lock that is lost. A body in a thread cannot be
stopped, so leaving raises the scope's error, or adds it as the context of the body's own error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, TypeVar

from paddock.errors import SessionExpiredError
from paddock.sync.portal import Portal, cancellation

T = TypeVar("T")


class Scope(AbstractContextManager[T, bool | None]):
    """A scope that the loop holds while the body runs in this thread."""

    def __init__(
        self,
        portal: Portal,
        manager: AbstractAsyncContextManager[Any, bool | None],
        wrap: Callable[[Any], T] | None = None,
    ) -> None:
        self._portal = portal
        self._held = _Held(portal, manager)
        # How the value becomes one of blocking code.
        self._wrap = wrap

    def __enter__(self) -> T:
        try:
            value = self._portal.call(self._held.enter)
        except BaseException:
            # It may have been entered just when the wait was given up.
            self._portal.post(self._held.abandon)
            raise
        return value if self._wrap is None else self._wrap(value)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            if self._held.is_over:
                # Also when the loop is.
                return self._held.outcome(error)
            return self._portal.conclude(self._held.leave, error)
        finally:
            if error is not None:
                # Without the frames that it passed through on the loop.
                error.__traceback__ = traceback


class _Held:
    """The asyncio side of a scope: one task that enters it, waits, and leaves it.

    One, because what a scope holds may belong to the task that entered it.
    """

    def __init__(
        self, portal: Portal, manager: AbstractAsyncContextManager[Any, bool | None]
    ) -> None:
        self._portal = portal
        self._manager = manager
        self._task: asyncio.Task[bool] | None = None
        self._value: Any = None
        self._is_entered = asyncio.Event()
        self._is_left = asyncio.Event()
        # What the body raised, and whether the scope was told.
        self._error: BaseException | None = None
        self._is_told = False

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._task is not None and self._task.done()

    async def enter(self) -> Any:
        """Enter it; return its value, or raise what kept us from it."""
        self._task = task = asyncio.create_task(self._run())
        self._portal.keep(task)
        entered = asyncio.create_task(self._is_entered.wait())
        try:
            await asyncio.wait((entered, task), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as error:
            await self.abandon()
            if task.cancelled():
                for note in getattr(cancellation(task), "__notes__", ()):
                    error.add_note(note)
            raise
        finally:
            entered.cancel()
        if not self._is_entered.is_set():
            # It failed, and raises here what was wrong.
            task.result()
        return self._value

    async def leave(self, error: BaseException | None) -> bool:
        """Leave it; return whether it took care of what the body raised."""
        assert self._task is not None, "it was entered"
        self._error = error
        self._is_left.set()
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            await self.abandon()
            raise
        return self.outcome(error)

    def outcome(self, error: BaseException | None) -> bool:
        """Return the outcome once it has ended, for a body that has raised this or nothing."""
        assert self._task is not None, "it was entered"
        # By the end of the loop: what loses a scope otherwise has an error for it.
        ended = (
            SessionExpiredError("leave", None, "the client is closed")
            if self._task.cancelled()
            else self._task.exception()
        )
        if ended is None:
            return self._task.result()
        if error is None or self._is_told:
            raise ended
        # It ended by itself, and the body with an error of its own.
        _add_context(error, ended)
        return False

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
                    self._is_told = True
                    raise self._error
        except BaseException as error:
            if error is self._error:
                # The body has raised it, and raises it again.
                return False
            raise
        return self._is_told


def _add_context(error: BaseException, context: BaseException) -> None:
    """Have an error say what had happened before it, at the end of what it says already."""
    while error.__context__ is not None and error.__context__ is not context:
        error = error.__context__
    if error is not context:
        error.__context__ = context
