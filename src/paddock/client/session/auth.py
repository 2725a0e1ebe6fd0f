"""Credentials of `add_auth`: sent at once, and first after every reconnect."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias

from paddock.client.requests.encoder import encoded, framed_request
from paddock.client.requests.pending_request import Failure
from paddock.client.session.transport import Transport
from paddock.errors import RemoteProtocolError
from paddock.protocol import opcodes
from paddock.protocol.records import AUTH_XID
from paddock.protocol.requests import AuthPacket

# A scheme and its credentials; some schemes need none.
Credentials: TypeAlias = tuple[str, bytes | None]


class Auth:
    """All credentials of one session, and the calls that wait for their acceptance."""

    def __init__(self) -> None:
        self._waiting: dict[Credentials, list[asyncio.Future[None]]] = {}
        # In flight on this connection, in order.
        self._sent: deque[Credentials] = deque()

    def learn(self, other: Auth) -> None:
        """Take over the credentials of another session."""
        for credentials in other._waiting:
            self._waiting.setdefault(credentials, [])

    def add(self, credentials: Credentials, transport: Transport | None) -> asyncio.Future[None]:
        """Send credentials, now if there is a connection, and on every later one."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(credentials, []).append(future)
        if transport is not None:
            self._send(transport, credentials)
        return future

    def send_all(self, transport: Transport) -> None:
        """Send everything on a new connection."""
        self._sent.clear()
        for credentials in self._waiting:
            self._send(transport, credentials)

    def accepted(self) -> None:
        """Complete the first credentials in flight."""
        if not self._sent:
            raise RemoteProtocolError("an answer to credentials that were not sent")
        waiting = self._waiting[self._sent.popleft()]
        for future in waiting:
            if not future.done():
                future.set_result(None)
        waiting.clear()

    @property
    def next_scheme(self) -> str:
        """The scheme of the first credentials in flight."""
        return self._sent[0][0] if self._sent else "unknown"

    def fail(self, failure: Failure) -> None:
        """Fail all calls that wait."""
        for waiting in self._waiting.values():
            for future in waiting:
                if not future.done():
                    future.set_exception(failure.of("add_auth"))
            waiting.clear()

    def _send(self, transport: Transport, credentials: Credentials) -> None:
        self._sent.append(credentials)
        transport.write(
            framed_request(AUTH_XID, opcodes.AUTH, encoded(AuthPacket(0, *credentials)))
        )
