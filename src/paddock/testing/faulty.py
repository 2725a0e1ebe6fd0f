"""A server whose clients lose their connections, sessions and replies when a test says so.

    with FaultyServer() as server, paddock.sync.connect(server.hosts) as client:
        client.create("/worker", ephemeral=True)
        server.expire(client)

It runs in a thread of its own, so it serves tests that block and tests with an event loop alike,
and any client of ZooKeeper. In virtual time it is `VirtualServer`.

The proxy in front of the server knows a client by its session, from the handshake. So a client is
given by its session: as one of ours, one of kazoo's, or as the number of the session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Self

from paddock.protocol import operations
from paddock.server.config.config import ServerConfig
from paddock.testing.conversation import SeenReply, SeenRequest
from paddock.testing.embedded import EmbeddedServer
from paddock.testing.expiry import expire_session
from paddock.testing.faults import Fault, Partition
from paddock.testing.listening import BackgroundLoop, Listening
from paddock.testing.proxy import FaultProxy

# Deadlines are looked at once a tick, and a session of two ticks is granted: a test that does wait
# for a session to expire need not wait for long. The longest is the one that servers grant anyway.
_TICK_MS: Final = 100
_SESSION_MS_MAX: Final = 40_000

# Names of clients for several operations, or for one with another name.
_CREATES: Final = tuple(row.name for row in operations.TABLE if row.audit == "create")
_CHILDREN: Final = tuple(row.name for row in operations.TABLE if row.method == "children")
_ALIKE: Final[dict[str, tuple[str, ...]]] = {
    "create": _CREATES,
    "children": _CHILDREN,
    "get_children": _CHILDREN,
    "get_acls": ("get_acl",),
    "set_acls": ("set_acl",),
    "transaction": ("multi",),
    "commit": ("multi",),
}
_NAMES: Final = frozenset(operations.NAMES.values())

_TOLD_MAX: Final = 50


class FaultInjection(Listening):
    """A server behind a proxy, through which its clients connect."""

    def __init__(self, server: EmbeddedServer, seen_max: int | None = None) -> None:
        self._server = server
        self._seen_max = seen_max
        self._proxy: FaultProxy | None = None

    @property
    def proxy(self) -> FaultProxy:
        """The proxy that all clients connect through, for other faults and for what it saw."""
        assert self._proxy is not None, "the server has not been started"
        return self._proxy

    @property
    def address(self) -> tuple[str, int]:
        """Where clients are to connect."""
        return self.proxy.address

    def partition(self, client: object, *, silent: bool = False) -> Partition:
        """Keep a client from the server, until `heal` or the end of a `with`.

            with server.partition(client):
                async for state in client.states():
                    if not state.is_connected:
                        break
            await client.wait_connected()

        The client is one of ours, of either kind, or one of kazoo's, or the number of a session.
        Its connection is cut, and so are those on which it tries to come back. With `silent` they
        stay open and say nothing, as when packets are lost: it finds out after a while. Once its
        session timeout is over, so is its session. Raises ValueError if it has no session here.
        """
        return self.proxy.partition(self._session_of(client), silent=silent)

    def drop_reply(
        self, operation: str, path: str | None = None, *, client: object = None, nth: int = 1
    ) -> AbstractContextManager[Fault]:
        """Lose the reply to a request together with the connection.

            with server.drop_reply("create", "/order"):
                print(await client.create("/order"))  # /order
            async with paddock.connect(server.hosts, exact=False) as ordinary:
                with server.drop_reply("create", "/doubt"):
                    try:
                        await ordinary.create("/doubt")
                    except paddock.ConnectionLostError:
                        print(await ordinary.exists("/doubt") is not None)  # True

        In an exact session, as Paddock's clients have it, the call only takes longer.

        It happens once, to the first request that fits, or the nth. The operation is called as in
        clients: `create` (of any kind of node), `delete`, `exists`, `get`, `set`, `get_children`,
        `get_acl`, `set_acl`, `sync`, `multi`; or as `FaultProxy.when` calls it. The path is the
        server's, with the chroot of a client. With a `client`, only its requests are meant. Leaving
        the `with` raises AssertionError if no such request came. Without a `with` it waits for one
        until `heal`.
        """
        names = _ALIKE.get(operation, (operation,))
        if not _NAMES.issuperset(names):
            known = sorted(_NAMES | set(_ALIKE))
            raise ValueError(f"operation: there is no {operation!r}; there are {known}")
        session = None if client is None else self._session_of(client)
        proxy = self.proxy

        def fits(request: SeenRequest) -> bool:
            return request.name in names and session in (None, request.session_id)

        # A ping is never meant, unless it is called by its name.
        named = names[0] if len(names) == 1 else None
        fault = proxy.when(operation=named, path=path, predicate=fits, nth=nth).cut_after()
        return _dropped(proxy, fault, operation if path is None else f"{operation} {path}")

    def heal(self) -> None:
        """End every partition and forget every fault: clients can come back."""
        self.proxy.heal()

    def recent(self, after: int = 0) -> str:
        """Return the last requests, replies and events, one in a line, without pings.

        They begin behind the request of this number.
        """
        lines: deque[str] = deque(maxlen=_TOLD_MAX)
        has_begun = False
        for one in self.proxy.seen:
            request = one.request if isinstance(one, SeenReply) else one
            if isinstance(request, SeenRequest):
                if request.number == 0:
                    continue
                has_begun = has_begun or request.number > after
            if has_begun:
                lines.append(f"connection {request.connection}: {one}")
        return "\n".join(lines)

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

    async def _expire(self, client: object) -> None:
        session = self._session_of(client)
        await expire_session(self.proxy.server_address, session, self.proxy.sessions[session])

    def _session_of(self, client: object) -> int:
        """Return the session of a client; raises ValueError if it has none on this server."""
        session = session_of(client)
        if session not in self.proxy.sessions:
            raise ValueError(
                f"session 0x{session:x} is none of this server's: connect clients to its `hosts`"
            )
        return session


class FaultyServer(FaultInjection):
    """A server in this process with a proxy before it, which its clients connect to.

        with FaultyServer() as server, paddock.sync.connect(server.hosts, exact=False) as client:
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
        self._background.open(self._start())
        return self

    def __exit__(self, *details: object) -> None:
        self._background.close(self._stop(), details[1])

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


def session_of(client: object) -> int:
    """Return the number of a client's session.

    Raises TypeError for what is no client, and ValueError for one that has no session.
    """
    if isinstance(client, int) and not isinstance(client, bool):
        return client
    # kazoo tells its `client_id` only while it is connected.
    for name in ("session_id", "_session_id"):
        if hasattr(client, name):
            session = getattr(client, name)
            if isinstance(session, int) and session != 0:
                return session
            raise ValueError(f"{client!r} has no session: is it started?")
    raise TypeError(f"{client!r} is no client of Paddock or kazoo, and no number of a session")


@contextmanager
def _dropped(proxy: FaultProxy, fault: Fault, meant: str) -> Iterator[Fault]:
    # pytest shows the test then, and not this.
    __tracebackhide__ = True
    try:
        yield fault
    finally:
        proxy.disarm(fault)
    if not fault.hits:
        raise AssertionError(f"drop_reply: nobody asked for {meant}")
