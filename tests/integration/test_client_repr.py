"""The repr of a client: the service, the state and the session."""

from __future__ import annotations

import asyncio

import paddock
import paddock.sync
from paddock.testing import EmbeddedServer, ServerThread


def test_a_client_shows_its_service_its_state_and_its_session() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            client = paddock.connect(f"{server.hosts},[::1]:1/app")
            service = f"{server.hosts},[::1]:1/app"
            assert repr(client) == f"<paddock.Client {service} DISCONNECTED session 0x0>"
            async with client:
                session = f"session 0x{client.session_id:x}"
                assert repr(client) == f"<paddock.Client {service} CONNECTED {session}>"
            assert repr(client) == f"<paddock.Client {service} CLOSED {session}>"

    asyncio.run(scenario())


def test_a_blocking_client_says_that_it_is_one() -> None:
    with ServerThread() as server, paddock.sync.connect(server.hosts) as client:
        session = f"session 0x{client.session_id:x}"
        shown = f"<blocking paddock.Client {server.hosts} CONNECTED {session}>"
        assert repr(client) == shown
