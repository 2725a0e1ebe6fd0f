"""The scope of a grant: its body runs while the grant is held."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from paddock.client.interruption import Interruption
from paddock.recipes.locks.grant import BaseGrant, GrantEvent


class GrantScope(AbstractAsyncContextManager["GrantScope"]):
    """A scope that cancels its body when a grant is lost, and releases the grant at its end.

    It is to a grant what `asyncio.timeout` is to a deadline, and insists (`Interruption`): a body
    that has not ended after a session timeout is cancelled again.
    """

    def __init__(self, grant: BaseGrant) -> None:
        self.grant = grant
        self._interruption = Interruption(grant._client.session_timeout)
        grant.add_listener(self._on_event)
        if grant.is_lost:
            self._on_event(GrantEvent.LOST)

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        """Release the grant; raise GrantLostError unless the body has an error of its own."""
        self.grant.remove_listener(self._on_event)
        try:
            is_ours = await self._interruption.end(error)
        finally:
            await self.grant.release()
        if self.grant.is_lost and (error is None or is_ours):
            raise self.grant.lost() from error

    @property
    def task(self) -> asyncio.Task[object]:
        """The task that has entered it."""
        return self._interruption.task

    def _on_event(self, event: GrantEvent) -> None:
        if event is GrantEvent.LOST:
            self._interruption.begin(str(self.grant.lost()))
