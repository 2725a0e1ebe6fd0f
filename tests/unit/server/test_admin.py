"""The bounds within which the admin server keeps those who speak to it."""

from __future__ import annotations

import asyncio

from paddock.server.admin import AdminServer
from paddock.server.admin_connection import AdminConnection
from paddock.server.admin_origin import AdminHosts
from paddock.server.commands import Commands
from paddock.server.figures import Figures
from paddock.testing.clock import run_virtually
from tests.unit.server.harness import FakeTransport, Harness, turn

REQUEST = b"GET /commands/ruok HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"


class Peer:
    """Somebody who speaks HTTP, or tries to."""

    def __init__(self, server: AdminServer, address: str = "127.0.0.1") -> None:
        self.transport = FakeTransport(address=address)
        self.connection = AdminConnection(server)
        self.connection.connection_made(self.transport)

    async def send(self, data: bytes) -> None:
        self.connection.data_received(data)
        await turn()


def admin_server() -> AdminServer:
    made = Harness()
    figures = Figures(made.service, None, 2181, asyncio.get_running_loop().time)
    server = AdminServer("/commands/", 30.0, lambda: made.wall_ms, AdminHosts("127.0.0.1"))
    server.commands = Commands(figures)
    return server


def test_one_more_than_allowed_takes_the_place_of_the_one_that_waits_longest() -> None:
    async def scenario() -> None:
        server = admin_server()
        peers = [Peer(server) for _ in range(100)]
        # The first one has been answered since, so it is not the one that waits longest.
        await peers[0].send(REQUEST)
        peers.append(Peer(server))
        assert [one.transport.is_open for one in peers] == [True, False] + [True] * 99
        assert len(server.connections) == 100
        await peers[-1].send(REQUEST)
        assert peers[-1].transport.written.count(b"HTTP/1.1 200 ") == 1

    run_virtually(scenario())


def test_the_connections_of_one_address_do_not_push_those_of_others_out() -> None:
    async def scenario() -> None:
        server = admin_server()
        first = Peer(server, "127.0.0.2")
        others = [Peer(server) for _ in range(150)]
        assert first.transport.is_open
        assert [one.transport.is_open for one in others] == [False] * 51 + [True] * 99

    run_virtually(scenario())


def test_those_that_are_answered_make_room_only_if_nobody_waits() -> None:
    async def scenario() -> None:
        server = admin_server()
        peers = [Peer(server) for _ in range(100)]
        for peer in peers:
            peer.transport.on_write = peer.connection.pause_writing
        for peer in peers[:99]:
            await peer.send(REQUEST)
        answered = Peer(server)
        # The only one that waited.
        assert not peers[99].transport.is_open
        answered.transport.on_write = answered.connection.pause_writing
        await answered.send(REQUEST)
        new = Peer(server)
        # Now all are being answered, the first of them for the longest time.
        assert [one.transport.is_open for one in peers] == [False, *([True] * 98), False]
        assert answered.transport.is_open
        assert new.transport.is_open

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
