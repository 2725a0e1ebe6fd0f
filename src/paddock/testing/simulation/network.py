"""The simulated network: connections between processes, with delays, partitions and cuts.

Each direction of a connection is in order, as TCP is; two connections are not. What is written is
on its way for a while, in pieces, drawn from the randomness of the connection. The faults:

* `cut` resets connections: what is on its way is lost, both ends learn of it, each after a while.
* `cut` with `lose="replies"` lets arrive what goes to the server, and nothing that comes back.
* `part` separates two hosts: what is sent waits, and goes on when they are joined again; who
  connects waits as well.
* A process that is killed resets its connections; one on a machine that loses its power does not,
  so its peers wait for nothing.

A `tap` of a client's process sees all bytes as the client writes and receives them.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from paddock.testing.simulation.process import ProcessLoop

Address = tuple[str, int]
Factory = Callable[[], asyncio.BaseProtocol]

_HIGH_WATER_BYTES: Final = 1 << 16
_FIRST_PORT: Final = 40_000


class Tap(Protocol):
    """Sees what a client's end of a connection writes and receives."""

    def sent(self, data: bytes) -> None: ...

    def received(self, data: bytes) -> None: ...

    def ended(self, reason: str) -> None: ...


class SimulatedNetwork:
    """All hosts, listeners and connections."""

    def __init__(self, world: asyncio.AbstractEventLoop, seed: str, delay_max: float) -> None:
        self.world = world
        self.delay_max = delay_max
        # Makes the tap of a new connection from the process that connects, and the server's host.
        self.tap: Callable[[ProcessLoop, str], Tap | None] = lambda process, host: None
        self.connections: list[Connection] = []
        # All that ever ran.
        self.processes: list[ProcessLoop] = []
        self._seed = seed
        self._listeners: dict[Address, Listener] = {}
        self._parted: set[tuple[str, str]] = set()
        self._last_port = _FIRST_PORT
        # How many connections each process has asked for.
        self._made: dict[str, int] = {}
        # Those who wait for a partition to end.
        self._waiting: list[asyncio.Future[None]] = []

    def bind(self, process: ProcessLoop, factory: Factory, host: str, port: int) -> Listener:
        address = (host, port or self._new_port())
        if address in self._listeners:
            raise OSError(98, "Address already in use")
        listener = Listener(self, process, factory, address)
        self._listeners[address] = listener
        return listener

    def release(self, listener: Listener) -> None:
        if self._listeners.get(listener.address) is listener:
            del self._listeners[listener.address]

    async def connect(
        self, process: ProcessLoop, factory: Factory, host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        number = self._made[process.name] = self._made.get(process.name, 0) + 1
        delays = random.Random(f"{self._seed} connection {process.name} {number}")
        await self._travel(process, delays)
        while self.is_parted(process.host, host):
            joined: asyncio.Future[None] = process.create_future()
            self._waiting.append(joined)
            await joined
        listener = self._listeners.get((host, port))
        if listener is None or not listener.is_serving():
            raise ConnectionRefusedError(111, "Connection refused")
        ours: Address = (process.host, self._new_port())
        connection = Connection(self, delays, process, listener.process)
        connection.tap = self.tap(process, host)
        near = SimulatedTransport(process, factory(), ours, listener.address, connection)
        with listener.process.enter():
            protocol = listener.factory()
        far = SimulatedTransport(listener.process, protocol, listener.address, ours, connection)
        connection.join(near, far)
        self.connections.append(connection)
        listener.process.run_soon(far.begin)
        near.begin()
        return near, near.get_protocol()

    async def _travel(self, process: ProcessLoop, delays: random.Random) -> None:
        arrived: asyncio.Future[None] = process.create_future()
        self.world.call_later(delays.uniform(0, self.delay_max), _finish, arrived)
        await arrived

    # Faults.

    def is_parted(self, one: str, other: str) -> bool:
        return (min(one, other), max(one, other)) in self._parted

    def part(self, one: str, other: str) -> None:
        self._parted.add((min(one, other), max(one, other)))

    def join(self, one: str, other: str) -> None:
        self._parted.discard((min(one, other), max(one, other)))
        for connection in self.alive():
            connection.look()
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            _finish(future)

    def alive(self) -> list[Connection]:
        self.connections = [one for one in self.connections if not one.is_over]
        return list(self.connections)

    def die(self, process: ProcessLoop, *, silently: bool) -> None:
        """Take a process that was killed off the network."""
        for listener in list(self._listeners.values()):
            if listener.process is process:
                listener.close()
        for connection in self.alive():
            connection.lose_end(process, silently=silently)

    def _new_port(self) -> int:
        self._last_port += 1
        return self._last_port


class Listener(asyncio.AbstractServer):
    """A port that a process listens on."""

    def __init__(
        self, network: SimulatedNetwork, process: ProcessLoop, factory: Factory, address: Address
    ) -> None:
        self.process = process
        self.factory = factory
        self.address = address
        self._network = network
        self._serves = False

    @property
    def sockets(self) -> tuple[Listener, ...]:
        return (self,)

    # What is asked of its socket.

    def getsockname(self) -> Address:
        return self.address

    def fileno(self) -> int:
        return 0

    def getsockopt(self, level: int, option: int) -> int:
        return int(self._serves)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.process

    def is_serving(self) -> bool:
        return self._serves and not self.process.is_dead

    async def start_serving(self) -> None:
        self._serves = True

    async def serve_forever(self) -> None:
        await self.start_serving()
        await self.process.create_future()

    def close(self) -> None:
        self._serves = False
        self._network.release(self)

    async def wait_closed(self) -> None:
        """Return at once: nothing of it is left."""


class Connection:
    """A connection, of which `near` is the end that connected."""

    def __init__(
        self,
        network: SimulatedNetwork,
        delays: random.Random,
        client: ProcessLoop,
        server: ProcessLoop,
    ) -> None:
        self.client = client
        self.server = server
        self.tap: Tap | None = None
        self.is_over = False
        self.closed_ends = 0
        self._network = network
        self._delays = delays

    def join(self, near: SimulatedTransport, far: SimulatedTransport) -> None:
        self.near, self.far = near, far
        near.pipe = Pipe(self, self._network, self._delays, near, far)
        far.pipe = Pipe(self, self._network, self._delays, far, near)

    def is_parted(self) -> bool:
        return self._network.is_parted(self.client.host, self.server.host)

    def look(self) -> None:
        """Go on after a partition."""
        self.near.pipe.look()
        self.far.pipe.look()

    def cut(self, *, lose_replies_only: bool = False) -> None:
        """Reset it. What is on its way is lost, at least what comes from the server."""
        if self.is_over:
            return
        self.is_over = True
        error = ConnectionResetError(104, "Connection reset by peer")
        self.far.pipe.drop(error)
        if lose_replies_only:
            self.near.pipe.put(error)
        else:
            self.near.pipe.drop(error)

    def lose_end(self, process: ProcessLoop, *, silently: bool) -> None:
        for end in (self.near, self.far):
            if end.process is process and not self.is_over:
                if end is self.near and self.tap is not None:
                    self.tap.ended("the client is dead")
                if silently:
                    end.pipe.drop(None)
                    end.pipe.is_silent = True
                else:
                    self.is_over = True
                    # What was handed to the kernel before still arrives.
                    end.pipe.put(ConnectionResetError(104, "Connection reset by peer"))


class Pipe:
    """One direction: what is on its way, in order, with the time at which it arrives."""

    def __init__(
        self,
        connection: Connection,
        network: SimulatedNetwork,
        delays: random.Random,
        source: SimulatedTransport,
        target: SimulatedTransport,
    ) -> None:
        self.size = 0
        # Whether the sender is gone without a word.
        self.is_silent = False
        self._connection = connection
        self._network = network
        self._delays = delays
        self._source = source
        self._target = target
        self._way: deque[tuple[float, bytes | Exception | None]] = deque()
        self._last = 0.0

    def put(self, item: bytes | Exception | None) -> None:
        if self.is_silent:
            return
        if isinstance(item, bytes) and len(item) > 1 and self._delays.random() < 0.05:
            at = self._delays.randrange(1, len(item))
            self._put(item[:at])
            self._put(item[at:])
        else:
            self._put(item)

    def _put(self, item: bytes | Exception | None) -> None:
        delay = self._delays.uniform(0, self._network.delay_max)
        self._last = max(self._last, self._network.world.time() + delay)
        self._way.append((self._last, item))
        if isinstance(item, bytes):
            self.size += len(item)
        self._network.world.call_at(self._last, self.look)

    def drop(self, end: Exception | None) -> None:
        """Lose what is on its way; with an `end`, that arrives instead."""
        self._way.clear()
        self.size = 0
        if end is not None:
            self._put(end)
            self.is_silent = True

    def look(self) -> None:
        """Deliver what has arrived."""
        now = self._network.world.time()
        while self._way and self._way[0][0] <= now and not self._connection.is_parted():
            _, item = self._way.popleft()
            if isinstance(item, bytes):
                self.size -= len(item)
            self._target.arrive(item)
        if not self.size:
            self._source.relieve()


class SimulatedTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(
        self,
        process: ProcessLoop,
        protocol: asyncio.BaseProtocol,
        ours: Address,
        theirs: Address,
        connection: Connection,
    ) -> None:
        super().__init__({"sockname": ours, "peername": theirs, "socket": self})
        self.process = process
        self.pipe: Pipe
        self._protocol: Any = protocol
        self._connection = connection
        # What the kernel has for us.
        self._arrived: deque[bytes | Exception | None] = deque()
        self._is_paused = False
        self._is_closing = False
        self._wrote_eof = False
        self._is_choked = False
        self._resets = False
        self._high_water = _HIGH_WATER_BYTES

    def begin(self) -> None:
        self._protocol.connection_made(self)

    # What is asked of its socket.

    def fileno(self) -> int:
        return -1

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        self._resets = option == socket.SO_LINGER

    # Writing.

    def write(self, data: Any) -> None:
        if not data or self._is_closing or self._wrote_eof:
            return
        written = bytes(data)
        tap = self._tap()
        if tap is not None:
            tap.sent(written)
        self.pipe.put(written)
        if self.pipe.size > self._high_water and not self._is_choked:
            self._is_choked = True
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._wrote_eof and not self._is_closing:
            self._wrote_eof = True
            self.pipe.put(None)

    def get_write_buffer_size(self) -> int:
        return self.pipe.size if self._is_choked else 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_water = _HIGH_WATER_BYTES if high is None else high

    def relieve(self) -> None:
        if self._is_choked and not self._is_closing:
            self._is_choked = False
            self.process.run_soon(self._resume_writing)

    def _resume_writing(self) -> None:
        if not self._is_closing:
            self._protocol.resume_writing()

    # Reading.

    def is_reading(self) -> bool:
        return not self._is_paused and not self._is_closing

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self.process.run_soon(self._take)

    def arrive(self, item: bytes | Exception | None) -> None:
        if not self._is_closing:
            self._arrived.append(item)
            self.process.run_soon(self._take)

    def _take(self) -> None:
        while self._arrived and self.is_reading():
            item = self._arrived.popleft()
            if not isinstance(item, bytes):
                self._end(item)
                return
            tap = self._tap()
            if tap is not None:
                tap.received(item)
            self._protocol.data_received(item)

    # The end.

    def get_protocol(self) -> asyncio.BaseProtocol:
        return cast(asyncio.BaseProtocol, self._protocol)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._leave(None)

    def abort(self) -> None:
        self._leave(ConnectionResetError(104, "Connection reset by peer") if self._resets else None)

    def _leave(self, error: Exception | None) -> None:
        if not self._is_closing:
            self.pipe.put(error)
        self._lose(None, "closed by the client")

    def _end(self, error: Exception | None) -> None:
        if error is not None:
            self._connection.is_over = True
            self._lose(error, "reset")
        elif not self._protocol.eof_received():
            self.pipe.put(None)
            self._lose(None, "closed by the server")

    def _lose(self, error: Exception | None, reason: str) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._arrived.clear()
        tap = self._tap()
        if tap is not None:
            tap.ended(reason)
        self._connection.closed_ends += 1
        if self._connection.closed_ends == 2:
            self._connection.is_over = True
        self.process.run_soon(self._protocol.connection_lost, error)

    def _tap(self) -> Tap | None:
        return self._connection.tap if self is self._connection.near else None


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
