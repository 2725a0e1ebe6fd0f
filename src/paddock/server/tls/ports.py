"""The ports of a server that accept TLS, and the credentials that they use."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
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
        service.credentials.recognise = self.credentials.identities
        for listener in (self.secure, self.unified):
            listener.start(service.admission, connection)
        if self._config.tls_reload:
            self._reloading = asyncio.get_running_loop().create_task(self.credentials.watch())

    async def close(self) -> None:
        """Close the ports. Idempotent."""
        reloading, self._reloading = self._reloading, None
        await _end(reloading)
        for listener in (self.secure, self.unified):
            await listener.close()


class AdminTlsPort:
    """The port of the admin server, with the certificate that clients see.

    Whether its own clients need a certificate is a setting of its own, and their hosts do not
    matter. Connections are limited by the admin server, handshakes as on any port.
    """

    def __init__(self, config: ServerConfig, wall_clock_ms: Callable[[], int], who: str) -> None:
        """Read the files. Raises ConfigError."""
        config = dataclasses.replace(
            config,
            tls_client_auth="need" if config.admin_need_client_auth else "none",
            tls_client_hostname_verification=False,
        )
        self._reloads = config.tls_reload
        self._credentials = Credentials(config, wall_clock_ms)
        self._listener = TlsListener(
            config, self._credentials, is_unified=not config.admin_force_https, who=who
        )
        self._reloading: asyncio.Task[None] | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        return self._listener.address

    async def bind(self, host: str, port: int) -> None:
        """Bind the port, without accepting connections yet. Raises PortError."""
        await self._listener.bind(host, port)

    def start(self, make_connection: Callable[[], asyncio.Protocol]) -> None:
        """Accept connections."""
        self._listener.start(_NoLimits(), make_connection)
        if self._reloads:
            self._reloading = asyncio.get_running_loop().create_task(self._credentials.watch())

    async def close(self) -> None:
        """Close the port. Idempotent."""
        reloading, self._reloading = self._reloading, None
        await _end(reloading)
        await self._listener.close()


class _NoLimits:
    """Slots without end."""

    def reserve(self, address: str) -> bool:
        return True

    def release(self, address: str) -> None:
        pass


async def _end(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
