"""A session renewer: opens another session when one expires, for recipes that outlive a session.

A client has one session, so another session is another client with the same settings, which the
renewer closes. The first client belongs to the user; when it is closed, no more are opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from paddock.client.client import Client
from paddock.client.states import SessionState
from paddock.errors import ConnectionLostError, SessionExpiredError
from paddock.recipes.common.retry import check_client, retry

T = TypeVar("T")


class SessionRenewer:
    """A client whose session lives, opened anew after each expiry."""

    def __init__(self, client: Client) -> None:
        check_client(client)
        # The latest one, and the user's.
        self.client = client
        self.first = client
        # One task opens the next client for all.
        self._opening = asyncio.Lock()
        self._is_over = False
        # Cancelled when the first client is closed.
        self._end = client.start_task(self._end_with_first())

    async def living(self) -> Client:
        """Return a client whose session has not expired; wait for a server if need be.

        Raises AuthenticationError if our credentials are not accepted any more, and
        SessionExpiredError if the renewer or the first client is closed.
        """
        async with self._opening:
            while self.client.state is SessionState.EXPIRED and not self._is_over:
                following = self.client.another()
                try:
                    await following.start()
                except ConnectionLostError:
                    continue
                expired, self.client = self.client, following
                if expired is not self.first:
                    await expired.close()
            if self._is_over:
                await self._close_own()
                raise SessionExpiredError("connect")
            return self.client

    async def ask(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Send an idempotent request, in one session after the other, until it is answered."""
        while True:
            client = await self.living()
            try:
                return await retry(client, partial(ask, client))
            except SessionExpiredError:
                if client.state is not SessionState.EXPIRED:
                    raise

    async def close(self) -> None:
        """Open no more clients, and close the last one, unless it is the user's."""
        self._is_over = True
        self._end.cancel()
        await asyncio.wait([self._end])

    async def _end_with_first(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self._is_over = True
            await self._close_own()

    async def _close_own(self) -> None:
        if self.client is not self.first:
            await self.client.close()
