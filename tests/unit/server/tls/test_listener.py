"""What a port with TLS does between the end of a handshake and the one who serves it."""

from __future__ import annotations

import asyncio
from typing import cast

from librt.strings import BytesWriter

from paddock.protocol.records import ConnectRequest
from paddock.server.connections.connection import Connection
from paddock.server.connections.request_handler import ATTACHING
from paddock.server.tls.listener import _Gate
from tests.unit.server.harness import FakeTransport, Harness, framed, run


def test_a_connection_that_stops_reading_for_what_came_early_stays_so() -> None:
    async def scenario() -> None:
        harness, transport, gate = Harness(), FakeTransport(), _Gate()
        gate.connection_made(transport)
        writer = BytesWriter()
        ConnectRequest(0, 0, 6000, 0, b"", False).write(writer)
        # A transport may have read before it was told not to.
        gate.data_received(framed(writer.getvalue()))
        connection = Connection(harness.service)
        gate.open(cast(asyncio.Protocol, connection))
        assert connection.handler.stage == ATTACHING
        assert not transport.is_reading_now
        await harness.settle()
        assert transport.is_reading_now

    run(scenario)
