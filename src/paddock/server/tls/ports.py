"""The ports of a server that accept TLS, and the credentials that they use."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from paddock.server.config.config import ServerConfig
from paddock.server.connections.core import Core
from paddock.server.tls.context import Credentials
from paddock.server.tls.listener import TlsListener


class TlsPorts:
    """The secure port, and the plain one if it accepts TLS, too."""

    def __init__(self, config: ServerConfig, wall_clock_ms: Callable[[], int]) -> None:
        """Read the files. Raises ConfigError."""
        self._config = config
        self.credentials = Credentials(config, wall_clock_ms)
        self.secure = TlsListener(config, self.credentials, is_unified=False)
        self.unified = TlsListener(config, self.credentials, is_unified=True)
        self._reloading: asyncio.Task[None] | None = None

    async def bind(self) -> None:
        """Bind the ports, without accepting connections yet. Raises PortError."""
        config = self._config
        if config.secure_port is not None:
            await self.secure.bind(config.secure_host or config.host, config.secure_port)
        if config.port is not None and config.port_unification:
            await self.unified.bind(config.host, config.port)

    def start(self, service: Core, connection: Callable[[], asyncio.Protocol]) -> None:
        """Accept connections."""
        service.recognise = self.credentials.identities
        for listener in (self.secure, self.unified):
            listener.start(service, connection)
        if self._config.tls_reload:
            self._reloading = asyncio.get_running_loop().create_task(self.credentials.watch())

    async def close(self) -> None:
        """Close the ports. Idempotent."""
        reloading, self._reloading = self._reloading, None
        if reloading is not None:
            reloading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reloading
        for listener in (self.secure, self.unified):
            await listener.close()
