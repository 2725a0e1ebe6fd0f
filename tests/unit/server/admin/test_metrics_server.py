"""The metrics on a port of their own: they are there, and nothing else is."""

from __future__ import annotations

import asyncio

from paddock.server.admin.metrics import Metrics
from paddock.server.admin.metrics_server import MetricsServer
from paddock.server.admin.prometheus import Exposition
from paddock.testing.clock import run_virtually
from tests.unit.server.harness import FakeTransport, Harness, turn


async def answer(server: MetricsServer, line: str) -> bytes:
    transport, connection = FakeTransport(), server.new_connection()
    connection.connection_made(transport)
    connection.data_received(f"{line} HTTP/1.1\r\nHost: by.any.name\r\n\r\n".encode())
    # It comes in many pieces.
    for _ in range(100):
        await turn()
    return transport.written


def test_there_is_one_page() -> None:
    async def scenario() -> None:
        harness = Harness()
        server = MetricsServer(30.0, lambda: harness.wall_ms)
        metrics = Metrics(harness.service, None, 2181, asyncio.get_running_loop().time)
        await server.bind("127.0.0.1", 0)
        await server.start(Exposition(metrics, lambda: True))
        page = await answer(server, "GET /metrics?name=znode_count")
        assert page.startswith(b"HTTP/1.1 200 ")
        assert b"Content-Type: text/plain; version=0.0.4" in page
        assert b"\nznode_count 5.0\n" in page
        assert (await answer(server, "GET /commands")).startswith(b"HTTP/1.1 404 ")
        assert (await answer(server, "POST /metrics")).startswith(b"HTTP/1.1 405 ")
        await server.close()

    run_virtually(scenario())
