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
        self._secure = TlsListener(config, self.credentials, is_unified=False)
        self._unified = TlsListener(config, self.credentials, is_unified=True)
        self._reloading: asyncio.Task[None] | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """The address of the secure port, if there is one."""
        return self._secure.address

    @property
    def unified_address(self) -> tuple[str, int] | None:
        """The address of the unified port, if there is one."""
        return self._unified.address

    async def bind(self) -> None:
        """Bind the ports, without accepting connections yet. Raises PortError."""
        config = self._config
        if config.secure_port is not None:
            await self._secure.bind(config.secure_host or config.host, config.secure_port)
        if config.port is not None and config.port_unification:
            await self._unified.bind(config.host, config.port)

    def start(self, service: Core, connection: Callable[[], asyncio.Protocol]) -> None:
        """Accept connections."""
        service.recognise = self.credentials.identities
        for listener in (self._secure, self._unified):
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
        for listener in (self._secure, self._unified):
            await listener.close()
