"""The scope of a grant: its body runs while the grant is held."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from paddock.recipes.locks.grant import BaseGrant, GrantEvent


class GrantScope(AbstractAsyncContextManager["GrantScope"]):
    """A scope that cancels its body when a grant is lost, and releases the grant at its end.

    It is to a grant what `asyncio.timeout` is to a deadline.
    """

    def __init__(self, grant: BaseGrant) -> None:
        self.loop = asyncio.get_running_loop()
        task = asyncio.current_task(self.loop)
        assert task is not None, "a coroutine is always run by a task"
        self.grant = grant
        self.task: asyncio.Task[object] = task
        # How often the task had been cancelled when it came in.
        self._cancelled = task.cancelling()
        self._has_cancelled = False
        self._is_left = False
        grant.add_listener(self._on_event)
        if grant.is_lost:
            self._on_event(GrantEvent.LOST)

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        """Release the grant; raise GrantLostError unless the body has an error of its own."""
        self._is_left = True
        self.grant.remove_listener(self._on_event)
        is_ours = self._has_cancelled and self.task.uncancel() <= self._cancelled
        await self.grant.release()
        if self.grant.is_lost and (
            error is None or (is_ours and isinstance(error, asyncio.CancelledError))
        ):
            raise self.grant.lost() from error

    def _on_event(self, event: GrantEvent) -> None:
        if event is GrantEvent.LOST:
            # Not at once: it may be the task itself that has closed the client just now.
            self.loop.call_soon(self._cancel)

    def _cancel(self) -> None:
        if not self._is_left:
            self._has_cancelled = True
            self.task.cancel()
