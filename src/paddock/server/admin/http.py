"""The admin server: the commands over HTTP, on a port of its own.

    GET /commands             a page of links GET /commands/monitor     {"version" : …, "command" :
    "monitor", "error" : null} GET /commands/snapshot    all data; needs a proof of who asks
    (`paddock.server.admin.data_commands`) POST /commands/restore    takes them back, in the same
    way

It is for people and tools near the server: plain HTTP, and not for the pages of other sites
(`paddock.server.admin.origin`). Everything is bounded, so that it never disturbs the service: the
number of connections, the size of a request's head, the time in which a request must have come as
a whole, and what waits to be sent.

When there are as many connections as allowed, a new one takes the place of another: of the address
that has the most connections the one that has waited longest for a request, or, if all of that
address are being answered, the one that was answered first. So neither slow requests nor slow
readers keep others out, and a request that comes in one piece has its answer. Only those for which
all data are taken out or exchanged stay.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from paddock.server.admin.commands import Commands
from paddock.server.admin.data_commands import DataCommands
from paddock.server.admin.http_connection import AdminConnection
from paddock.server.admin.origin import AdminHosts
from paddock.server.connections.ports import address_of, explained, start_listening
from paddock.server.tasks import Tasks

logger: Final = logging.getLogger(__name__)

_CONNECTIONS_MAX: Final = 100

# How what is said of its port begins.
_WHO: Final = "the admin server"


class AdminServer:
    """Has a port once `bind` has been called, and listens for HTTP once `start` has been."""

    def __init__(
        self,
        url: str,
        idle_timeout: float,
        wall_clock_ms: Callable[[], int],
        hosts: AdminHosts,
    ) -> None:
        # Where the commands are, without a slash at the end.
        self.url = url.rstrip("/")
        self.hosts = hosts
        # Seconds in which a whole request must come, and something of an answer be taken.
        self.idle_timeout = idle_timeout
        # Known from the start on, before anybody can connect, and let go of at the end: they hold
        # the state.
        self.commands: Commands | None = None
        self.data_commands: DataCommands | None = None
        self.wall_clock_ms = wall_clock_ms
        # In the order in which each began to wait for a request, or to be answered.
        self.connections: dict[AdminConnection, None] = {}
        # What is done for them that takes longer.
        self.tasks = Tasks()
        self._listener: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        assert self._listener is not None, "the admin server has no port"
        return address_of(self._listener.sockets)

    async def bind(self, host: str, port: int) -> None:
        """Take the port, without accepting anybody yet. Raises PortError."""
        loop = asyncio.get_running_loop()
        with explained(host, port, _WHO):
            self._listener = await loop.create_server(
                lambda: AdminConnection(self), host, port, start_serving=False
            )

    async def start(self, commands: Commands, data_commands: DataCommands) -> None:
        """Answer with these commands from now on. Raises PortError."""
        assert self._listener is not None, "the admin server has no port"
        self.commands, self.data_commands = commands, data_commands
        with explained(*self.address, _WHO):
            await start_listening(self._listener)
        logger.info("admin server on http://%s:%d%s", *self.address, self.url)

    def admit(self, new: AdminConnection) -> None:
        """Take one more connection in, and make room for it."""
        if len(self.connections) >= _CONNECTIONS_MAX:
            counts = Counter(one.address for one in self.connections)
            (busiest, _), *_ = counts.most_common(1)
            mine = [one for one in self.connections if one.address == busiest]
            dispensable = [one for one in mine if not one.is_at_work] or mine
            victim = next((one for one in dispensable if not one.is_answering), dispensable[0])
            del self.connections[victim]
            victim.abort()
        self.connections[new] = None

    def begin_anew(self, connection: AdminConnection) -> None:
        """Count a connection as the one that began to wait, or to be answered, last."""
        if connection in self.connections:
            del self.connections[connection]
            self.connections[connection] = None

    async def close(self) -> None:
        """Close the port and every connection, except one for which our data are exchanged."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.commands, self.data_commands = None, None
        for connection in list(self.connections):
            connection.abort()
        await self.tasks.end()
