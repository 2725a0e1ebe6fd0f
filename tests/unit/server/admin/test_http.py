"""The bounds within which the admin server keeps those who speak to it."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import cast

import pytest

from paddock.server.admin.commands import AdminCommands
from paddock.server.admin.data_commands import DataCommands
from paddock.server.admin.health import Health
from paddock.server.admin.http import AdminServer
from paddock.server.admin.metrics import Metrics
from paddock.server.admin.origin import AdminHosts
from paddock.server.admin.password import Password
from paddock.server.admin.prometheus import Exposition
from paddock.server.admin.rate_limits import WRONG_MAX, WRONG_SECONDS, AdminLimits
from paddock.testing.clock import run_virtually
from tests.unit.server.harness import FakeTransport, Harness, turn

REQUEST = b"GET /commands/ruok HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"


class Peer:
    """A peer that speaks HTTP, or tries to."""

    def __init__(
        self,
        server: AdminServer,
        address: str = "127.0.0.1",
        transport: FakeTransport | None = None,
    ) -> None:
        self.transport = transport or FakeTransport(address=address)
        self.connection = server.new_connection()
        self.connection.connection_made(self.transport)

    async def send(self, data: bytes) -> None:
        self.connection.data_received(data)
        await turn()


def admin_server(password: Password | None = None, *, is_health_open: bool = True) -> AdminServer:
    made = Harness()
    metrics = Metrics(made.service, None, 2181, asyncio.get_running_loop().time)
    server = AdminServer(
        "/commands/",
        30.0,
        lambda: made.wall_ms,
        AdminHosts("127.0.0.1"),
        password=password,
        is_health_open=is_health_open,
    )
    server.commands = AdminCommands(metrics)
    server.data_commands = DataCommands(made.service.config, None, AdminLimits(0.0))
    server.health = Health(made.service)
    server.health.is_starting = False
    server.exposition = Exposition(metrics, server.health.is_ready)
    return server


def test_one_more_than_allowed_takes_the_place_of_the_one_that_waits_longest() -> None:
    async def scenario() -> None:
        server = admin_server()
        peers = [Peer(server) for _ in range(100)]
        # The first one has been answered since, so it is not the one that waits longest.
        await peers[0].send(REQUEST)
        peers.append(Peer(server))
        assert [one.transport.is_open for one in peers] == [True, False] + [True] * 99
        assert len(server.pool.connections) == 100
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


def test_of_those_that_wait_the_youngest_goes_before_any_that_is_answered() -> None:
    async def scenario() -> None:
        server = admin_server()
        answered = [Peer(server) for _ in range(99)]
        for peer in answered:
            peer.transport.on_write = peer.connection.pause_writing
            await peer.send(REQUEST)
        waiting, new = Peer(server), Peer(server)
        assert not waiting.transport.is_open
        assert all(one.transport.is_open for one in (*answered, new))

    run_virtually(scenario())


def test_those_for_which_all_data_are_taken_out_stay() -> None:
    async def scenario() -> None:
        server = admin_server()
        peers = [Peer(server) for _ in range(100)]
        peers[0].connection.file = BytesIO()
        Peer(server)
        assert [one.transport.is_open for one in peers[:3]] == [True, False, True]

    run_virtually(scenario())


def test_nothing_goes_on_when_it_is_closed() -> None:
    async def scenario() -> None:
        server = admin_server()
        peer = Peer(server)
        task = server.pool.tasks.start(asyncio.sleep(1000))
        await server.close()
        assert not peer.transport.is_open
        assert task.cancelled()
        # They hold the state.
        assert (server.commands, server.data_commands) == (None, None)

    run_virtually(scenario())


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /commands/ruok?" + b"&".join([b"a=1"] * 16), 200),
        (b"GET /commands/ruok?" + b"&".join([b"a=1"] * 17), 400),
        (b"GET /commands/ruok?a=" + b"x" * 15_000, 200),
        # More than this is refused before its end has come.
        (b"GET /commands/ruok?a=" + b"x" * 17_000, 431),
        (b"POST /commands/ruok", 405),
        (b"GET /elsewhere", 404),
    ],
)
def test_what_a_request_may_be(head: bytes, status: int) -> None:
    async def scenario() -> None:
        peer = Peer(admin_server())
        await peer.send(head)
        if status != 431:
            await peer.send(b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert peer.transport.written.startswith(b"HTTP/1.1 %d " % status)

    run_virtually(scenario())


@pytest.mark.parametrize(
    ("target", "header", "status"),
    [
        ("ruok", "Host: evil.example", 403),
        ("ruok", "Host: localhost\r\nOrigin: http://evil.example", 403),
        ("ruok", "Host: localhost\r\nUser-Agent: Mozilla/5.0", 200),
        ("stat_reset", "Host: localhost\r\nUser-Agent: Mozilla/5.0", 403),
        ("snapshot", "Host: localhost\r\nUser-Agent: Mozilla/5.0", 403),
        ("rest", "Host: localhost\r\nUser-Agent: Mozilla/5.0", 403),
    ],
)
def test_pages_of_other_sites_are_refused(target: str, header: str, status: int) -> None:
    async def scenario() -> None:
        peer = Peer(admin_server())
        await peer.send(f"GET /commands/{target} HTTP/1.1\r\n{header}\r\n\r\n".encode())
        assert peer.transport.written.startswith(b"HTTP/1.1 %d " % status)

    run_virtually(scenario())


def test_the_time_for_a_request_does_not_end_its_answer_but_one_that_is_not_taken_ends() -> None:
    async def scenario() -> None:
        peer = Peer(admin_server())
        peer.transport.on_write = peer.connection.pause_writing
        peer.transport.waiting_bytes = 1000
        await asyncio.sleep(29)
        await peer.send(REQUEST)
        await asyncio.sleep(5)
        still_open = peer.transport.is_open
        await asyncio.sleep(60)
        assert (still_open, peer.transport.is_open) == (True, False)

    run_virtually(scenario())


class Lingering(FakeTransport):
    """Closes its half only, until it is aborted."""

    has_ended = False

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.has_ended = True

    def close(self) -> None:
        self.has_ended = True


@pytest.mark.parametrize("rest", [b"Content-Length: 9\r\n\r\nx", b"Connection: close\r\n\r\n"])
def test_who_gets_the_last_answer_has_a_while_to_take_it(rest: bytes) -> None:
    async def scenario() -> None:
        peer = Peer(admin_server(), transport=Lingering(address="127.0.0.1"))
        transport = cast(Lingering, peer.transport)
        await peer.send(REQUEST[:-2] + rest)
        assert transport.written.count(b"HTTP/1.1 200 ") == 1
        assert b"Connection: close" in transport.written
        assert transport.has_ended
        await asyncio.sleep(29)
        still_open = transport.is_open
        await asyncio.sleep(2)
        assert (still_open, transport.is_open) == (True, False)

    run_virtually(scenario())


def test_what_comes_behind_the_last_answer_is_not_kept() -> None:
    async def scenario() -> None:
        peer = Peer(admin_server(), transport=Lingering(address="127.0.0.1"))
        await peer.send(REQUEST[:-2] + b"Content-Length: 9\r\n\r\nx")
        for _ in range(10):
            await peer.send(REQUEST)
        assert peer.transport.written.count(b"HTTP/1.1 ") == 1
        assert peer.connection._http.trailing_data[0] == b""

    run_virtually(scenario())


async def status_of(
    server: AdminServer,
    path: str,
    *headers: str,
    method: str = "GET",
    host: str = "127.0.0.1",
    address: str = "127.0.0.1",
) -> int:
    peer = Peer(server, address)
    lines = "".join(f"{line}\r\n" for line in (f"Host: {host}", *headers))
    await peer.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode())
    return int(peer.transport.written.split()[1])


@pytest.fixture
def password(tmp_path: Path) -> Password:
    file = tmp_path / "password"
    file.write_text("monitor:secret\n")
    return Password(file)


GIVEN = "Authorization: Basic " + b64encode(b"monitor:secret").decode()
WRONG = "Authorization: Basic " + b64encode(b"monitor:Secret").decode()


def test_with_a_password_only_the_health_is_open(password: Password) -> None:
    async def scenario() -> None:
        server = admin_server(password)
        for path in ("/commands", "/commands/ruok", "/metrics", "/nothing"):
            assert await status_of(server, path) == 401, path
            assert await status_of(server, path, WRONG) == 401, path
        for path, status in {"/commands": 200, "/metrics": 200, "/nothing": 404}.items():
            assert await status_of(server, path, GIVEN) == status
        assert await status_of(server, "/livez") == await status_of(server, "/readyz") == 200
        # The commands on data have an authentication of their own, in the same header.
        assert await status_of(server, "/commands/snapshot", GIVEN) == 401
        allowed = "Authorization: digest super:x"
        assert await status_of(server, "/commands/snapshot", allowed) == 403
        peer = Peer(server)
        await peer.send(REQUEST)
        assert b"WWW-Authenticate: Basic " in peer.transport.written

    run_virtually(scenario())


def test_an_address_with_many_wrong_passwords_is_not_heard_for_a_while(password: Password) -> None:
    async def scenario() -> None:
        server = admin_server(password)
        super_guess = "Authorization: digest super:guess"
        for _ in range(WRONG_MAX - 1):
            assert await status_of(server, "/metrics", WRONG) == 401
            # Without a password nobody guesses.
            assert await status_of(server, "/metrics") == 401
        assert await status_of(server, "/commands/past", super_guess) == 403
        for path, given in (
            *(("/metrics", WRONG), ("/metrics", GIVEN), ("/commands/past", super_guess)),
            ("/commands/snapshot", super_guess),
        ):
            assert await status_of(server, path, given) == 429
        assert await status_of(server, "/readyz", GIVEN) == 200
        assert await status_of(server, "/metrics", GIVEN, address="10.0.0.9") == 200
        peer = Peer(server)
        await peer.send(f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n{WRONG}\r\n\r\n".encode())
        assert b"Retry-After: 60\r\n" in peer.transport.written
        await asyncio.sleep(WRONG_SECONDS)
        assert await status_of(server, "/metrics", GIVEN) == 200

    run_virtually(scenario())


def test_the_health_asks_for_the_password_if_it_is_told_to(password: Password) -> None:
    async def scenario() -> None:
        server = admin_server(password, is_health_open=False)
        for path in ("/livez", "/readyz"):
            assert await status_of(server, path) == 401
            assert await status_of(server, path, GIVEN) == 200
            assert await status_of(server, path, GIVEN, host="elsewhere") == 403

    run_virtually(scenario())


def test_the_health_is_told_to_whoever_asks_by_whatever_name() -> None:
    async def scenario() -> None:
        server = admin_server()
        assert await status_of(server, "/readyz", host="elsewhere") == 200
        assert await status_of(server, "/metrics", host="elsewhere") == 403
        assert await status_of(server, "/readyz", method="HEAD") == 200
        for path in ("/readyz", "/metrics"):
            assert await status_of(server, path, method="DELETE") == 405
        assert server.health is not None
        server.health.is_stopping = True
        assert await status_of(server, "/readyz") == 503
        assert await status_of(server, "/livez") == 200

    run_virtually(scenario())


def test_the_pages_are_there_if_the_commands_are_at_the_root() -> None:
    async def scenario() -> None:
        server = admin_server()
        server._url = ""
        assert await status_of(server, "/metrics") == await status_of(server, "/readyz") == 200
        assert await status_of(server, "/ruok") == 200

    run_virtually(scenario())
