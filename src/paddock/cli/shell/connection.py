"""The shell's session: opened in the background, so that the shell can be used meanwhile.

A client gives up when it has no session within the session timeout. A script ends then; a shell on
a terminal tries again, as zkCli does.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from paddock.api import connect
from paddock.cli.sasl import Sasl
from paddock.client.client import Client
from paddock.client.requests.encoder import REQUEST_BYTES_MAX
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import ConnectionLostError


@dataclass(frozen=True, slots=True)
class Settings:
    """What every session of the shell is opened with."""

    session_timeout: float = 30.0
    read_only: bool = False
    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None
    max_request_bytes: int = REQUEST_BYTES_MAX


# What upstream calls the states in its prompt.
_STATES: Final = {
    SessionState.DISCONNECTED: "CONNECTING",
    SessionState.OVERDUE: "CONNECTING",
    SessionState.CONNECTED: "CONNECTED",
    SessionState.SASL_AUTHENTICATED: "CONNECTED",
    SessionState.CONNECTED_READ_ONLY: "CONNECTEDREADONLY",
    SessionState.AUTH_FAILED: "AUTH_FAILED",
    SessionState.EXPIRED: "CLOSED",
    SessionState.CLOSED: "CLOSED",
}


class Connection:
    """One session with a service, from the first try to its end."""

    def __init__(
        self,
        hosts: str,
        settings: Settings,
        watcher: Callable[[Event], None],
        *,
        keeps_trying: bool,
    ) -> None:
        self._hosts = hosts
        self._settings = settings
        self._watcher = watcher
        self._keeps_trying = keeps_trying
        self._is_established = False
        self._client = self._new_client()
        self._opening = asyncio.get_running_loop().create_task(self._open())

    @property
    def state(self) -> str:
        """The state of the session, by upstream's name."""
        state = self._client.state
        # A client that has failed to find a server is followed by another one.
        is_settled = self._opening.done() or state.is_connected
        return _STATES[state] if is_settled else "CONNECTING"

    @property
    def is_alive(self) -> bool:
        """Whether there is a session, or may be one."""
        return not self._opening.done() or not self._client.state.is_final

    @property
    def connected_client(self) -> Client | None:
        """The client, if it can be asked something at this moment."""
        return self._client if self._client.state.is_connected else None

    async def client(self) -> Client:
        """Return the client once it has a session; raises ConnectionLostError if it gets none."""
        await asyncio.shield(self._opening)
        return self._client

    async def close(self) -> None:
        """End the session, or the search for one. Closing twice is fine."""
        self._opening.cancel()
        await asyncio.wait([self._opening])
        if not self._opening.cancelled():
            # `client` has reported it.
            self._opening.exception()
        await self._client.close()

    def watcher(self, event: Event) -> None:
        """Pass an event on, if upstream would tell of it."""
        if event.type is EventType.NONE:
            if event.state is SessionState.OVERDUE:
                return
            self._is_established = self._is_established or event.state.is_connected
            if not self._is_established and event.state is not SessionState.AUTH_FAILED:
                # A client that never had a session gives up; the next one is tried.
                return
        self._watcher(event)

    async def _open(self) -> None:
        while True:
            try:
                await self._client.start()
                return
            except ConnectionLostError:
                if not self._keeps_trying:
                    raise
                self._client = self._new_client()

    def _new_client(self) -> Client:
        return connect(
            self._hosts,
            session_timeout=self._settings.session_timeout,
            tls=self._settings.tls,
            sasl=self._settings.sasl,
            read_only=self._settings.read_only,
            default_watcher=self.watcher,
            max_request_bytes=self._settings.max_request_bytes,
        )
