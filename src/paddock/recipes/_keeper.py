"""One client after the other, for what has to go on when a session expires.

A client has one session. Whoever wants more than one takes the next client from here: it is like
the first one, and it is ours, to be closed by us. The first one is its owner's; when that one is
closed, there are no more.
"""

from __future__ import annotations

import asyncio

from paddock.client.client import Client
from paddock.client.states import SessionState
from paddock.errors import ConnectionLostError


class Keeper:
    """Has a client, and opens another one when the session of that one has expired."""

    def __init__(self, client: Client) -> None:
        # The latest one.
        self.client = client
        self._first = client
        # Held by who opens another one: it is for all.
        self._opening = asyncio.Lock()

    @property
    def is_renewed(self) -> bool:
        """Whether the client is one of ours."""
        return self.client is not self._first

    async def living(self) -> Client:
        """Give a client whose session has not expired, as far as we know.

        While no server can be reached that takes as long as it takes. Raises AuthenticationError if
        our credentials are not accepted any more.
        """
        async with self._opening:
            while self.client.state is SessionState.EXPIRED:
                following = self.client.another()
                try:
                    await following.start()
                except ConnectionLostError:
                    continue
                await self.close()
                self.client = following
            return self.client

    async def close(self) -> None:
        """Close the client, if it is one of ours."""
        if self.is_renewed:
            await self.client.close()
