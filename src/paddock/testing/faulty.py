"""A server whose clients lose their connections, sessions and replies when a test says so.

    with FaultyServer() as server, paddock.sync.connect(server.hosts) as client:
        client.create("/worker", ephemeral=True)
        server.expire(client)

It runs in a thread of its own, so it serves tests that block and tests with an event loop alike,
and any client of ZooKeeper. In virtual time it is `VirtualServer`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

from paddock.server.config.config import ServerConfig
from paddock.testing.background import BackgroundLoop
from paddock.testing.embedded import EmbeddedServer
from paddock.testing.fault_injection import FaultInjection

# Deadlines are looked at once a tick, and a session of two ticks is granted: a test that does wait
# for a session to expire need not wait for long. The longest is the one that servers grant anyway.
_TICK_MS: Final = 100
_SESSION_MS_MAX: Final = 40_000


class FaultyServer(FaultInjection):
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
    raises RuntimeError if a callback has failed in its thread.
    """

    def __init__(
        self,
        data: Path | None = None,
        config: ServerConfig | None = None,
        *,
        seen_max: int | None = None,
    ) -> None:
        if config is None:
            config = ServerConfig(
                port=0, tick_time_ms=_TICK_MS, max_session_timeout_ms=_SESSION_MS_MAX
            )
        super().__init__(EmbeddedServer(data, config), seen_max)
        self._background = BackgroundLoop()

    def __enter__(self) -> Self:
        with self._background.beginning():
            self._background.call(self._start())
        return self

    def __exit__(self, *details: object) -> None:
        with self._background.ending(details[1]):
            self._background.call(self._stop())

    def expire(self, session: object) -> None:
        """End a session, and return when it is over and its ephemeral nodes are gone.

            server.expire(client)

        It is given as its number or by its client, ours of either kind or kazoo's. The client finds
        out when it comes back, which it tries at once. A session that is over already is fine.
        Raises ValueError for one that was never here.
        """
        self._background.call(self._expire(session))

    @property
    def is_running(self) -> bool:
        """Whether it has not been stopped."""
        return self._server.is_running

    def stop(self) -> None:
        """Stop the server; clients cannot connect until `start`."""
        self._background.call(self._server.stop())

    def start(self) -> None:
        """Start it again, with the data in its folder; without a folder it is empty."""
        self._background.call(self._server.start())
