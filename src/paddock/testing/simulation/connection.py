"""A connection of the simulated network: two pipes, in order each, and an end on either side."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import deque
from typing import Any, Protocol

from paddock.testing.memory_transport import MemoryTransport
from paddock.testing.simulation.process import ProcessLoop
from paddock.testing.simulation.world_loop import WorldLoop

Address = tuple[str, int]


class Tap(Protocol):
    """Sees what a client's end of a connection writes and receives."""

    def sent(self, data: bytes) -> None: ...

    def received(self, data: bytes) -> None: ...

    def ended(self, reason: str) -> None: ...


class Ways(Protocol):
    """What a connection needs of its network."""

    world: WorldLoop
    delay_max: float

    def is_parted(self, one: str, other: str) -> bool: ...


class Connection:
    """A connection, of which `near` is the end that connected."""

    def __init__(
        self,
        network: Ways,
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

    def is_done(self) -> bool:
        """Return whether it is over, its client knows, and nothing is on its way to the server."""
        return self.is_over and self.near.is_closing() and self.near.pipe.is_empty()

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
        if self.near.process is process and self.tap is not None:
            self.tap.ended("the client is dead")
        for end in (self.near, self.far):
            if end.process is process and not self.is_over:
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
        network: Ways,
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

    def is_empty(self) -> bool:
        """Return whether nothing is on its way."""
        return not self._way

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


class SimulatedTransport(MemoryTransport):
    """One end of a connection."""

    def __init__(
        self,
        process: ProcessLoop,
        protocol: asyncio.BaseProtocol,
        ours: Address,
        theirs: Address,
        connection: Connection,
    ) -> None:
        super().__init__({"sockname": ours, "peername": theirs, "socket": self}, protocol)
        self.process = process
        self.pipe: Pipe
        self._connection = connection
        self._resets = False

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

    def write_eof(self) -> None:
        if not self._wrote_eof and not self._is_closing:
            self._wrote_eof = True
            self.pipe.put(None)

    def get_write_buffer_size(self) -> int:
        return self.pipe.size if self._is_choked else 0

    def relieve(self) -> None:
        if self._is_choked and not self._is_closing:
            self._is_choked = False
            self.process.run_soon(self._resume_writing)

    def _resume_writing(self) -> None:
        if not self._is_closing:
            self._protocol.resume_writing()

    # Reading.

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
