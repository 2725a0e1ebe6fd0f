"""`paddock dashboard` and `paddock serve --dashboard` as processes: links, TLS, and their ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tests.support.certificates import Authority, client_context, name
from tests.support.command import COMMAND, DEADLINE_S, refusal
from tests.support.server import Service

LINK = re.compile(r"(https?)://(\S+):(\d+)(/login\?token=\S+)")


def next_link(output: IO[str]) -> re.Match[str]:
    """Return the next link that is printed."""
    for line in output:
        if (match := LINK.search(line)) is not None:
            return match
    raise AssertionError("it has ended without a link")


class Page:
    """A browser on a real connection."""

    def __init__(self, link: re.Match[str], tls: ssl.SSLContext | None = None) -> None:
        self._address, self._tls = ("127.0.0.1", int(link[3])), tls
        self.host = f"{link[2]}:{link[3]}"
        self.cookie = ""
        status, headers, _ = self.get(link[4])
        assert status == 303
        self.set_cookie = headers["set-cookie"]
        self.cookie = self.set_cookie.partition(";")[0]

    def get(self, path: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = (
            http.client.HTTPConnection(*self._address, timeout=DEADLINE_S)
            if self._tls is None
            else http.client.HTTPSConnection(*self._address, timeout=DEADLINE_S, context=self._tls)
        )
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Host": self.host, "Cookie": self.cookie})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def json(self, path: str) -> Any:
        status, _, body = self.get(path)
        assert status == 200, body
        return json.loads(body)


@contextlib.contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=DEADLINE_S)


def test_a_dashboard_speaks_tls_has_a_link_for_each_browser_and_ends_in_good_order(
    shared_paddock: Service, tmp_path: Path
) -> None:
    authority = Authority()
    files = authority.issue(name("CN=dash")).write(tmp_path / "page.pem")
    with running(
        *("dashboard", "--server", shared_paddock.hosts, "--port", "0"),
        *("--name", "localhost", "--https-cert", files),
    ) as process:
        assert process.stdout is not None
        context = client_context(authority.pem(), tmp_path)
        first = Page(next_link(process.stdout), context)
        assert first.set_cookie.startswith("__Host-paddock_dashboard_")
        assert first.set_cookie.endswith("; Secure")
        second = Page(next_link(process.stdout), context)
        for page in (first, second):
            names = [one["name"] for one in page.json("/api/children?path=/")["children"]]
            assert "zookeeper" in names
        # A page that looks does not keep it from ending.
        plain = socket.create_connection(first._address)
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as looking:
            request = (
                f"GET /api/live HTTP/1.1\r\nHost: {first.host}\r\nCookie: {first.cookie}\r\n\r\n"
            )
            looking.sendall(request.encode())
            assert looking.recv(100).startswith(b"HTTP/1.1 200 OK")
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, errors) == (0, "")


def test_a_port_that_is_taken_and_options_that_do_not_fit_are_one_line(
    shared_paddock: Service,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = refusal("dashboard", "--server", shared_paddock.hosts, "--port", port, status=1)
        assert "Address already in use; --port takes another port" in said
    assert "needs --data" in refusal("dashboard", "--log-dir", "x", status=2)


def test_the_dashboard_of_a_server_knows_everything_and_ends_with_it(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with running(
            # A folder of its own: sessions survive their server.
            *("serve", "--port", "0", "--data", tmp_path / number.name, "--dashboard", "0"),
        ) as server:
            assert server.stdout is not None
            page = Page(next_link(server.stdout))
            about = page.json("/api/about")
            assert about["is_paddock"] is True
            # Its metrics and sessions come by the socket in its data folder, without a whitelist.
            assert about["history"]["from_zxid"] == "0x1"
            assert page.json("/api/overview")["servers"][0]["sessions"] is not None
            sessions = page.json("/api/sessions")
            assert (len(sessions["sessions"]), sessions["lacking"]) == (1, [])
            server.send_signal(number)
            # The dashboard has the same stdout, which ends when both have ended.
            server.communicate(timeout=DEADLINE_S)
            with contextlib.closing(socket.socket()) as gone:
                assert gone.connect_ex(page._address) != 0
