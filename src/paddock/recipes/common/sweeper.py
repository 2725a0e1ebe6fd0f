"""Deletes nodes that are not needed any more, later and in batches.

They are ephemeral, do no harm meanwhile, and go with the session. So deleting one costs a part of a
request.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Final

from paddock.client.client import Client
from paddock.errors import SessionExpiredError, TransactionFailedError
from paddock.recipes.common.retry import delete_if_exists, retry

_WAIT_SECONDS: Final = 0.5
_NODES_MAX: Final = 100


class Sweeper:
    """Deletes nodes in batches."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._paths: list[str] = []
        self._is_waiting = False

    def add(self, path: str) -> None:
        """Delete a node soon, if it exists."""
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
        # The nodes go with an expired session.
        with suppress(SessionExpiredError):
            try:
                await retry(self._client, lambda: self._delete_together(paths))
            except TransactionFailedError:
                # One of them is gone already.
                for path in paths:
                    await retry(self._client, partial(delete_if_exists, self._client, path))

    async def _delete_together(self, paths: list[str]) -> None:
        transaction = self._client.transaction()
        for path in paths:
            transaction.delete(path)
        await transaction.commit()
