"""A server under attack, and what must hold meanwhile.

    with besieged_server(tmp_path, {"maxClientCnxns": 60}) as server:
        with siege(server, growth_mb_max=60) as bystander:
            …

A bystander is served all the time, the server's resident memory grows by no more than what is said,
the process lives, serves newcomers, and has reported no error of its own.

`HOSTILE_SCALE=10` makes the attacks ten times as large where size is the point.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import resource
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.fault.stage import loop_steps
from tests.fault.stage.bystander import Bystander
from tests.fault.stage.loop_steps import StepClock
from tests.fault.stage.process import FaultServer
from tests.support import wire
from tests.support.command import COMMAND
from tests.support.records import INT, Request
from tests.support.server import Options

SCALE = int(os.environ.get("HOSTILE_SCALE", "1"))

#: What any process of Python may take more, for no reason that concerns an attack: arenas that are
#: half empty, caches, the buffers of a few connections.
SLACK_MB = 24

_RESET = struct.pack("ii", 1, 0)


class Memory:
    """The resident memory of a process, from now on."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        # The peak is counted anew from here.
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        self.begun_mb = _status_mb(pid, "VmRSS")

    def growth_mb(self) -> float:
        """Return how much more there was at the worst moment than at the beginning."""
        return peak_mb(self._pid) - self.begun_mb

    def kept_mb(self) -> float:
        """Return how much more there is now than at the beginning."""
        return _status_mb(self._pid, "VmRSS") - self.begun_mb


def peak_mb(pid: int) -> float:
    """Return the most that a process ever had, or since that was last counted anew."""
    return _status_mb(pid, "VmHWM")


def _status_mb(pid: int, name: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    match = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    assert match is not None, f"no {name}"
    return int(match[1]) / 1024


def besieged_server(folder: Path, settings: dict[str, int] | None = None) -> FaultServer:
    """Return a server with some settings, that may have as many descriptors as we may."""
    return FaultServer(folder, _options(settings))


class ClockedServer(FaultServer):
    """A server whose event loop is measured: see `loop_steps`."""

    def __init__(self, folder: Path, settings: dict[str, int] | None = None) -> None:
        super().__init__(folder, _options(settings))
        self.clock = StepClock(self.folder / "steps")

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super().prepare()
        # -P: the folder of that file is no place to import from.
        clocked = [sys.executable, "-P", loop_steps.__file__, str(self.clock.file)]
        return [*clocked, *command[len(COMMAND) :]], environment


def _options(settings: dict[str, int] | None) -> Options:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return Options(extra=tuple((key, str(value)) for key, value in (settings or {}).items()))


@contextlib.contextmanager
def siege(server: FaultServer, *, growth_mb_max: float) -> Iterator[Bystander]:
    """Have a bystander while the block attacks; check everything at its end."""
    with Bystander(server.address) as bystander:
        bystander.wait_rounds(1)
        memory = Memory(server.pid)
        yield bystander
        bystander.wait_rounds(3)
    growth_mb = memory.growth_mb()
    print(f"\n  bystander: {bystander.report}\n  memory: {growth_mb:+.1f} MB", end=" ")
    assert server.alive, server.log_tail()
    with wire.connect(server.address) as newcomer:
        assert newcomer.session_id != 0
        newcomer.close()
    assert growth_mb < growth_mb_max, f"{growth_mb:.1f} MB more, at most {growth_mb_max} expected"
    assert_no_complaint(server)


def assert_no_complaint(server: FaultServer) -> None:
    """Check that a server has reported no error of its own."""
    log = server.log.read_text()
    complaints = re.findall(r"^.*(?:ERROR|CRITICAL|Traceback).*$", log, re.MULTILINE)
    assert complaints == [], complaints[0]


class Crowd:
    """Attackers: raw sockets from many addresses. Leaving the block closes all of them."""

    def __init__(self, address: wire.Address, per_address: int = 50) -> None:
        self._address = address
        self._per_address = per_address
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in self._sockets:
            one.close()

    def join(self, *first: bytes, receive_bytes: int | None = None) -> socket.socket:
        """Connect one more, and send what it says first."""
        number = len(self._sockets) // self._per_address
        one = socket.socket()
        self._sockets.append(one)
        one.settimeout(wire.DEADLINE_S)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_bytes is not None:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        one.bind((f"127.0.{1 + number // 250}.{1 + number % 250}", 0))
        one.connect(self._address)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for data in first:
            one.sendall(data)
        return one

    def join_session(
        self, receive_bytes: int | None = None, timeout_ms: int = wire.SESSION_TIMEOUT_MS
    ) -> socket.socket:
        """Connect one more, and give it a session."""
        one = self.join(handshake(timeout_ms), receive_bytes=receive_bytes)
        take_frame(one)
        return one


def handshake(timeout_ms: int = wire.SESSION_TIMEOUT_MS) -> bytes:
    return framed(wire.connect_body(timeout_ms=timeout_ms))


def framed(payload: bytes) -> bytes:
    return INT.pack(len(payload)) + payload


def encoded(requests: Iterable[Request]) -> bytes:
    """Requests as they travel, numbered from 1 on."""
    return b"".join(
        framed(struct.pack(">ii", xid if one.xid is None else one.xid, one.op) + one.body)
        for xid, one in zip(itertools.count(1), requests)
    )


def take_frame(one: socket.socket) -> bytes:
    """Take the next frame from a socket."""
    (length,) = INT.unpack(_take(one, 4))
    return _take(one, length)


def send_some(one: socket.socket, data: bytes) -> bool:
    """Send as much as goes at once, to a peer that may not read or may hang up.

    Return whether the connection is still open.
    """
    one.setblocking(False)
    view = memoryview(data)
    try:
        while view:
            view = view[one.send(view) :]
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    return True


def reset(one: socket.socket) -> None:
    """Hang up in the rudest way: the peer gets a reset and not an end."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    one.close()


def _take(one: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = one.recv(size - len(data))
        if not more:
            raise wire.ConnectionClosedError
        data += more
    return data
