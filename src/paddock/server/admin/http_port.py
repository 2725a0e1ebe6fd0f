"""A port of HTTP: bound early, opened when there is something to answer; with TLS or without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from paddock.server.connections.ports import address_of, explained, start_listening


class TlsPort(Protocol):
    """A port that accepts TLS; implemented by `paddock.server.tls.ports`."""

    @property
    def address(self) -> tuple[str, int] | None: ...
    async def bind(self, host: str, port: int) -> None: ...
    def start(self, make_connection: Callable[[], asyncio.Protocol]) -> None: ...
    async def close(self) -> None: ...


class HttpPort:
    """Has a port after `bind`, and accepts connections after `open`."""

    def __init__(
        self,
        who: str,
        make_connection: Callable[[], asyncio.Protocol],
        tls: TlsPort | None = None,
    ) -> None:
        # The subject of error messages.
        self._who = who
        self._make_connection = make_connection
        self._tls = tls
        self._listener: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        address = None if self._tls is None else self._tls.address
        if address is not None:
            return address
        assert self._listener is not None, f"{self._who} has no port"
        return address_of(self._listener.sockets)

    async def bind(self, host: str, port: int) -> None:
        """Bind the port, without accepting connections yet. Raises PortError."""
        if self._tls is not None:
            await self._tls.bind(host, port)
            return
        loop = asyncio.get_running_loop()
        with explained(host, port, self._who):
            self._listener = await loop.create_server(
                self._make_connection, host, port, start_serving=False
            )

    async def open(self) -> None:
        """Accept connections. Raises PortError."""
        if self._tls is not None:
            self._tls.start(self._make_connection)
            return
        assert self._listener is not None, f"{self._who} has no port"
        with explained(*self.address, self._who):
            await start_listening(self._listener)

    async def close(self) -> None:
        """Close the port. Idempotent."""
        if self._tls is not None:
            await self._tls.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
