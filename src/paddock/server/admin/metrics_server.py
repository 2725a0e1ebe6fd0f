"""The metrics on a port of their own, as Apache ZooKeeper's Prometheus provider has them.

    GET /metrics

There is nothing else, so there is no password either, and any name may be asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import h11

from paddock.server.admin.http_connection import ConnectionPool, HttpConnection
from paddock.server.admin.http_port import HttpPort
from paddock.server.admin.prometheus import CONTENT_TYPE, Exposition

logger: Final = logging.getLogger(__name__)

METRICS: Final = "/metrics"


def respond_metrics(connection: HttpConnection, exposition: Exposition) -> None:
    """Answer with the metrics."""
    connection.respond(200, CONTENT_TYPE, exposition.pieces())


class MetricsServer:
    """Has a port after `bind`, and listens for HTTP after `start`."""

    def __init__(self, idle_timeout: float, wall_clock_ms: Callable[[], int]) -> None:
        self.pool = ConnectionPool(idle_timeout, wall_clock_ms)
        self._port = HttpPort("the server of metrics", self.new_connection)
        # Set by `start` and cleared by `close`: it holds the state.
        self._exposition: Exposition | None = None

    @property
    def address(self) -> tuple[str, int]:
        return self._port.address

    async def bind(self, host: str, port: int) -> None:
        """Bind the port, without accepting connections yet. Raises PortError."""
        await self._port.bind(host, port)

    async def start(self, exposition: Exposition) -> None:
        """Accept connections. Raises PortError."""
        self._exposition = exposition
        await self._port.open()
        logger.info("metrics on http://%s:%d%s", *self.address, METRICS)

    async def close(self) -> None:
        await self._port.close()
        self._exposition = None
        await self.pool.close()

    def new_connection(self) -> HttpConnection:
        return HttpConnection(self.pool, self._respond)

    def _respond(self, connection: HttpConnection, request: h11.Request) -> None:
        assert self._exposition is not None, "the server of metrics has not been started"
        path = request.target.partition(b"?")[0]
        if path != METRICS.encode():
            connection.respond_text(404, f"There is only {METRICS} here.")
        elif request.method not in (b"GET", b"HEAD"):
            connection.respond_text(405, "Served here: GET and HEAD.", [("Allow", "GET, HEAD")])
        else:
            respond_metrics(connection, self._exposition)
