"""`snapshot` and `restore` of the admin server, over real sockets, on a server that runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import sys
import tarfile
import weakref
from collections.abc import Iterator
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path

import pytest

import paddock
from paddock.protocol.acl import digest_id
from paddock.server.admin.data_commands import RestoreProcess
from paddock.server.admin.health import Health
from paddock.server.admin.metrics import Metrics
from paddock.server.admin.refusal import RefusedError
from paddock.server.config.config import ServerConfig
from paddock.server.server import Server
from paddock.server.supervisor import Supervisor
from paddock.storage.maintenance.archive import unpack
from tests.fault.stage.process import FaultServer, read_tree
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import success
from tests.support.records import Acl
from tests.support.server import Options, free_port

# The superuser of every server of the tests.
SUPER = "digest super:secret"
ALICE = "digest alice:password"
ALICE_ENTRY = Acl(31, "digest", "alice:aPbiX7iFc6K+3h15/DJRrQwkQMk=")
ANYONE = Acl(31, "world", "anyone")


class Site:
    """A server with data and an admin port."""

    def __init__(self, folder: Path, **keys: str) -> None:
        self.port = free_port()
        self.server = FaultServer(
            folder,
            Options(
                extra=(
                    ("admin.serverPort", str(self.port)),
                    ("admin.rateLimiterIntervalInMS", keys.pop("interval", "0")),
                    *((name.replace("_", "."), value) for name, value in keys.items()),
                )
            ),
        )

    def __enter__(self) -> Site:
        self.server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.__exit__(None, None, None)

    def ask(
        self,
        name: str,
        authorization: str | None = SUPER,
        method: str = "GET",
        body: bytes | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {} if authorization is None else {"Authorization": authorization}
        with contextlib.closing(connection):
            connection.request(method, f"/commands/{name}", body, headers)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()

    def restore(self, body: bytes, authorization: str | None = SUPER) -> tuple[int, object]:
        status, _, answer = self.ask("restore", authorization, "POST", body)
        return status, json.loads(answer)

    def create(self, path: str, data: bytes = b"") -> None:
        with wire.connect(self.server.address) as client:
            assert client.call(rq.create(path, data)).err == 0
            client.close()

    def tree(self) -> dict[str, bytes | None]:
        with wire.connect(self.server.address) as client:
            found = {path: data for path, (data, _) in read_tree(client).items()}
            client.close()
        return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path, audit_enable="true") as site:
        yield site


def error_of(answer: bytes) -> str:
    return str(json.loads(answer)["error"])


def test_a_snapshot_is_a_backup_and_restores_what_there_was(site: Site, tmp_path: Path) -> None:
    site.create("/a", b"before" * 10_000)
    before = site.tree()
    status, headers, backup = site.ask("snapshot")
    assert status == 200
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["snapshot_size"] == headers["Content-Length"] == str(len(backup))
    assert re.fullmatch("0x[0-9a-f]+", headers["last_zxid"])
    (tmp_path / "b.tar").write_bytes(backup)
    assert headers["last_zxid"] in success("fsck", unpacked(tmp_path / "b.tar"))
    site.create("/b", b"after")
    status, answer = site.restore(backup)
    assert status == 200
    assert answer == {"last_zxid": 1 << 32, "command": "restore", "error": None}
    assert site.tree() == before
    # The state of before is aside, and the server goes on: the next snapshot has the new epoch.
    assert list(site.server.data.glob("replaced-*"))
    site.create("/c")
    assert site.ask("snap")[1]["last_zxid"].startswith("0x1")
    # The command that restores takes it, too.
    success("restore", tmp_path / "b.tar", site.server.data, "--replace")
    assert site.tree() == before


def unpacked(file: Path) -> Path:
    folder = file.with_suffix("")
    with tarfile.open(file) as archive:
        unpack(archive, folder)
    return folder


def test_a_backup_of_the_command_is_restored_too(site: Site, tmp_path: Path) -> None:
    site.create("/a")
    success("backup", site.server.data, tmp_path / "b.tar.gz")
    site.create("/b")
    assert site.restore((tmp_path / "b.tar.gz").read_bytes())[0] == 200
    assert "/b" not in site.tree()


def test_a_snapshot_may_be_taken_without_being_sent(site: Site) -> None:
    site.create("/a")
    status, headers, body = site.ask("snapshot?streaming=false")
    assert (status, json.loads(body)) == (200, {"command": "snapshot", "error": None})
    assert headers["last_zxid"].startswith("0x")


@pytest.mark.parametrize(
    ("authorization", "status", "error"),
    [
        (None, 401, "Auth info is missing for the command"),
        ("", 401, "Not authenticated"),
        ("Basic c3VwZXI6c2VjcmV0", 401, "Not authenticated"),
        ("digest", 401, "Not authenticated"),
        ("x509", 401, "Not authenticated"),
        ("digest super:guessed", 403, "Not authorized"),
        ("digest alice:password", 403, "Not authorized"),
        ("ip", 403, "Not authorized"),
    ],
)
def test_only_those_who_may_have_all_data_are_heard(
    site: Site, authorization: str | None, status: int, error: str
) -> None:
    """In a new tree `/` grants everything to anyone: that is not enough."""
    site.create("/a")
    found, _, body = site.ask("snapshot", authorization)
    assert (found, error_of(body)[: len(error)]) == (status, error)
    assert site.restore(b"x" * 3_000_000, authorization)[0] == status
    assert site.tree()


def test_a_client_that_still_sends_hears_that_it_may_not(site: Site) -> None:
    # More than the system takes off its hands.
    assert site.restore(bytes(50_000_000), ALICE)[0] == 403


def test_who_adds_itself_to_an_open_root_gets_nothing_by_that(site: Site) -> None:
    with wire.connect(site.server.address) as client:
        assert client.call(rq.set_acl("/", (ANYONE, ALICE_ENTRY))).err == 0
        client.close()
    assert site.ask("snapshot", ALICE)[0] == 403
    assert site.restore(b"", ALICE)[0] == 403


def test_nothing_is_imported_from_the_folder_in_which_the_server_was_started(site: Site) -> None:
    site.create("/a")
    trap = site.server.folder / "gzip.py"
    trap.write_text("raise SystemExit('imported from the working directory')")
    status, answer = site.restore(b"garbage")
    assert status == 400
    assert isinstance(answer, dict)
    assert "expected a backup of Paddock" in str(answer["error"])


@pytest.mark.parametrize(
    "body",
    [b"", b"garbage" * 1000, b"ZKSN" + bytes(2_000_000), bytes(100_000)],
    ids=["empty", "garbage", "apache", "zeros"],
)
def test_a_body_that_is_no_backup_is_refused_and_nothing_is_touched(
    site: Site, body: bytes
) -> None:
    site.create("/a")
    status, answer = site.restore(body)
    assert status == 400
    assert isinstance(answer, dict)
    assert str(answer["error"]).startswith("The body cannot be restored: ")
    assert "expected a backup of Paddock" in str(answer["error"])
    assert "/a" in site.tree()
    assert not list(site.server.data.glob("re*"))


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        ("print('{\"zxid\": 7}')", 0, "7"),
        # Only what it says to us counts, not what people read.
        ("import sys; sys.exit('stdin: zxid 0x7')", 500, "ended with status 1: stdin: zxid 0x7"),
        ("print('zxid 0x7')", 500, "ended with status 0"),
        ('print(\'{"error": "stdin: x", "is_backup": true}\'); 1 / 0', 500, "stdin: x"),
        ('print(\'{"error": "x", "is_backup": false}\'); 1 / 0', 400, "restored: x; expected"),
        ("print('{\"zxid\": 7}'); 1 / 0", 500, "ended with status 1: ZeroDivisionError"),
    ],
)
def test_what_a_restore_has_said_is_read_as_json(script: str, status: int, reason: str) -> None:
    async def scenario() -> str:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, stdin=pipe, stdout=pipe, stderr=pipe
        )
        restore = RestoreProcess(process)
        if not status:
            return str(await restore.finish())
        with pytest.raises(RefusedError) as refused:
            await restore.finish()
        assert refused.value.status == status
        return refused.value.reason

    assert reason in asyncio.run(scenario())


def test_a_body_that_is_cut_short_touches_nothing(site: Site) -> None:
    site.create("/a", b"x" * 100_000)
    backup = site.ask("snapshot")[2]
    site.create("/b")
    head = (
        "POST /commands/restore HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: {SUPER}\r\nContent-Length: {len(backup)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", site.port), timeout=60) as connection:
        connection.sendall(head.encode() + backup[:50_000])
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    status, _ = site.restore(backup[:-20_000])
    assert status == 400
    assert "/b" in site.tree()


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(site: Site) -> None:
    site.create("/a")
    backup = site.ask("snapshot")[2]
    head = (
        "POST /commands/restore HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
        f"Authorization: {SUPER}\r\nContent-Length: {len(backup)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", site.port), timeout=60) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        connection.sendall(backup)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


def test_each_command_has_its_method(site: Site) -> None:
    status, headers, _ = site.ask("restore")
    assert (status, headers["Allow"]) == (405, "POST")
    status, headers, _ = site.ask("snapshot", method="POST", body=b"")
    assert (status, headers["Allow"]) == (405, "GET")
    assert b'<a href="/commands/snapshot">snapshot</a>' in site.ask("")[2]


def test_each_may_be_asked_for_once_in_an_interval_also_across_a_restore(tmp_path: Path) -> None:
    with Site(tmp_path, interval="3600000") as site:
        site.create("/a")
        # Who may not, does not count.
        assert site.ask("snapshot", ALICE)[0] == 403
        status, _, backup = site.ask("snapshot")
        assert status == 200
        status, headers, body = site.ask("snapshot")
        assert status == 429
        assert 3500 < int(headers["Retry-After"]) <= 3600
        assert "try again in" in error_of(body)
        # What had no body has cost nothing.
        assert site.restore(b"")[0] == 400
        assert site.restore(backup)[0] == 200
        assert site.restore(backup)[0] == 429


def test_a_body_that_is_no_backup_counts_as_upstream(tmp_path: Path) -> None:
    with Site(tmp_path, interval="3600000") as site:
        site.create("/a")
        assert [site.restore(b"garbage")[0] for _ in range(2)] == [400, 429]


def test_each_can_be_switched_off(tmp_path: Path) -> None:
    keys = {"admin_snapshot_enabled": "false", "admin_restore_enabled": "false"}
    with Site(tmp_path, **keys) as site:
        site.create("/a")
        assert site.ask("snapshot")[0] == 503
        assert site.restore(b"") == (
            503,
            {"command": "restore", "error": "The restore command is disabled"},
        )


def test_who_asked_is_in_the_audit_log(site: Site) -> None:
    site.create("/a")
    backup = site.ask("snapshot")[2]
    site.ask("snapshot", ALICE)
    site.ask("snapshot", None)
    site.restore(b"x")
    site.restore(backup)
    site.server.stop()
    text = (site.server.data / "audit.log").read_text()
    found = re.findall(r"paddock.audit: (.*operation=(?:snapshot|restore).*)", text)
    assert [one.replace("\t", " ") for one in found] == [
        "user=super ip=127.0.0.1 operation=snapshot result=success",
        "user=alice ip=127.0.0.1 operation=snapshot result=failure",
        "ip=127.0.0.1 operation=snapshot result=failure",
        "user=super ip=127.0.0.1 operation=restore result=failure",
        "user=super ip=127.0.0.1 operation=restore result=success",
    ]


def test_a_snapshot_that_nobody_reads_is_given_up(tmp_path: Path) -> None:
    with Site(tmp_path, admin_idleTimeout="500") as site:
        # More than the system takes off our hands.
        for number in range(40):
            site.create(f"/n{number}", b"x" * 1_000_000)
        with socket.create_connection(("127.0.0.1", site.port), timeout=60) as connection:
            connection.sendall(
                f"GET /commands/snapshot HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: {SUPER}\r\n\r\n".encode()
            )
            begun = connection.recv(100)
            assert begun.startswith(b"HTTP/1.1 200")
            # Meanwhile others are answered, and it is not waited for.
            assert site.ask("ruok")[0] == 200
            while site.ask("ruok")[0] == 200 and open_snapshots(site):
                pass
        status, _, backup = site.ask("snapshot")
        assert status == 200
        with tarfile.open(fileobj=BytesIO(backup)) as archive:
            assert archive.getnames()[-1] == "manifest.json"


def open_snapshots(site: Site) -> list[str]:
    """List the snapshots that the server has open."""
    pid = int((site.server.data / "lock").read_text())
    links = []
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(str(one.readlink()))
    return [one for one in links if one.endswith(".snapshot")]


async def ask_here(port: int, command: str, method: str = "GET", body: bytes = b"") -> bytes:
    """Ask an admin server on this loop; return all that it answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"{method} /commands/{command} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Authorization: {SUPER}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.read()
    writer.close()
    return answer


def config_of(folder: Path | None) -> ServerConfig:
    return ServerConfig(
        port=0,
        admin_port=0,
        data_directory=folder,
        super_digest=digest_id("super:secret"),
        admin_rate_limit_interval_ms=0,
    )


def server_of(config: ServerConfig) -> Server:
    return Server(config, wall_clock_ms=lambda: 0, random_bytes=os.urandom)


@pytest.mark.parametrize(
    ("in_memory", "snapshot", "restore"),
    [
        (False, "There is nothing yet: no write has come", "There is no control socket, by which"),
        (True, "A server in memory takes no snapshots", "A server in memory has no data"),
    ],
)
def test_a_server_that_cannot_says_why(
    tmp_path: Path, in_memory: bool, snapshot: str, restore: str
) -> None:
    async def scenario() -> None:
        server = server_of(config_of(None if in_memory else tmp_path))
        await server.start()
        try:
            for answer, reason in (
                (await ask_here(server.admin_address[1], "snapshot"), snapshot),
                (await ask_here(server.admin_address[1], "restore", "POST", b"x"), restore),
            ):
                assert answer.startswith(b"HTTP/1.1 503 ")
                assert reason.encode() in answer
        finally:
            await server.stop()

    asyncio.run(scenario())


def test_the_old_state_is_let_go_of_before_the_restored_one_is_loaded(tmp_path: Path) -> None:
    states: list[weakref.ref[Metrics]] = []
    held: list[bool] = []
    ports: list[int] = []

    class Watched(Server):
        """Notes what leads to its state, which itself cannot be watched."""

        async def _start_admin(self, metrics: Metrics, health: Health) -> None:
            states.append(weakref.ref(metrics))
            ports.append(self.admin_address[1])
            await super()._start_admin(metrics, health)

    def make_server(config: ServerConfig) -> Server:
        held.append(any(one() is not None for one in states))
        return Watched(config, wall_clock_ms=lambda: 0, random_bytes=os.urandom)

    async def scenario() -> None:
        supervisor = Supervisor(config_of(tmp_path), make_server, lambda: 0)
        await supervisor.start()
        async with paddock.connect("{}:{}".format(*supervisor.address)) as client:
            await client.create("/a")
        answer = await ask_here(ports[0], "snapshot")
        backup = answer.partition(b"\r\n\r\n")[2]
        assert b"HTTP/1.1 400 " in await ask_here(ports[0], "restore", "POST", backup[:-20_000])
        assert (await ask_here(ports[0], "restore", "POST", backup)).startswith(b"HTTP/1.1 200 ")
        stop = asyncio.Event()
        stop.set()
        await supervisor.serve_until(stop)

    asyncio.run(scenario())
    assert held == [False, False]
