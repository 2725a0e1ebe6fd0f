"""The bounds within which the admin server keeps those who speak to it."""

from __future__ import annotations

import asyncio

from paddock.server.admin import AdminConnection, AdminServer
from paddock.server.commands import Commands
from paddock.server.figures import Figures
from paddock.testing.clock import run_virtually
from tests.unit.server.harness import FakeTransport, Harness, turn

REQUEST = b"GET /commands/ruok HTTP/1.1\r\nHost: here\r\n\r\n"


class Peer:
    """Somebody who speaks HTTP, or tries to."""

    def __init__(self, server: AdminServer) -> None:
        self.transport = FakeTransport()
        self.connection = AdminConnection(server)
        self.connection.connection_made(self.transport)

    async def send(self, data: bytes) -> None:
        self.connection.data_received(data)
        await turn()


def admin_server() -> AdminServer:
    made = Harness()
    figures = Figures(made.service, None, 2181, asyncio.get_running_loop().time)
    server = AdminServer("/commands/", 30.0, lambda: made.wall_ms)
    server.commands = Commands(figures)
    return server


def test_there_are_no_more_connections_than_allowed() -> None:
    async def scenario() -> None:
        server = admin_server()
        peers = [Peer(server) for _ in range(101)]
        assert [peer.transport.is_open for peer in peers] == [True] * 100 + [False]
        peers[0].connection.connection_lost(None)
        assert Peer(server).transport.is_open

    run_virtually(scenario())


def test_bytes_now_and_then_do_not_keep_a_connection() -> None:
    async def scenario() -> None:
        peer = Peer(admin_server())
        for byte in REQUEST[:29]:
            await peer.send(bytes([byte]))
            await asyncio.sleep(1)
        still_open = peer.transport.is_open
        await peer.send(b"x")
        await asyncio.sleep(2)
        assert (still_open, peer.transport.is_open) == (True, False)

    run_virtually(scenario())


def test_each_request_gives_a_connection_its_time_again() -> None:
    async def scenario() -> None:
        peer = Peer(admin_server())
        for number in range(1, 6):
            await peer.send(REQUEST)
            assert peer.transport.written.count(b"HTTP/1.1 200 ") == number
            await asyncio.sleep(20)
        still_open = peer.transport.is_open
        await asyncio.sleep(11)
        assert (still_open, peer.transport.is_open) == (True, False)

    run_virtually(scenario())


def test_what_is_sent_during_an_answer_waits_at_its_sender() -> None:
    async def scenario() -> None:
        peer = Peer(admin_server())
        peer.transport.on_write = peer.connection.pause_writing
        await peer.send(REQUEST)
        assert not peer.transport.is_reading_now
        assert peer.transport.written.count(b"HTTP/1.1 200 ") == 1
        peer.transport.on_write = None
        peer.connection.resume_writing()
        await turn()
        assert peer.transport.is_reading_now

    run_virtually(scenario())
