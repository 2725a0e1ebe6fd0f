"""Where a server listens: the plain port, those of TLS, the admin server, and that of metrics.

They are bound before the state is loaded, so that a start fails early if one of them is taken, and
opened when it has been. Until then no client can connect.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from paddock.server.config.config import ServerConfig
from paddock.server.connections.core import Core
from paddock.server.connections.ports import address_of, explained, start_listening

if TYPE_CHECKING:
    from paddock.server.admin.http import AdminServer
    from paddock.server.admin.metrics_server import MetricsServer
    from paddock.server.tls.ports import TlsPorts


class Endpoints:
    """The ports of one server."""

    def __init__(self, config: ServerConfig, wall_clock_ms: Callable[[], int]) -> None:
        self._config = config
        self._wall_clock_ms = wall_clock_ms
        self.listener: asyncio.Server | None = None
        self.admin: AdminServer | None = None
        self.metrics: MetricsServer | None = None
        self._secure: TlsPorts | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where clients connect; the secure port if there is no other."""
        if self.listener is not None:
            return address_of(self.listener.sockets)
        assert self._secure is not None, "the server has not been started"
        address = self._secure.unified.address or self._secure.secure.address
        assert address is not None, "the server has not been started"
        return address

    @property
    def secure_address(self) -> tuple[str, int] | None:
        """Where clients connect with TLS, if they can."""
        return None if self._secure is None else self._secure.secure.address

    @property
    def admin_address(self) -> tuple[str, int]:
        """Where the admin server listens."""
        assert self.admin is not None, "there is no admin server"
        return self.admin.address

    @property
    def metrics_address(self) -> tuple[str, int]:
        """Where the metrics have a port of their own."""
        assert self.metrics is not None, "the metrics have no port of their own"
        return self.metrics.address

    def config_with_ports(self) -> ServerConfig:
        """Return the settings with the ports that the system has assigned."""
        config, secure = self._config, self.secure_address
        return dataclasses.replace(
            config,
            port=None if config.port is None else self.address[1],
            secure_port=config.secure_port if secure is None else secure[1],
            admin_port=config.admin_port if self.admin is None else self.admin_address[1],
            metrics_port=config.metrics_port if self.metrics is None else self.metrics_address[1],
        )

    def load(self) -> None:
        """Read the files of TLS, if it is spoken, and of the password. Raises PaddockError."""
        if self._config.speaks_tls():
            # Imported only where it is asked for.
            from paddock.server.tls.ports import TlsPorts

            self._secure = TlsPorts(self._config, self._wall_clock_ms)
        if self._config.admin_address is not None:
            self.admin = self._make_admin(self._config.admin_address[0])

    async def bind(self, make_connection: Callable[[], asyncio.Protocol]) -> None:
        """Bind every port. Raises PortError."""
        config = self._config
        if config.port is not None and not config.port_unification:
            with explained(config.host, config.port):
                self.listener = await asyncio.get_running_loop().create_server(
                    make_connection,
                    config.host,
                    config.port,
                    backlog=config.listen_backlog,
                    start_serving=False,
                )
        if self._secure is not None:
            await self._secure.bind()
        if config.admin_address is not None:
            assert self.admin is not None, "its files have not been read"
            await self.admin.bind(*config.admin_address)
        if config.metrics_address is not None:
            await self._bind_metrics(*config.metrics_address)

    async def open(self, core: Core, make_connection: Callable[[], asyncio.Protocol]) -> None:
        """Let clients connect. Raises PortError."""
        config = self._config
        if self.listener is not None:
            assert config.port is not None
            with explained(config.host, config.port):
                await start_listening(self.listener)
        if self._secure is not None:
            self._secure.start(core, make_connection)

    def refuse(self) -> None:
        """Accept no connection on the plain port any more."""
        if self.listener is not None:
            self.listener.close()

    async def shut(self) -> None:
        """Accept no client any more; the admin server goes on."""
        self.refuse()
        if self._secure is not None:
            await self._secure.close()

    async def close(self) -> None:
        """Close everything."""
        for server in (self.admin, self.metrics, self._secure):
            if server is not None:
                await server.close()
        self.refuse()
        self.admin = self.metrics = self._secure = self.listener = None

    def _make_admin(self, host: str) -> AdminServer:
        # Imported here: most servers have none, and need no HTTP.
        from paddock.server.admin.http import WHO, AdminServer
        from paddock.server.admin.origin import AdminHosts
        from paddock.server.admin.password import Password

        config = self._config
        tls = None
        if config.admin_speaks_tls():
            from paddock.server.tls.ports import AdminTlsPort

            tls = AdminTlsPort(config, self._wall_clock_ms, WHO)
        file = config.admin_password_file
        return AdminServer(
            config.admin_url,
            config.admin_idle_timeout_ms / 1000,
            self._wall_clock_ms,
            AdminHosts(host, config.admin_allowed_hosts),
            tls=tls,
            password=None if file is None else Password(file),
            is_health_open=config.admin_health_open,
        )

    async def _bind_metrics(self, host: str, port: int) -> None:
        from paddock.server.admin.metrics_server import MetricsServer

        timeout = self._config.admin_idle_timeout_ms / 1000
        self.metrics = MetricsServer(timeout, self._wall_clock_ms)
        await self.metrics.bind(host, port)
