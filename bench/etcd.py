"""etcd: a similar service with another protocol, measured for information only.

It is measured through its JSON gateway over HTTP, with one request in flight on each connection:
every Python program can use that without a special client. Its native protocol, gRPC, is faster.
"""

import base64
import contextlib
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.clients import output_of
from bench.servers import START_DEADLINE_S, BenchError, free_port

UNPACKED: Final = Path(__file__).parent / "peers" / "usr" / "bin" / "etcd"
# Its operations, and the names of ours that do the same.
OPS: Final = {"range": "get", "put": "set"}
CONNECTIONS: Final = (1, 10, 50)
KEY: Final = base64.b64encode(b"/bench").decode()
DATA: Final = base64.b64encode(b"x" * 100).decode()


@dataclass(frozen=True, slots=True)
class EtcdRun:
    """The result of so many connections to etcd."""

    op: str
    connections: int
    ops_per_s: float
    p50_us: float
    p99_us: float


def program() -> str | None:
    """Return the path of etcd; None if it is not installed."""
    return shutil.which("etcd") or (str(UNPACKED) if UNPACKED.exists() else None)


@contextlib.contextmanager
def running(path: str, folder: Path) -> Iterator[int]:
    """Start one server with its data in `folder`; yield its port."""
    folder.mkdir(parents=True)
    port, peers = free_port(), free_port()
    clients_url, peers_url = (f"http://127.0.0.1:{number}" for number in (port, peers))
    command = [path, "--data-dir", str(folder / "data"), "--log-level", "error"]
    command += ["--listen-client-urls", clients_url, "--advertise-client-urls", clients_url]
    command += ["--listen-peer-urls", peers_url, "--initial-advertise-peer-urls", peers_url]
    command += ["--initial-cluster", f"default={peers_url}"]
    # Debian builds it for every architecture; etcd refuses some of them without this.
    machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    environment = {**os.environ, "ETCD_UNSUPPORTED_ARCH": machine}
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    try:
        _wait_until_it_answers(process, port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 1.0) as connection:
                connection.sendall(request("put"))
                if connection.recv(64).startswith(b"HTTP/1.1 200"):
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise BenchError("etcd does not start")


def request(op: str) -> bytes:
    """Return the bytes of a request for an operation."""
    body = {"key": KEY} if op == "range" else {"key": KEY, "value": DATA}
    content = json.dumps(body).encode()
    head = f"POST /v3/kv/{op} HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def load(port: int, op: str, connections: int, seconds: float, warmup_s: float) -> EtcdRun:
    """Run a load for that long, in a process of its own."""
    command = ["bench.etcd_load", op, str(connections), str(port), str(seconds), str(warmup_s)]
    said = output_of(command, f"etcd: {op}", 60 + 5 * (seconds + warmup_s))
    try:
        return EtcdRun(**json.loads(said))
    except (ValueError, TypeError):
        raise BenchError(f"a client of etcd said {said.strip()!r}") from None


def median(runs: list[EtcdRun]) -> EtcdRun:
    """Return the medians of several rounds."""
    figures = (
        statistics.median(getattr(run, name) for run in runs)
        for name in ("ops_per_s", "p50_us", "p99_us")
    )
    return EtcdRun(runs[0].op, runs[0].connections, *figures)
