"""The ports of a server on which TLS is spoken, and the files that it is spoken with."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from paddock.server.config.config import ServerConfig
from paddock.server.connections.ports import address_of, explained
from paddock.server.core import Service
from paddock.server.tls.context import Credentials
from paddock.server.tls.listener import Listener


class TlsPorts:
    """The secure port, and the plain one if it takes TLS, too."""

    def __init__(self, config: ServerConfig, wall_clock_ms: Callable[[], int]) -> None:
        """Read the files; raises ConfigError."""
        self._config = config
        self.credentials = Credentials(config, wall_clock_ms)
        self._port: Listener | None = None
        self._unified: Listener | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """Where the secure port is, if there is one."""
        return _address(self._port)

    @property
    def unified_address(self) -> tuple[str, int] | None:
        """Where the port is that takes both, if there is one."""
        return _address(self._unified)

    async def bind(self) -> None:
        """Take the ports, without accepting anybody yet; raises PortError."""
        config = self._config
        if config.secure_port is not None:
            self._port = Listener(config, self.credentials, is_unified=False)
            await _bind(self._port, config.secure_host or config.host, config.secure_port)
        if config.port is not None and config.port_unification:
            self._unified = Listener(config, self.credentials, is_unified=True)
            await _bind(self._unified, config.host, config.port)

    def start(self, service: Service, connection: Callable[[], asyncio.Protocol]) -> None:
        """Accept everybody from now on."""
        service.recognise = self.credentials.identities
        for listener in (self._port, self._unified):
            if listener is not None:
                listener.start(service, connection)
        if self._config.tls_reload:
            self._watching = asyncio.get_running_loop().create_task(self.credentials.watch())

    async def close(self) -> None:
        """Close the ports; nothing happens the second time."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        for listener in (self._port, self._unified):
            if listener is not None:
                await listener.close()


async def _bind(listener: Listener, host: str, port: int) -> None:
    with explained(host, port):
        await listener.bind(host, port)


def _address(listener: Listener | None) -> tuple[str, int] | None:
    return address_of(listener.sockets) if listener is not None and listener.sockets else None
