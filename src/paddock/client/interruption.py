"""Cancels the body of a scope for a reason of the scope, as `asyncio.timeout` does.

The rules:

* Others who cancel the task win: a CancelledError is ours only if nobody else has cancelled it.
* It insists. A body that has not ended after a pause is cancelled again, since a cancellation can
  be swallowed: `asyncio.wait_for` of Python 3.11 returns the result that has come in the same
  moment. The pause is for what a body does on its way out; a longer way out has to be shielded.
* Nothing is left behind: a cancellation that was not delivered when the body ended is taken back.
"""

from __future__ import annotations

import asyncio


class Interruption:
    """The cancellation of the task that made it, until it is over."""

    def __init__(self, pause: float) -> None:
        self.loop = asyncio.get_running_loop()
        task = asyncio.current_task(self.loop)
        assert task is not None, "a coroutine is always run by a task"
        self.task: asyncio.Task[object] = task
        self._pause = pause
        # How often the task had been cancelled when the scope began, and by us since then.
        self._before = task.cancelling()
        self._count = 0
        # The next cancellation.
        self._next: asyncio.Handle | None = None
        self._is_over = False

    def begin(self, reason: str) -> None:
        """Cancel the task soon, and again after each pause; the CancelledError has the reason."""
        if self._next is None and not self._is_over:
            # Not at once: it may be the task itself that has closed the client just now.
            self._next = self.loop.call_soon(self._cancel, reason)

    @property
    def is_by_others(self) -> bool:
        """Whether others have cancelled the task, once we are over."""
        return self.task.cancelling() > self._before

    async def end(self, error: BaseException | None) -> bool:
        """Stop; return whether the error is a CancelledError of ours alone."""
        self._is_over = True
        if self._next is not None:
            self._next.cancel()
        for _ in range(self._count):
            self.task.uncancel()
        if isinstance(error, asyncio.CancelledError):
            return self._count > 0 and not self.is_by_others
        if self._count:
            await self._take_back()
        return False

    async def _take_back(self) -> None:
        """Let a cancellation come that was not delivered: Python 3.13 is the first to drop it."""
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if self.is_by_others:
                raise

    def _cancel(self, reason: str) -> None:
        self._count += 1
        self.task.cancel(reason)
        self._next = self.loop.call_later(self._pause, self._cancel, reason)
