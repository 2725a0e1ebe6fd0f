"""A network within one event loop, for virtual time: connections without sockets.

What is written arrives at the other end in the next pass of the loop, whole and in order, and so
does the end. A peer that does not read makes its writer pause, as on a socket.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final

from paddock.testing.memory_transport import MemoryTransport

Address = tuple[str, int]
Factory = Callable[[], asyncio.BaseProtocol]

_FIRST_PORT: Final = 49152


class VirtualNetwork:
    """The listeners of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._servers: dict[Address, VirtualServer] = {}
        self._last_port = _FIRST_PORT - 1

    def bind(self, factory: Factory, host: str, port: int) -> VirtualServer:
        """Take an address, whose port is chosen here if it is 0; raises OSError."""
        address = (host, port or self._new_port())
        if address in self._servers:
            raise OSError(f"{host}:{port} is in use")
        server = VirtualServer(self._loop, factory, address, self._servers)
        self._servers[address] = server
        return server

    def connect(
        self, factory: Factory, host: str, port: int
    ) -> tuple[VirtualTransport, asyncio.BaseProtocol]:
        """Make a connection, of which both ends are told; raises ConnectionRefusedError."""
        server = self._servers.get((host, port))
        if server is None or not server.is_serving():
            raise ConnectionRefusedError(f"nobody listens on {host}:{port}")
        ours: Address = ("127.0.0.1", self._new_port())
        near = VirtualTransport(self._loop, factory(), ours, server.address)
        far = VirtualTransport(self._loop, server.factory(), server.address, ours)
        near.peer, far.peer = far, near
        self._loop.call_soon(far.begin)
        near.begin()
        return near, near.get_protocol()

    def _new_port(self) -> int:
        self._last_port += 1
        return self._last_port


class VirtualServer(asyncio.AbstractServer):
    """A listener. Connections outlive it, as with any listener."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        factory: Factory,
        address: Address,
        servers: dict[Address, VirtualServer],
    ) -> None:
        self._loop = loop
        self.factory = factory
        self.address = address
        self._servers = servers
        self._serves = False

    @property
    def sockets(self) -> tuple[VirtualSocket, ...]:
        """Where it listens, in the shape that a real one has for that."""
        return (VirtualSocket(self),)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._serves

    async def start_serving(self) -> None:
        self._serves = True

    async def serve_forever(self) -> None:
        """Serve until cancelled."""
        await self.start_serving()
        await self._loop.create_future()

    def close(self) -> None:
        self._serves = False
        if self._servers.get(self.address) is self:
            del self._servers[self.address]

    async def wait_closed(self) -> None:
        """Return at once: nothing of it is left."""


class VirtualSocket:
    """The parts of a socket that are needed: it listens, or is an end of a connection."""

    def __init__(self, server: VirtualServer | None = None) -> None:
        self._server = server
        # Whether the end of the connection is a reset.
        self.resets = False

    def getsockname(self) -> Address:
        assert self._server is not None
        return self._server.address

    def fileno(self) -> int:
        """Return a number that says whether it is open; there is no file to write to."""
        return -1 if self._server is None else 0

    def getsockopt(self, level: int, option: int) -> int:
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        return int(self._server is not None and self._server.is_serving())

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_LINGER)
        self.resets = True


class VirtualTransport(MemoryTransport):
    """One end of a connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.BaseProtocol,
        ours: Address,
        theirs: Address,
    ) -> None:
        self._socket = VirtualSocket()
        super().__init__({"sockname": ours, "peername": theirs, "socket": self._socket}, protocol)
        self._loop = loop
        self.peer: VirtualTransport | None = None
        self._arrived_bytes = 0

    # Writing.

    def write(self, data: Any) -> None:
        if not data or self._is_closing or self._wrote_eof or self.peer is None:
            return
        self.peer._arrive(bytes(data))
        if self.get_write_buffer_size() > self._high_water and not self._is_choked:
            self._is_choked = True
            self._protocol.pause_writing()

    def write_eof(self) -> None:
        if not self._wrote_eof and not self._is_closing and self.peer is not None:
            self._wrote_eof = True
            self.peer._arrive(None)

    def get_write_buffer_size(self) -> int:
        return 0 if self.peer is None else self.peer._arrived_bytes

    # Reading.

    def resume_reading(self) -> None:
        self._is_paused = False
        self._loop.call_soon(self._take)

    def _arrive(self, item: bytes | Exception | None) -> None:
        if self._is_closing:
            return
        self._arrived.append(item)
        if isinstance(item, bytes):
            self._arrived_bytes += len(item)
        self._loop.call_soon(self._take)

    def _take(self) -> None:
        while self._arrived and self.is_reading():
            item = self._arrived.popleft()
            if not isinstance(item, bytes):
                self._end(item)
                return
            self._arrived_bytes -= len(item)
            self._protocol.data_received(item)
        if self._arrived_bytes == 0 and self.peer is not None:
            self.peer._relieve()

    def _relieve(self) -> None:
        if self._is_choked and not self._is_closing:
            self._is_choked = False
            self._protocol.resume_writing()

    # The end.

    def close(self) -> None:
        """End it; what was written before still arrives."""
        self._leave(None)

    def abort(self) -> None:
        """End it at once: in good order, or with a reset if it was told not to linger."""
        self._leave(ConnectionResetError("reset by the peer") if self._socket.resets else None)

    def _leave(self, error: Exception | None) -> None:
        if not self._is_closing and self.peer is not None:
            self.peer._arrive(error)
        self._lose(None)

    def _end(self, error: Exception | None) -> None:
        if error is not None:
            self._lose(error)
        elif not self._protocol.eof_received():
            self.close()

    def _lose(self, error: Exception | None) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._arrived.clear()
        self._arrived_bytes = 0
        self._loop.call_soon(self._protocol.connection_lost, error)
