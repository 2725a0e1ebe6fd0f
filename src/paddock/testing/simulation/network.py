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
from collections.abc import Callable
from typing import Final

from paddock.testing.simulation.connection import Address, Connection, SimulatedTransport, Tap
from paddock.testing.simulation.process import ProcessLoop
from paddock.testing.simulation.world_loop import WorldLoop

Factory = Callable[[], asyncio.BaseProtocol]

_FIRST_PORT: Final = 40_000


class SimulatedNetwork:
    """All hosts, listeners and connections."""

    def __init__(self, world: WorldLoop, seed: str, delay_max: float) -> None:
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
        for connection in list(self.connections):
            connection.look()
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            _finish(future)

    def alive(self) -> list[Connection]:
        self.connections = [one for one in self.connections if not one.is_done()]
        return [one for one in self.connections if not one.is_over]

    def die(self, process: ProcessLoop, *, silently: bool) -> None:
        """Take a process that was killed off the network."""
        for listener in list(self._listeners.values()):
            if listener.process is process:
                listener.close()
        for connection in list(self.connections):
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


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
