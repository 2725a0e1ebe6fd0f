"""`paddock serve` as a service: what its manager is told, what signals do, what its logs say."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddock.server.admin.log_handler import BURST
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import INT, Code

DEADLINE_S = 30.0
UNITS = Path(__file__).parents[2] / "packaging" / "systemd"
PROGRAM = "/opt/paddock/bin/paddock"
CREATES = [rq.create(f"/n{number}") for number in range(2000)]


class Service:
    """A server started by a manager: us, with a socket that stands in for systemd's."""

    def __init__(self, listener: socket.socket, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.address = ("", 0)
        self._listener = listener

    def told(self, wanted: str) -> str:
        """Wait for a datagram that has this line; give the whole of it."""
        while True:
            datagram = self._listener.recv(10_000).decode()
            if wanted in datagram.split("\n"):
                return datagram

    def wait_ready(self) -> None:
        datagram = self.told("READY=1")
        found = re.search(r"^STATUS=Serving on (.+):(\d+)", datagram, flags=re.MULTILINE)
        assert found is not None, datagram
        self.address = found[1], int(found[2])

    def end(self, number: int = signal.SIGTERM) -> tuple[int, list[str]]:
        """Send a signal; give the status and the lines of the log."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors.splitlines()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Start services, each told of its manager; they are ready when this returns."""
    with contextlib.ExitStack() as stack:

        def start_one(*arguments: str | Path, **environment: str) -> Service:
            path = tmp_path / f"notify{len(list(tmp_path.glob('notify*')))}"
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            listener.settimeout(DEADLINE_S)
            listener.bind(str(path))
            process = subprocess.Popen(
                [sys.executable, "-m", "paddock", "serve", "--port", "0", *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "NOTIFY_SOCKET": str(path), **environment},
            )
            stack.callback(end, process)
            service = Service(listener, process)
            service.wait_ready()
            return service

        yield start_one


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


Start = Callable[..., Service]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is missing")
@pytest.mark.parametrize(
    ("name", "instance", "command"),
    [
        ("paddock.service", "paddock.service", "serve"),
        ("paddock@.service", "paddock@2182.service", "serve --port %i"),
    ],
)
def test_a_unit_is_one_that_systemd_understands(
    tmp_path: Path, name: str, instance: str, command: str
) -> None:
    unit = tmp_path / instance
    program = Path(sys.executable).parent / "paddock"
    text = (UNITS / name).read_text(encoding="utf-8")
    assert f"ExecStart={PROGRAM} {command}\n" in text
    unit.write_text(text.replace(PROGRAM, str(program)), encoding="utf-8")
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def test_servers_of_one_machine_run_as_safely_as_a_single_one() -> None:
    # What they may do is the same, but for the names of users and folders.
    alone, several = (
        (UNITS / name).read_text(encoding="utf-8").partition("# Nothing but its data")[2]
        for name in ("paddock.service", "paddock@.service")
    )
    assert "CapabilityBoundingSet=\n" in alone
    assert several == alone


def test_its_manager_hears_when_it_serves_and_when_it_stops(start: Start, tmp_path: Path) -> None:
    service = start("--data", tmp_path / "data")
    # After READY=1 a client can connect at once.
    with wire.connect(service.address) as client:
        assert client.call(rq.create("/a")).err == Code.OK
    service.process.send_signal(signal.SIGTERM)
    service.told("STOPPING=1")
    assert service.process.wait(DEADLINE_S) == 0


def test_signs_of_life_come_as_long_as_the_manager_wants_them(start: Start) -> None:
    service = start("--memory", WATCHDOG_USEC="100000")
    for _ in range(3):
        service.told("WATCHDOG=1")


def test_a_hangup_does_not_end_it(start: Start) -> None:
    service = start("--memory")
    with wire.connect(service.address) as client:
        service.process.send_signal(signal.SIGHUP)
        assert client.call(rq.create("/a")).err == Code.OK
        assert client.call(rq.exists("/a")).err == Code.OK
    status, log = service.end()
    assert status == 0
    assert any("SIGHUP: nothing to do" in line for line in log)


def test_a_second_signal_ends_it_at_once_and_nothing_is_lost(start: Start, tmp_path: Path) -> None:
    service = start("--data", tmp_path / "data", "--audit-enabled")
    with wire.connect(service.address) as client, wire.connect(service.address) as deaf:
        assert client.call(rq.create("/large", bytes(900_000))).err == Code.OK
        deaf.send(*[rq.get_data("/large")] * 40)
        deaf.read_frame()
        service.process.send_signal(signal.SIGTERM)
        service.told("STOPPING=1")
        # The first one waits for a client that does not read.
        status, log = service.end(signal.SIGTERM)
    assert status == 128 + signal.SIGTERM
    assert log[-1].endswith("SIGTERM again: leaving at once, without a snapshot")
    assert "operation=create" in (tmp_path / "data" / "audit.log").read_text()
    service = start("--data", tmp_path / "data")
    with wire.connect(service.address) as client:
        assert client.call(rq.exists("/large")).err == Code.OK


def test_a_second_signal_leaves_no_line_of_the_audit_log_behind(
    start: Start, tmp_path: Path
) -> None:
    # Nobody reads it, so most lines have to wait.
    pipe = tmp_path / "audit"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as reader:
        service = start("--memory", "--audit-enabled", "--audit-file", pipe)
        with wire.connect(service.address) as client:
            assert not any(reply.err for reply in client.calls(*CREATES))
        service.process.send_signal(signal.SIGTERM)
        service.told("STOPPING=1")
        service.process.send_signal(signal.SIGTERM)
        os.set_blocking(reader.fileno(), True)
        lines = reader.read().splitlines()
    assert service.process.wait(DEADLINE_S) == 128 + signal.SIGTERM
    found = [line for line in lines if "operation=create" in line]
    assert len(found) == len(CREATES)


def test_its_whole_life_is_told_in_lines_of_json(start: Start, tmp_path: Path) -> None:
    service = start(
        *("--data", tmp_path / "data", "--log-format", "json", "--max-connections-per-address", 1),
        PADDOCK_SUPER_DIGEST="super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
        PADDOCK_NOTHING="x",
    )
    with wire.connect(service.address) as client:
        client.call(rq.create("/a", b"never shown"))
        with wire.Connection(service.address) as refused:
            assert refused.wait_closed() == b""
        client.close()
    status, lines = service.end()
    assert status == 0
    told = [json.loads(line) for line in lines]
    warning, begun, loaded, *_ = told
    assert "PADDOCK_NOTHING is not known" in warning["message"]
    assert begun["settings"]["super_digest"] == "(not shown)"
    assert begun["pid"] == service.process.pid
    assert loaded["nodes"] > 0
    (ready,) = [one for one in told if one["message"].startswith("ready: ")]
    assert ready["port"] == service.address[1]
    (refusal,) = [one for one in told if "refused a connection" in one["message"]]
    assert (refusal["level"], refusal["address"]) == ("warning", "127.0.0.1")
    (closed,) = [one for one in told if one.get("reason") == "closed"]
    assert closed["session"] == f"0x{client.session_id:x}"
    (snapshot,) = [one for one in told if one["message"].startswith("snapshot at ")]
    assert snapshot["bytes"] > 0
    assert told[-1]["message"].startswith("stopped in ")
    assert "never shown" not in "".join(lines)
    assert "D/InIHSb7" not in "".join(lines)


def test_no_client_can_flood_the_log(start: Start) -> None:
    service = start("--memory", "--max-connections-per-address", "0")
    for _ in range(10 * BURST):
        with wire.Connection(service.address) as garbage:
            garbage.send_bytes(INT.pack(4) + b"what")
            assert garbage.wait_closed() == b""
    status, log = service.end()
    assert status == 0
    of_it = [line for line in log if "127.0.0.1: handshake" in line]
    assert len(of_it) < 2 * BURST
    counted = re.search(r"\(and (\d+) more like it\)$", of_it[-1])
    assert counted is not None
    assert int(counted[1]) + len(of_it) == 10 * BURST


def test_without_a_folder_the_audit_log_is_on_stderr(start: Start) -> None:
    service = start("--memory", "--audit-enabled", "--log-format", "json")
    with wire.connect(service.address) as client:
        client.call(rq.create("/a"))
    _, log = service.end()
    audit = [one for one in map(json.loads, log) if one["logger"] == "paddock.audit"]
    assert [one["operation"] for one in audit] == ["serverStart", "create", "serverStop"]


def test_an_audit_log_that_cannot_be_written_is_one_line_and_status_1(tmp_path: Path) -> None:
    command = ["serve", "--memory", "--port", "0", "--audit-enabled"]
    result = subprocess.run(
        [sys.executable, "-m", "paddock", *command, "--audit-file", str(tmp_path / "no" / "audit")],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert (
        line
        == f"paddock: audit log {tmp_path}/no/audit: cannot be written: No such file or directory"
    )
