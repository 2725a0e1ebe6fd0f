"""One client after the other, for what has to go on when a session expires.

A client has one session. Whoever wants more than one takes the next client from here: it is like
the first one, and it is ours, to be closed by us. The first one is its owner's; when that one is
closed, there are no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from paddock.client.client import Client
from paddock.client.states import SessionState
from paddock.errors import ConnectionLostError, SessionExpiredError
from paddock.recipes.common.retry import until_answered

T = TypeVar("T")


class Keeper:
    """Has a client, and opens another one when the session of that one has expired."""

    def __init__(self, client: Client) -> None:
        # The latest one, and the one that is its owner's.
        self.client = client
        self.first = client
        # Held by who opens another one: it is for all.
        self._opening = asyncio.Lock()
        self._is_over = False
        # Cancelled when the first client is closed.
        self._end = client.start_task(self._end_with_first())

    async def living(self) -> Client:
        """Give a client whose session has not expired, as far as we know.

        While no server can be reached that takes as long as it takes. Raises AuthenticationError if
        our credentials are not accepted any more, and SessionExpiredError if there are to be no
        more clients.
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
        """Ask for something that may happen twice, of whichever client lives, until it answers."""
        while True:
            client = await self.living()
            try:
                return await until_answered(client, partial(ask, client))
            except SessionExpiredError:
                if client.state is not SessionState.EXPIRED:
                    raise

    async def close(self) -> None:
        """Give no more clients, and close the last one, if it is one of ours."""
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
