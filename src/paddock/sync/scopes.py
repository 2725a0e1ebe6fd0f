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
            # If it is over, the loop may be as well.
            if not self._held.is_over:
                self._portal.conclude(self._held.leave, error)
            return self._held.outcome(error)
        finally:
            if error is not None:
                # Without the frames that it passed through on the loop.
                error.__traceback__ = traceback


class _Step(asyncio.Future[Any]):
    """The entering or the leaving of a scope; to cancel it is to cancel the scope's task.

    So it is done when the task has cleaned up, and not before.
    """

    def __init__(self, task: asyncio.Task[bool]) -> None:
        super().__init__(loop=task.get_loop())
        self._task = task
        self.is_given_up = False

    def cancel(self, msg: Any = None) -> bool:
        if self.done():
            return False
        self.is_given_up = True
        self._task.cancel(msg)
        return True


class _Held:
    """The asyncio side of a scope: one task that enters it, waits, and leaves it.

    One, because what a scope holds may belong to the task that entered it; and no others beside
    it, since a thread waits meanwhile: entering and leaving are futures that this task completes.
    """

    def __init__(
        self, portal: Portal, manager: AbstractAsyncContextManager[Any, bool | None]
    ) -> None:
        self._portal = portal
        self._manager = manager
        self._task: asyncio.Task[bool] | None = None
        # Done when the body has ended.
        self._body: asyncio.Future[None] | None = None
        # What a thread waits for.
        self._entering: _Step | None = None
        self._leaving: _Step | None = None
        # What the body raised, and whether the scope was told.
        self._error: BaseException | None = None
        self._is_told = False

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._task is not None and self._task.done()

    def enter(self) -> asyncio.Future[Any]:
        """Enter it; return its value, or raise what kept us from it."""
        loop = asyncio.get_running_loop()
        self._body = loop.create_future()
        self._task = task = loop.create_task(self._run(self._body))
        self._entering = entering = _Step(task)
        self._portal.keep(task)
        task.add_done_callback(self._end)
        return entering

    def leave(self, error: BaseException | None) -> asyncio.Future[None]:
        """Leave it; after that there is an outcome."""
        task, body = self._task, self._body
        assert task is not None, "it was entered"
        assert body is not None, "it was entered"
        self._error = error
        self._leaving = leaving = _Step(task)
        if task.done():
            self._end(task)
        elif not body.done():
            body.set_result(None)
        return leaving

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

    async def _run(self, body: asyncio.Future[None]) -> bool:
        try:
            async with self._manager as value:
                entering, self._entering = self._entering, None
                assert entering is not None, "a thread waits for it"
                entering.set_result(value)
                await body
                if self._error is not None:
                    self._is_told = True
                    raise self._error
        except BaseException as error:
            if error is self._error:
                # The body has raised it, and raises it again.
                return False
            raise
        return self._is_told

    def _end(self, task: asyncio.Task[bool]) -> None:
        """Tell the thread that waits."""
        entering, self._entering = self._entering, None
        leaving, self._leaving = self._leaving, None
        if entering is not None:
            entering.set_exception(_cause(task, entering))
        if leaving is None:
            return
        if leaving.is_given_up:
            leaving.set_exception(asyncio.CancelledError())
        else:
            leaving.set_result(None)


def _cause(task: asyncio.Task[bool], entering: _Step) -> BaseException:
    """Return why a scope was not entered."""
    if task.cancelled():
        # Its notes say whom it waited for.
        return cancellation(task)
    error = task.exception()
    return asyncio.CancelledError() if error is None or entering.is_given_up else error


def _add_context(error: BaseException, context: BaseException) -> None:
    """Have an error say what had happened before it, at the end of what it says already."""
    while error.__context__ is not None and error.__context__ is not context:
        error = error.__context__
    if error is not context:
        error.__context__ = context
