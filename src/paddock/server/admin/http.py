"""The admin server: commands over HTTP, on a port of its own.

    GET /commands             a page of links
    GET /commands/monitor     {"version" : …, "command" : "monitor", "error" : null}
    GET /commands/snapshot    all data, for the superuser (`paddock.server.admin.data_commands`)
    POST /commands/restore    replace all data, likewise
    GET /commands/past        what they were, likewise (`paddock.server.admin.past_command`)

It is for people and tools near the server: plain HTTP, and not for the pages of other sites
(`paddock.server.admin.origin`). Limits (`paddock.server.admin.http_connection`) keep it from
disturbing the service.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

from paddock.server.admin.commands import AdminCommands
from paddock.server.admin.data_commands import DATA_COMMANDS, DataCommands
from paddock.server.admin.data_transfer import METHODS, Transfer
from paddock.server.admin.http_connection import HTML, JSON, ConnectionPool, HttpConnection
from paddock.server.admin.origin import AdminHosts, why_refused
from paddock.server.connections.ports import address_of, explained, start_listening

logger: Final = logging.getLogger(__name__)

_ARGUMENTS_MAX: Final = 16
# The subject of error messages about its port.
_WHO: Final = "the admin server"


class AdminServer:
    """Has a port after `bind`, and listens for HTTP after `start`."""

    def __init__(
        self, url: str, idle_timeout: float, wall_clock_ms: Callable[[], int], hosts: AdminHosts
    ) -> None:
        # The path of the commands, without a slash at the end.
        self._url = url.rstrip("/")
        self._hosts = hosts
        # Set by `start` and cleared by `close`: they hold the state.
        self.commands: AdminCommands | None = None
        self.data_commands: DataCommands | None = None
        self.pool = ConnectionPool(idle_timeout, wall_clock_ms)
        self._listener: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        assert self._listener is not None, "the admin server has no port"
        return address_of(self._listener.sockets)

    async def bind(self, host: str, port: int) -> None:
        """Bind the port, without accepting connections yet. Raises PortError."""
        loop = asyncio.get_running_loop()
        with explained(host, port, _WHO):
            self._listener = await loop.create_server(
                self.new_connection, host, port, start_serving=False
            )

    async def start(self, commands: AdminCommands, data_commands: DataCommands) -> None:
        """Accept connections. Raises PortError."""
        assert self._listener is not None, "the admin server has no port"
        self.commands, self.data_commands = commands, data_commands
        with explained(*self.address, _WHO):
            await start_listening(self._listener)
        logger.info("admin server on http://%s:%d%s", *self.address, self._url)

    async def close(self) -> None:
        """Close the port and all connections, except those of a restore whose body has arrived."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.commands, self.data_commands = None, None
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
        name = path[len(self._url) + 1 :] if path.startswith(f"{self._url}/") else ""
        data_command = DATA_COMMANDS.get(name)
        refusal = why_refused(
            request.headers,
            self._hosts,
            changes=data_command is not None or self.commands.changes(name),
        )
        methods = METHODS.get(data_command or "", ("GET", "HEAD"))
        if refusal is not None:
            logger.warning("the admin server has refused a request: %s", refusal)
            connection.respond_text(403, refusal)
        elif method not in methods:
            connection.respond_text(
                405, f"Served here: {' and '.join(methods)}.", [("Allow", ", ".join(methods))]
            )
        elif data_command is not None:
            assert self.data_commands is not None, "the admin server has not been started"
            transfer = Transfer(connection, self.pool, self.data_commands, data_command)
            authorization = dict(request.headers).get(b"authorization")
            transfer.start(authorization, arguments, is_open=self.commands.is_open)
        elif path in (self._url, f"{self._url}/"):
            connection.respond(200, HTML, iter([self._links(self.commands)]))
        elif name:
            connection.respond(200, JSON, self.commands.run(name, arguments))
        else:
            connection.respond_text(404, "There is nothing here.")

    def _links(self, commands: AdminCommands) -> bytes:
        names = sorted({*commands.names, *DATA_COMMANDS.values()})
        return "".join(f'<a href="{self._url}/{one}">{one}</a>\n<br/>\n' for one in names).encode()
