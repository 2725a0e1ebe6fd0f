"""The service's clock, as far as it can be known from here.

Our own wall clock may differ. The service stamps each write, so a write of ours tells the time, and
from then on the event loop's clock counts. A message takes time, so there is an earliest and a
latest time that it may be.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from paddock.client.client import Client
from paddock.errors import NoNodeError
from paddock.recipes.common.retry import make_container, retry

# Clocks drift, and that of a service may be set.
_SECONDS_MAX: Final = 10.0


class ServiceClock:
    """The service's time, in milliseconds, from its stamps on a node."""

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        # Its data have no other use.
        self._path = path
        # The stamp, and the loop's time just before and just after it.
        self._stamped_ms = 0
        self._asked_at = float("-inf")
        self._answered_at = float("-inf")

    async def earliest_ms(self) -> int:
        """Return a time that has surely come."""
        now = await self._compare()
        return self._stamped_ms + int((now - self._answered_at) * 1000)

    async def latest_ms(self) -> int:
        """Return a time that has surely not passed."""
        now = await self._compare()
        # The stamp is the millisecond that had begun.
        return self._stamped_ms + 1 + math.ceil((now - self._asked_at) * 1000)

    async def _compare(self) -> float:
        """Ask for the service's time if the last answer is old; return the loop's time."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._asked_at > _SECONDS_MAX:
            await retry(self._client, self._ask)
        return loop.time()

    async def _ask(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            asked_at = loop.time()
            try:
                stat = await self._client.set(self._path, b"")
            except NoNodeError:
                await make_container(self._client, self._path)
            else:
                self._stamped_ms, self._asked_at = stat.mtime, asked_at
                self._answered_at = loop.time()
                return
