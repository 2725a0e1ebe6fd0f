"""Deletes what has served its purpose, some time later and many nodes at once.

For ephemeral nodes that nobody waits for any more: they do no harm meanwhile, and if we die first
they go with the session. So a node costs a part of a request, instead of one of its own.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from paddock.client.client import Client
from paddock.errors import NoNodeError, SessionExpiredError, TransactionFailedError
from paddock.recipes.common.retry import until_answered

_WAIT_SECONDS: Final = 0.5
_NODES_MAX: Final = 100


class Sweeper:
    """Deletes nodes of ours that nobody needs any more."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._paths: list[str] = []
        self._is_waiting = False

    def add(self, path: str) -> None:
        """Delete a node soon; that it is not there is fine."""
        if self._client.state.is_final:
            # It goes with the session.
            return
        self._paths.append(path)
        if len(self._paths) >= _NODES_MAX:
            self._client.start_task(self._sweep())
        elif not self._is_waiting:
            self._is_waiting = True
            self._client.start_task(self._sweep_later())

    async def _sweep_later(self) -> None:
        try:
            await asyncio.sleep(_WAIT_SECONDS)
        finally:
            self._is_waiting = False
        await self._sweep()

    async def _sweep(self) -> None:
        paths, self._paths = self._paths, []
        if not paths:
            return
        try:
            await until_answered(self._client, lambda: self._delete_together(paths))
        except TransactionFailedError:
            # One of them was deleted by somebody, or by us before a reply was lost.
            await self._delete_each(paths)
        except SessionExpiredError:
            # And with it the nodes.
            pass

    async def _delete_together(self, paths: list[str]) -> None:
        transaction = self._client.transaction()
        for path in paths:
            transaction.delete(path)
        await transaction.commit()

    async def _delete_each(self, paths: list[str]) -> None:
        try:
            for path in paths:
                await until_answered(self._client, partial(self._delete, path))
        except SessionExpiredError:
            pass

    async def _delete(self, path: str) -> None:
        try:
            await self._client.delete(path)
        except NoNodeError:
            pass
