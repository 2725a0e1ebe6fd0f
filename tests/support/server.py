"""A server under test: a process of its own, on a free port, with its data in a folder of its own.

Paddock and Apache ZooKeeper are started from the same `Options` and answer to the same interface:
a test cannot tell which one it talks to, except by `name`.
"""

from __future__ import annotations

import abc
import base64
import contextlib
import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from tests.support import requests, wire
from tests.support.release import Release

START_DEADLINE_S: Final = 60.0
STOP_DEADLINE_S: Final = 120.0
POLL_S: Final = 0.05
PROBE_DEADLINE_S: Final = 1.0
PROBE_TIMEOUT_MS: Final = 2000

# Where Linux says which ports it gives away.
_SYSTEM_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")

SUPER_CREDENTIALS: Final = b"super:secret"


def digest(credentials: bytes) -> str:
    """The id of the digest scheme for `user:password`."""
    user = credentials.split(b":", 1)[0].decode()
    return f"{user}:{base64.b64encode(hashlib.sha1(credentials).digest()).decode()}"


class ServerMissingError(Exception):
    """The server cannot be started on this machine at all; the message says what is missing."""


class ServerFailedError(Exception):
    """The server was started and did not come up; the message carries the end of its log."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that both servers understand."""

    tick_ms: int = 200
    min_session_timeout_ms: int = 400
    max_session_timeout_ms: int = 60_000
    reap_interval_ms: int = 200
    #: False: the operating system may keep writes to itself (for long differential runs).
    durable: bool = True
    #: Further zoo.cfg keys, as they are; None takes away one of the keys below.
    extra: tuple[tuple[str, str | None], ...] = field(default=())

    def zoo_cfg(self, data: Path, port: int) -> dict[str, str]:
        """The zoo.cfg keys common to both servers."""
        keys: dict[str, str | None] = {
            "tickTime": str(self.tick_ms),
            "dataDir": str(data),
            "clientPort": str(port),
            "clientPortAddress": "127.0.0.1",
            "minSessionTimeout": str(self.min_session_timeout_ms),
            "maxSessionTimeout": str(self.max_session_timeout_ms),
            "extendedTypesEnabled": "true",
            "4lw.commands.whitelist": "*",
            "maxClientCnxns": "0",
            **dict(self.extra),
        }
        return {key: value for key, value in keys.items() if value is not None}


class Service(Protocol):
    """What a client connects to: one server, or an ensemble."""

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> tuple[str, int]:
        """Where one server of it is."""

    @property
    def hosts(self) -> str:
        """The connection string of all of it."""

    @property
    def release(self) -> Release | None:
        """Which release of Apache ZooKeeper it is; None is Paddock."""


def named_release(service: Service) -> Release:
    """Return the release that a service says it is, which clients ask for what it can do."""
    return service.release or Release(3, 8, 0)


class Server(abc.ABC):
    """One server process. `with` stops it and removes its folder."""

    name: str

    def __init__(self, options: Options | None = None, folder: Path | None = None) -> None:
        self.options = options or Options()
        self.host = "127.0.0.1"
        self.port = free_port()
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix=f"paddock-test-{self.name}-"))
        self.data = self.folder / "data"
        self.data.mkdir(exist_ok=True)
        self.log = self.folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        #: Words before its command, such as those that enter a network namespace.
        self.within: list[str] = []

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            self.remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self.remove()

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    @property
    def hosts(self) -> str:
        """The connection string of this server alone."""
        return f"{self.host}:{self.port}"

    @property
    def release(self) -> Release | None:
        return None

    @property
    def audit_log(self) -> Path:
        """Where the audit log is, if the options ask for one; other lines may be there too."""
        return self.log

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def crashed(self) -> bool:
        """Whether it ended and nobody ended it."""
        return self._process is not None and self._process.poll() is not None

    @abc.abstractmethod
    def prepare(self) -> tuple[list[str], dict[str, str]]:
        """Write the configuration; return the command and what it adds to the environment."""

    def start(self) -> None:
        """Start the process and wait until a session can be had."""
        self.launch()
        self._wait_ready()

    def launch(self) -> None:
        """Start the process and wait for nothing."""
        assert not self.alive, "runs already"
        command, environment = self.prepare()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.within, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def restart(self) -> None:
        """Stop cleanly and start again on the same data and port."""
        self.stop()
        self.start()

    def stop(self) -> int | None:
        """Stop cleanly; return the exit status, or None if it was not running."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Stop it as a power cut would."""
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        """Remove the data, if the folder is ours."""
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def is_serving(self) -> bool:
        """Whether a session can be had, and soon: found out by having one."""
        # A connection made between bind and ready may never be answered: do not wait long. What
        # is left behind then is a session, and a short one.
        try:
            with wire.connect(
                self.address, timeout_ms=PROBE_TIMEOUT_MS, deadline_s=PROBE_DEADLINE_S
            ) as client:
                if not client.session_id:
                    return False
                # A server that wants everybody to authenticate refuses even this.
                client.call(requests.close_session())
                client.wait_closed()
                return True
        except (OSError, wire.ConnectionClosedError):
            return False

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait for the process to end by itself, but no longer than that; True if it did."""
        assert self._process is not None, "not started"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return not self.alive

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    def _end(self, number: int) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            return process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def _wait_ready(self) -> None:
        limit = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < limit:
            if self.wait_ended(0):
                raise ServerFailedError(f"{self.name} ended at its start:\n{self.log_tail()}")
            if self.is_serving():
                return
            self.wait_ended(POLL_S)
        raise ServerFailedError(f"{self.name} does not serve:\n{self.log_tail()}")


def free_port() -> int:
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Choose free ports, none of which the system assigns to other sockets.

    Port 0 would return an ephemeral port. An outgoing connection could take it before the server
    listens or while the server is down, even that of a client that looks for the server (which
    would then be connected to itself).
    """
    lowest = 32_768
    if _SYSTEM_PORTS.exists():
        lowest = int(_SYSTEM_PORTS.read_text().split()[0])
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        for port in random.sample(range(min(10_000, lowest // 2), lowest), k=200):
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == count:
                return found
    raise ServerFailedError(f"no {count} free ports below {lowest}")
