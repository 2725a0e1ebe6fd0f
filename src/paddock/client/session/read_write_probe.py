"""Looks for a read-write server while the session is attached to a read-only one.

A server that has lost its peers may serve reads. The client returns to the others as soon as they
serve again: it sends them the four-letter word `isro`, one after the other, with growing pauses.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

from paddock.client.session.hosts import Backoff, Host, HostRing, Randomness

# The first question comes soon, then they come ever more rarely, but several in a session timeout:
# so long a session of the service lives without us.
_FIRST_PAUSE: Final = 0.1
_PAUSES_MIN: Final = 4
_ANSWER_SECONDS: Final = 1.0


class ReadWriteProbe:
    """Asks servers whether they can be written to."""

    def __init__(self, hosts: HostRing, random: Randomness, tls: ssl.SSLContext | None) -> None:
        self._hosts = hosts
        self._random = random
        self._tls = tls

    async def find(self, session_timeout: float) -> Host:
        """Wait for a read-write server, and return it."""
        longest = session_timeout / _PAUSES_MIN / len(self._hosts)
        pauses = Backoff(self._random, _FIRST_PAUSE, max(longest, _FIRST_PAUSE))
        while True:
            for host in self._hosts:
                await asyncio.sleep(pauses.next())
                if await self.is_read_write(host):
                    return host

    async def is_read_write(self, host: Host) -> bool:
        """Return whether `host` accepts writes; False if it cannot be reached."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._sender(host) == b"rw"
        except (OSError, TimeoutError, ValueError):
            return False

    async def _sender(self, host: Host) -> bytes:
        reader, writer = await asyncio.open_connection(host.name, host.port, ssl=self._tls)
        try:
            writer.write(b"isro")
            return await reader.read(16)
        finally:
            writer.transport.abort()
