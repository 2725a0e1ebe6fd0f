"""A server whose clients can be cut off, and lose their sessions and replies, as a test wants it.

    with FaultyServer() as server, paddock.sync.connect(server.hosts) as client:
        client.create("/worker", ephemeral=True)
        server.expire(client)

It runs in a thread of its own, so it serves tests that block and tests with an event loop alike,
and any client of ZooKeeper. In virtual time it is `VirtualServer`.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final, Self

from paddock.server.config.config import ServerConfig
from paddock.testing._breaking import Breaking
from paddock.testing.background import BackgroundLoop
from paddock.testing.embedded import EmbeddedServer
from paddock.testing.expiry import expire_session
from paddock.testing.proxy import FaultProxy

# Deadlines are looked at once a tick, and a session of two ticks is granted: a test that does wait
# for a session to expire need not wait for long. The longest is the one that servers grant anyway.
_TICK_MS: Final = 100
_SESSION_MS_MAX: Final = 40_000


class FaultyServer(Breaking):
    """A server in this process with a proxy before it, which its clients connect to.

        with FaultyServer() as server, paddock.sync.connect(server.hosts) as client:
            with server.drop_reply("create"):
                try:
                    client.create("/order")
                except paddock.ConnectionLostError:
                    print(client.exists("/order") is not None)  # True

    It takes what `EmbeddedServer` takes, but grants sessions from 0.2 seconds on unless it is given
    a config. Its methods can be called from any thread, and have taken effect when they return.
    `seen_max` is how many messages the proxy remembers; as a rule, all of them. Leaving the `with`
    raises RuntimeError if something has failed in its thread, which nobody would have seen.
    """

    def __init__(
        self,
        data: Path | None = None,
        config: ServerConfig | None = None,
        *,
        seen_max: int | None = None,
    ) -> None:
        super().__init__()
        if config is None:
            config = ServerConfig(
                port=0, tick_time_ms=_TICK_MS, max_session_timeout_ms=_SESSION_MS_MAX
            )
        self._server = EmbeddedServer(data, config)
        self._seen_max = seen_max
        self._background = BackgroundLoop()

    def __enter__(self) -> Self:
        with self._background.beginning():
            self._background.call(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._background.ending(error):
            self._background.call(self._stop())

    def expire(self, session: object) -> None:
        """End a session, and return when it is over and its ephemeral nodes are gone.

            server.expire(client)

        It is given as its number or by its client, ours of either kind or kazoo's. The client finds
        out when it comes back, which it tries at once. A session that is over already is fine.
        Raises ValueError for one that was never here.
        """
        number = self._session_of(session)
        address, password = self.proxy.server_address, self._password_of(number)
        self._background.call(expire_session(address, number, password))

    @property
    def is_running(self) -> bool:
        """Tell whether it has not been stopped."""
        return self._server.is_running

    def stop(self) -> None:
        """Stop the server; clients find nobody until `start`."""
        self._background.call(self._server.stop())

    def start(self) -> None:
        """Start it again, with the data that are in its folder; with none it is empty."""
        self._background.call(self._server.start())

    async def _start(self) -> None:
        await self._server.start()
        proxy = FaultProxy(self._server.address, seen_max=self._seen_max)
        try:
            await proxy.__aenter__()
        except BaseException:
            await self._server.stop()
            raise
        self._proxy = proxy

    async def _stop(self) -> None:
        await self.proxy.__aexit__(None, None, None)
        if self._server.is_running:
            await self._server.stop()
