"""The admin server and those who speak to it badly: garbage, slow requests, unread answers."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from http.client import HTTPResponse

import pytest

from tests.support import requests as rq
from tests.support import wire
from tests.support.command import refusal
from tests.support.paddock_server import PaddockServer
from tests.support.server import Options, free_port


class Admin:
    def __init__(self, server: PaddockServer, port: int) -> None:
        self.server = server
        self.port = port

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@pytest.fixture(scope="module")
def admin() -> Iterator[Admin]:
    port = free_port()
    keys = {
        "admin.serverPort": str(port),
        "admin.idleTimeout": "500",
        "paddock.adminAllowedHosts": "allowed.example",
    }
    with PaddockServer(Options(extra=tuple(keys.items()))) as server:
        yield Admin(server, port)


@pytest.fixture(autouse=True)
def healthy(admin: Admin) -> Iterator[wire.Client]:
    """A session that must not notice anything."""
    with wire.connect(admin.server.address) as client:
        yield client
        assert client.call(rq.set_data("/", b"x")).err == 0
        client.close()
    with admin.connect() as asking:
        asking.sendall(b"GET /commands/ruok HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert answer(asking)[0] == 200


def answer(connection: socket.socket) -> tuple[int, bytes]:
    response = HTTPResponse(connection)
    response.begin()
    return response.status, response.read()


def until_closed(connection: socket.socket) -> bytes:
    received = b""
    try:
        while data := connection.recv(65536):
            received += data
    except ConnectionError:
        pass
    return received


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00\x01\x02\xff\r\n\r\n", 400),
        (b"ruok\r\n\r\n", 400),
        (b"GET /commands/ruok HTTP/1.1\r\n\r\n", 400),
        (b"GET /commands/ruok HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 100_000, 431),
        (b"GET /" + b"x" * 100_000, 431),
        (b"GET /commands/ruok HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET //[ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 400),
    ],
    ids=["bytes", "word", "no-host", "head", "target", "length", "url"],
)
def test_what_is_no_http_is_refused_and_the_connection_closed(
    admin: Admin, sent: bytes, status: int
) -> None:
    with admin.connect() as connection:
        connection.sendall(sent)
        assert until_closed(connection).startswith(b"HTTP/1.1 %d " % status)


def test_a_slow_request_is_not_waited_for(admin: Admin) -> None:
    with admin.connect() as connection:
        connection.settimeout(0.05)
        # A byte now and then does not help: the request has to be there as a whole.
        for _ in range(1_000):
            try:
                connection.sendall(b"G")
                if not connection.recv(10):
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    pytest.fail("it was waited for")


def test_a_connection_on_which_nothing_comes_is_closed(admin: Admin) -> None:
    with admin.connect() as connection:
        assert until_closed(connection) == b""


def test_requests_in_one_write_are_answered_one_after_another(admin: Admin) -> None:
    with admin.connect() as connection:
        for name in ("ruok", "stats", "nope"):
            connection.sendall(f"GET /commands/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        connection.sendall(b"GET /commands HTTP/1.0\r\n\r\n")
        received = until_closed(connection)
    assert received.count(b"HTTP/1.1 200 ") == 4
    assert b'"command" : "stats"' in received
    assert received.index(b'"ruok"') < received.index(b'"stats"') < received.index(b'"nope"')


def test_a_body_is_not_waited_for(admin: Admin) -> None:
    with admin.connect() as connection:
        head = b"GET /commands/ruok HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
        connection.sendall(head + b"some of it")
        received = until_closed(connection)
    assert received.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in received.lower()


def test_a_long_answer_comes_whole_and_one_that_is_not_read_hurts_nobody(
    admin: Admin, healthy: wire.Client
) -> None:
    count = 40_000
    healthy.send(*(rq.exists(f"/watched/{number:040}", watch=True) for number in range(count)))
    for _ in range(count):
        healthy.read()
    with admin.connect() as lazy, admin.connect() as eager:
        for connection in (lazy, eager):
            connection.sendall(b"GET /commands/watches HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, body = answer(eager)
        assert status == 200
        (paths,) = json.loads(body)["session_id_to_watched_paths"].values()
        assert len(set(paths)) == count
        assert healthy.call(rq.get_data("/")).err == 0
    # A client that closes its half, as some versions of nc do, still waits for the answer.
    with socket.create_connection(admin.server.address, timeout=30) as asking:
        asking.sendall(b"wchp")
        asking.shutdown(socket.SHUT_WR)
        assert until_closed(asking).count(b"\n\t0x") == count


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ("--memory", "--port", "0", "--admin-port", str(port), "--log-level", "error")
        said = refusal("serve", *options, status=1)
    where = f"the admin server cannot listen on 127.0.0.1:{port}"
    assert said == f"{where}: the port is taken by another program"


def test_many_slow_connections_do_not_keep_a_request_out(admin: Admin) -> None:
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(admin.connect()) for _ in range(150)]
        for connection in slow:
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"GET /commands/ruok HTTP/1.1\r\nX: ")
        asking = stack.enter_context(admin.connect())
        asking.sendall(b"GET /commands/ruok HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answer(asking)[0] == 200


READ, RESET = "/commands/monitor", "/commands/stat_reset"
LINK = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"]
BROWSER = "User-Agent: Mozilla/5.0 (X11; Linux x86_64)"


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        (READ, ["Host: localhost:8080"], 200),
        (READ, ["Host: LOCALHOST."], 200),
        (READ, ["Host: admin.localhost"], 200),
        (READ, ["Host: [::1]:8080"], 200),
        (READ, ["Host: 192.0.2.7:80"], 200),
        (READ, ["Host: allowed.example:8080"], 200),
        (READ, ["Host: evil.example:8080"], 403),
        (READ, ["Host: 127.0.0.1.evil.example"], 403),
        (READ, ["Host: 127.0.0.1:8080@evil.example"], 403),
        (READ, ["Host: localhost", "Origin: http://localhost"], 200),
        (READ, ["Host: localhost", "Origin: http://localhost:8080"], 403),
        (READ, ["Host: localhost", "Origin: https://localhost"], 403),
        (READ, ["Host: localhost", "Origin: http://evil.example"], 403),
        (READ, ["Host: localhost", "Origin: null"], 403),
        (READ, ["Host: localhost", "Sec-Fetch-Site: cross-site"], 403),
        (READ, ["Host: localhost", "Sec-Fetch-Site: cross-site", *LINK], 200),
        (RESET, ["Host: localhost", "Sec-Fetch-Site: cross-site", *LINK], 403),
        (READ, ["Host: localhost", "Sec-Fetch-Site: same-site"], 403),
        (READ, ["Host: localhost", "Sec-Fetch-Site: none"], 200),
        (READ, ["Host: localhost", BROWSER], 200),
        (RESET, ["Host: localhost"], 200),
        (RESET, ["Host: localhost", "User-Agent: curl/8"], 200),
        (RESET, ["Host: evil.example"], 403),
        (RESET, ["Host: localhost", "Sec-Fetch-Site: cross-site", BROWSER], 403),
        (RESET, ["Host: localhost", "Sec-Fetch-Site: same-origin", BROWSER], 200),
        (RESET, ["Host: 192.0.2.7:80", BROWSER], 403),
        (RESET, ["Host: 192.0.2.7:80", BROWSER, "Referer: http://evil.example/"], 403),
        (RESET, ["Host: 192.0.2.7:80", BROWSER, "Referer: http://192.0.2.7:80/commands"], 200),
        ("/commands/srst", ["Host: localhost", BROWSER], 403),
        ("/commands/stmk?traceMask=1", ["Host: localhost", BROWSER], 403),
        ("/commands/crst", ["Host: localhost", BROWSER], 403),
    ],
)
def test_what_comes_from_a_page_of_another_site_is_refused(
    admin: Admin, target: str, headers: list[str], status: int
) -> None:
    with admin.connect() as connection:
        head = "\r\n".join([f"GET {target} HTTP/1.1", *headers, "", ""])
        connection.sendall(head.encode())
        found, body = answer(connection)
    assert found == status
    if status == 403:
        assert body.endswith(b".\n")


def test_a_tool_without_a_host_may_ask(admin: Admin) -> None:
    with admin.connect() as connection:
        connection.sendall(b"GET /commands/ruok HTTP/1.0\r\n\r\n")
        assert answer(connection)[0] == 200


@pytest.mark.parametrize(
    "target", ["/commands", "/commands/ruok", "/nothing", "/commands/snapshot"]
)
def test_a_request_for_the_head_gets_no_more(admin: Admin, target: str) -> None:
    with admin.connect() as connection:
        for _ in range(2):
            connection.sendall(f"HEAD {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            response = HTTPResponse(connection, method="HEAD")
            response.begin()
            assert response.status in (200, 404, 405)
