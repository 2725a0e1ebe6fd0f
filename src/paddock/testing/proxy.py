"""A proxy between clients and a server that breaks connections where a test says.

It understands what passes through it, so a fault is placed at a request and not at a moment:

    async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
        async with paddock.connect(proxy.hosts, exact=False) as client:
            fault = proxy.when(operation="create", path="/app").cut_after()
            try:
                await client.create("/app")
            except paddock.ConnectionLostError:
                print(fault.hits[0])  # request 2: create /app
            print(await client.exists("/app") is not None)  # True

In an exact session, which is what clients ask for, the call returns its own outcome.

In a test without asyncio the same proxy runs in a thread of its own:

    with ServerThread() as server, FaultProxy(server.address) as proxy:
        proxy.refuse()

It stands before any ZooKeeper server, but sees nothing where TLS is spoken.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import _get_running_loop as running_loop
from collections.abc import Callable
from functools import partial, wraps
from typing import Concatenate, ParamSpec, Self, TypeVar

from paddock.testing.conversation import (
    Conversation,
    History,
    Seen,
    SeenEvent,
    SeenReply,
    SeenRequest,
)
from paddock.testing.faults import BOTH, Direction, Fault, Partition, Trigger, chosen
from paddock.testing.link import End, Link
from paddock.testing.listening import DEADLINE, BackgroundLoop, Listening, ReservedPort

P = ParamSpec("P")
T = TypeVar("T")


def _in_loop(
    method: Callable[Concatenate[FaultProxy, P], T],
) -> Callable[Concatenate[FaultProxy, P], T]:
    """Call a method in the loop's thread, and wait for it if that is another one.

    While the loop does not run, as between two runs in virtual time, call it here.
    """

    @wraps(method)
    def call(self: FaultProxy, /, *arguments: P.args, **named: P.kwargs) -> T:
        loop = self._loop
        if loop is None or not loop.is_running() or running_loop() is loop:
            return method(self, *arguments, **named)

        async def act() -> T:
            return method(self, *arguments, **named)

        return asyncio.run_coroutine_threadsafe(act(), loop).result(DEADLINE)

    return call


class FaultProxy(Listening):
    """Forwards everything to a server, but for the faults that it was told to inject.

    Its methods can be called from any thread, and have taken effect when they return. Frames are
    passed on whole and in order; four-letter words are passed on, too. It remembers everything that
    came by, or the last `seen_max` messages.
    """

    def __init__(self, server_address: tuple[str, int], *, seen_max: int | None = None) -> None:
        self._server_address = server_address
        self._port = ReservedPort()
        self._loop: asyncio.AbstractEventLoop | None = None
        # The loop's own thread, if it is not the caller's.
        self._background: BackgroundLoop | None = None
        # The socket that listens, the task that hands it to the loop, and what the loop makes of
        # it. Invariant: None while connections are refused.
        self._listening: socket.socket | None = None
        self._opening: asyncio.Task[None] | None = None
        self._listener: asyncio.AbstractServer | None = None
        # In the order in which they came, so that every run is the same.
        self._links: dict[Link, None] = {}
        self._connecting: set[asyncio.Task[None]] = set()
        self._connections = 0
        self._history = History(seen_max)
        # Faults that are not used up, in the order in which they were armed.
        self._faults: list[Fault] = []
        # The directions that are held, on present and new connections.
        self._blackholes: frozenset[Direction] = frozenset()
        self._reopening: asyncio.TimerHandle | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where clients are to connect."""
        return self._port.address

    @property
    def server_address(self) -> tuple[str, int]:
        """The address of the server itself."""
        return self._server_address

    # Messages seen.

    @property
    @_in_loop
    def seen(self) -> tuple[Seen, ...]:
        """All messages so far, in order, whether they were forwarded or not."""
        return tuple(self._history.messages)

    @property
    def requests(self) -> tuple[SeenRequest, ...]:
        """The requests so far, without pings."""
        return tuple(one for one in self.seen if isinstance(one, SeenRequest) and one.number)

    @property
    def replies(self) -> tuple[SeenReply, ...]:
        """The replies of the server so far, without those to pings."""
        return tuple(one for one in self.seen if isinstance(one, SeenReply) and one.request.number)

    @property
    def events(self) -> tuple[SeenEvent, ...]:
        """The events so far."""
        return tuple(one for one in self.seen if isinstance(one, SeenEvent))

    @property
    @_in_loop
    def sessions(self) -> dict[int, bytes]:
        """The sessions that were granted through the proxy, each with its password."""
        return dict(self._history.sessions)

    # Faults.

    def when(
        self,
        *,
        operation: str | int | None = None,
        path: str | None = None,
        predicate: Callable[[SeenRequest], bool] | None = None,
        nth: int = 1,
        times: int | None = 1,
    ) -> Trigger:
        """Choose requests, from now on: the nth that fits, and as many after it as `times` says.

        An operation is a word such as `create`, `get`, `set`, `multi`, `create_session` (the
        handshake) or `close_session`, or its number. Without one every request fits but pings.
        `times=None` takes every one from the nth on. If several faults fit, the first one counts.
        """
        if nth < 1:
            raise ValueError(f"nth: {nth} is below 1")
        fits = chosen(operation, path, predicate)
        return Trigger(lambda effect: self._arm(Fault(fits, effect, nth, times)))

    @_in_loop
    def cut(self, *, reset: bool = False) -> None:
        """Cut every connection; clients may come back at once. With `reset` they get an RST."""
        for link in list(self._links):
            link.cut(reset=reset)

    @_in_loop
    def refuse(self, seconds: float | None = None) -> None:
        """Cut every connection and refuse new ones, for `seconds` or until `heal`."""
        self._close()
        self.cut()
        if seconds is not None:
            self._reopening = self._running_loop().call_later(seconds, self._open)

    @_in_loop
    def blackhole(self, *directions: Direction) -> None:
        """Pass nothing on until `heal`, on any connection; new ones are accepted all the same.

        Given one direction, the other goes on. What is sent meanwhile arrives after `heal`.
        """
        self._blackholes |= frozenset(directions) or BOTH
        for link in self._links:
            link.hold(self._blackholes)

    @_in_loop
    def partition(self, session_id: int, *, silent: bool = False) -> Partition:
        """Keep the client of one session from the server, until `heal`; others are not affected.

        Its connection is cut, and so is each one on which it wants to go on with this session. With
        `silent` they stay open instead, and nothing passes on them. The session expires after its
        timeout, as on any server that does not hear from a client.
        """
        meant = self.when(
            operation="create_session",
            predicate=lambda request: request.session_id == session_id,
            times=None,
        )

        fault = meant.blackhole() if silent else meant.cut_before()
        # Before those that were armed earlier: a partitioned client triggers none of them.
        self._faults.insert(0, self._faults.pop())
        for link in self._links_of(session_id):
            if silent:
                link.hold(BOTH)
            else:
                link.cut()
        return Partition(partial(self._end_partition, fault, session_id))

    @_in_loop
    def _end_partition(self, fault: Fault, session_id: int) -> None:
        if fault in self._faults:
            self._faults.remove(fault)
            for link in self._links_of(session_id):
                link.heal()
                link.hold(self._blackholes)

    @_in_loop
    def disarm(self, fault: Fault) -> None:
        """Forget a fault: it takes no further request."""
        if fault in self._faults:
            self._faults.remove(fault)

    @_in_loop
    def heal(self) -> None:
        """Forget every fault, accept connections, and pass on all that is held."""
        self._faults.clear()
        self._blackholes = frozenset()
        self._open()
        for link in list(self._links):
            link.heal()

    # Lifecycle.

    def __enter__(self) -> Self:
        self._background = BackgroundLoop()
        self._background.open(self.__aenter__())
        return self

    def __exit__(self, *details: object) -> None:
        assert self._background is not None
        self._background.close(self.__aexit__(), details[1])

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._open()
        assert self._opening is not None
        await self._opening
        return self

    async def __aexit__(self, *details: object) -> None:
        # In virtual time the socket is closed, and connections are made at once.
        if self._listening is not None and self._listening.fileno() >= 0:
            # What was accepted in this turn gets its transport in the next one, and only from a
            # listener that is open.
            self._running_loop().remove_reader(self._listening)
            await asyncio.sleep(0)
        self._close()
        for task in list(self._connecting):
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        while self._links:
            for link in self._links:
                link.abort()
            await asyncio.sleep(0)
        self._loop = None
        self._port.close()

    # Called by links.

    def _choose_fault(self, request: SeenRequest) -> Fault | None:
        chosen: Fault | None = None
        for fault in self._faults:
            # Each one counts the request, also where another one has it.
            if fault.takes(request, is_free=chosen is None):
                chosen = fault
        return chosen

    def _connect(self, link: Link) -> None:
        task = self._running_loop().create_task(self._connect_to_server(link))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    # Within the loop.

    @_in_loop
    def _arm(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def _links_of(self, session_id: int) -> list[Link]:
        return [link for link in self._links if link.conversation.session_id == session_id]

    def _open(self) -> None:
        """Accept connections again, if they are refused."""
        if self._reopening is not None:
            self._reopening.cancel()
        if self._listening is None:
            # From here on they are accepted by the system; the loop follows.
            self._listening = self._port.listen()
            self._opening = self._running_loop().create_task(self._serve(self._listening))

    def _close(self) -> None:
        """Refuse connections from now on."""
        if self._reopening is not None:
            self._reopening.cancel()
        if self._opening is not None:
            self._opening.cancel()
        if self._listener is not None:
            self._listener.close()
        elif self._listening is not None:
            self._listening.close()
        self._listener = self._listening = None

    async def _serve(self, listening: socket.socket) -> None:
        self._listener = await self._running_loop().create_server(self._accept, sock=listening)

    def _accept(self) -> End:
        self._connections += 1
        link = Link(
            Conversation(self._connections, self._history),
            choose_fault=self._choose_fault,
            connect=self._connect,
            refuse_clients=self._close,
            forget=lambda link: self._links.pop(link, None),
        )
        link.hold(self._blackholes)
        # One that was accepted just before connections were refused gets no transport.
        if self._listening is not None:
            self._links[link] = None
        return link.client

    async def _connect_to_server(self, link: Link) -> None:
        host, port = self._server_address
        try:
            await self._running_loop().create_connection(lambda: link.server, host, port)
        except OSError:
            link.cut()
            return
        # Its client may have left meanwhile, so that it was forgotten.
        self._links[link] = None
        link.connected()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "the proxy has not been started"
        return self._loop
