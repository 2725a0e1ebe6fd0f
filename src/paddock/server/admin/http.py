"""The admin server: commands over HTTP, on a port of its own.

    GET /commands             a page of links
    GET /commands/monitor     {"version" : …, "command" : "monitor", "error" : null}
    GET /commands/snapshot    all data, for the superuser (`paddock.server.admin.data_commands`)
    POST /commands/restore    replace all data, likewise
    GET /commands/past        what they were, likewise (`paddock.server.admin.past_command`)
    GET /metrics              the metrics for Prometheus (`paddock.server.admin.prometheus`)
    GET /livez, /readyz       the health (`paddock.server.admin.health`)

It is for people and tools near the server, and not for the pages of other sites
(`paddock.server.admin.origin`). It speaks TLS and asks for a password if it is told to. The health
is open to all, unless it is told otherwise. The commands on data have an authentication of their
own, in the same header, and no password beside it. An address with many wrong passwords is not
heard for a while (`paddock.server.admin.rate_limits`). Limits
(`paddock.server.admin.http_connection`) keep it from disturbing the service.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

from paddock.server.admin.commands import AdminCommands
from paddock.server.admin.data_commands import DATA_COMMANDS, DataCommands
from paddock.server.admin.data_transfer import METHODS, Transfer
from paddock.server.admin.health import LIVEZ, READYZ, Health
from paddock.server.admin.http_connection import HTML, JSON, ConnectionPool, HttpConnection
from paddock.server.admin.http_port import HttpPort, TlsPort
from paddock.server.admin.metrics_server import METRICS, respond_metrics
from paddock.server.admin.origin import AdminHosts, why_refused
from paddock.server.admin.password import CHALLENGE, Password
from paddock.server.admin.prometheus import Exposition

logger: Final = logging.getLogger(__name__)

_ARGUMENTS_MAX: Final = 16
# The subject of error messages about its port.
WHO: Final = "the admin server"
_READING: Final = ("GET", "HEAD")


class AdminServer:
    """Has a port after `bind`, and listens for HTTP after `start`."""

    def __init__(
        self,
        url: str,
        idle_timeout: float,
        wall_clock_ms: Callable[[], int],
        hosts: AdminHosts,
        *,
        tls: TlsPort | None = None,
        password: Password | None = None,
        is_health_open: bool = True,
    ) -> None:
        # The path of the commands, without a slash at the end.
        self._url = url.rstrip("/")
        self._hosts = hosts
        # Set by `start` and cleared by `close`: they hold the state.
        self.commands: AdminCommands | None = None
        self.data_commands: DataCommands | None = None
        self.health: Health | None = None
        self.exposition: Exposition | None = None
        self._password = password
        self._is_health_open = is_health_open
        self._scheme = "http" if tls is None else "https"
        self.pool = ConnectionPool(idle_timeout, wall_clock_ms)
        self._port = HttpPort(WHO, self.new_connection, tls)

    @property
    def address(self) -> tuple[str, int]:
        return self._port.address

    async def bind(self, host: str, port: int) -> None:
        """Bind the port, without accepting connections yet. Raises PortError."""
        await self._port.bind(host, port)

    async def start(
        self,
        commands: AdminCommands,
        data_commands: DataCommands,
        health: Health,
        exposition: Exposition,
    ) -> None:
        """Accept connections. Raises PortError."""
        self.commands, self.data_commands = commands, data_commands
        self.health, self.exposition = health, exposition
        await self._port.open()
        if self._password is not None and self._password.is_exposed:
            logger.warning("everybody on this machine can read the password of the admin server")
        logger.info("admin server on %s://%s:%d%s", self._scheme, *self.address, self._url)

    async def close(self) -> None:
        """Close the port and all connections, except those of a restore whose body has arrived."""
        await self._port.close()
        self.commands = self.data_commands = self.health = self.exposition = None
        await self.pool.close()

    def new_connection(self) -> HttpConnection:
        return HttpConnection(self.pool, self._respond)

    def _respond(self, connection: HttpConnection, request: h11.Request) -> None:
        assert self.commands is not None, "the admin server has not been started"
        method, target = request.method.decode("ascii"), request.target.decode("ascii")
        try:
            parts = urlsplit(target)
            pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=_ARGUMENTS_MAX)
        except ValueError:
            connection.respond_text(400, "This is no URL, or has too many arguments.")
            return
        # The first value of a repeated argument counts, as upstream.
        path, arguments = unquote(parts.path), dict(reversed(pairs))
        if path in (LIVEZ, READYZ) and self._is_health_open and method in _READING:
            self._respond_page(connection, path)
            return
        name = path[len(self._url) + 1 :] if path.startswith(f"{self._url}/") else ""
        data_command = DATA_COMMANDS.get(name)
        refusal = why_refused(
            request.headers,
            self._hosts,
            changes=data_command is not None or self.commands.changes(name),
            scheme=connection.scheme,
        )
        methods = METHODS.get(data_command or "", _READING)
        authorization = dict(request.headers).get(b"authorization")
        assert self.data_commands is not None, "the admin server has not been started"
        guesses, now = self.data_commands.limits.guesses, asyncio.get_running_loop().time()
        wait = 0.0 if authorization is None else guesses.wait(connection.address, now)
        if refusal is not None:
            logger.warning("the admin server has refused a request: %s", refusal)
            connection.respond_text(403, refusal)
        elif wait:
            connection.respond_text(
                429, "Too many wrong passwords.", [("Retry-After", str(math.ceil(wait)))]
            )
        elif data_command is None and not self._may_ask(authorization):
            if authorization is not None:
                logger.warning("a wrong password for the admin server: %s", connection.address)
                guesses.count(connection.address, now)
            connection.respond_text(401, "This takes a name and a password.", [CHALLENGE])
        elif method not in methods:
            connection.respond_text(
                405, f"Served here: {' and '.join(methods)}.", [("Allow", ", ".join(methods))]
            )
        elif path in (LIVEZ, READYZ, METRICS):
            # Before the commands, whose path may be a slash alone.
            self._respond_page(connection, path)
        elif data_command is not None:
            transfer = Transfer(connection, self.pool, self.data_commands, data_command)
            transfer.start(authorization, arguments, is_open=self.commands.is_open)
        elif path in (self._url, f"{self._url}/"):
            connection.respond(200, HTML, iter([self._links(self.commands)]))
        elif name:
            connection.respond(200, JSON, self.commands.run(name, arguments))
        else:
            connection.respond_text(404, "There is nothing here.")

    def _may_ask(self, authorization: bytes | None) -> bool:
        return self._password is None or self._password.is_given(authorization)

    def _respond_page(self, connection: HttpConnection, path: str) -> None:
        """Answer with the health or the metrics."""
        assert self.health is not None, "the admin server has not been started"
        assert self.exposition is not None, "the admin server has not been started"
        if path == METRICS:
            respond_metrics(connection, self.exposition)
        else:
            status, body = self.health.answer(path)
            connection.respond(status, JSON, iter([body]))

    def _links(self, commands: AdminCommands) -> bytes:
        names = sorted({*commands.names, *DATA_COMMANDS.values()})
        return "".join(f'<a href="{self._url}/{one}">{one}</a>\n<br/>\n' for one in names).encode()
