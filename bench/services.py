"""Services of three servers: Paddock on an etcd of three members, and an Apache ensemble.

Everything runs on this machine, on 127.0.0.1, and keeps its data on a real disk with fsync on.
"""

import contextlib
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench import etcd, servers
from bench.servers import START_DEADLINE_S, BenchError, Server, free_port

SIZE: Final = 3
# What `docs/how-to/size-a-cluster.md` recommends: for a fast network, and a log that is trimmed.
ETCD_OPTIONS: Final = (
    *("--heartbeat-interval", "25", "--election-timeout", "250", "--pre-vote=true"),
    *("--snapshot-count", "1000", "--quota-backend-bytes", str(8 << 30)),
)


class EtcdMember(Server):
    """One member of an etcd."""

    __slots__ = ()

    def start(self) -> float:
        began = time.monotonic()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "ETCD_UNSUPPORTED_ARCH": _architecture()},
            )
        while time.monotonic() - began < START_DEADLINE_S:
            if self.process.poll() is not None:
                raise BenchError(f"{self.name} did not start: see {self.log}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return time.monotonic() - began
            time.sleep(0.02)
        raise BenchError(f"{self.name} does not answer")


@dataclass(slots=True)
class Service:
    """Servers that serve one state, and what they stand on."""

    name: str
    members: list[Server]
    # The members of etcd, if it has one.
    below: list[EtcdMember] = field(default_factory=list)

    @property
    def rss_mib(self) -> float:
        """The memory of all its processes that run."""
        return sum(one.rss_mib for one in (*self.members, *self.below) if one.process is not None)

    def leader(self) -> int:
        """Return which of the servers leads, by what `srvr` says."""
        for number, member in enumerate(self.members):
            if b"Mode: leader" in four_letter_word(member.port, b"srvr"):
                return number
        raise BenchError(f"{self.name} has no leader")

    def etcd_leader(self) -> int:
        """Return which member leads etcd."""
        for number, member in enumerate(self.below):
            status = _etcdctl(member.port, "endpoint", "status", "--write-out=fields")
            fields = dict(
                line.replace('"', "").split(" : ", 1)
                for line in status.splitlines()
                if " : " in line
            )
            if fields["Leader"] == fields["MemberID"]:
                return number
        raise BenchError("etcd has no leader")

    def database_mib(self) -> float:
        """Return the size of the largest database of etcd's members."""
        files = [one.folder / "data" / "member" / "snap" / "db" for one in self.below]
        return max(file.stat().st_size for file in files) / (1 << 20)


@contextlib.contextmanager
def running(service: Service) -> Iterator[None]:
    """Start a service; stop all of it at the end, in any case."""
    with contextlib.ExitStack() as stack:
        for group in (service.below, service.members):
            for one in group:
                stack.callback(one.stop)
            # All at once: none answers before most of them run.
            with ThreadPoolExecutor(SIZE) as threads:
                list(threads.map(lambda one: one.start(), group))
        yield


def kill(server: Server) -> None:
    """End a server with kill -9."""
    process, server.process = server.process, None
    assert process is not None, "it runs"
    process.send_signal(signal.SIGKILL)
    process.wait()


def paddock(folder: Path) -> Service:
    """Three Paddocks, from this interpreter, on three members of etcd."""
    program = etcd.program()
    if program is None:
        raise BenchError("etcd is not installed (Debian: apt-get install etcd-server)")
    below = _etcd(program, folder)
    hosts = ",".join(f"127.0.0.1:{one.port}" for one in below)
    members = [new_paddock(folder / f"server-{n}", hosts) for n in range(1, SIZE + 1)]
    return Service("Paddock", members, below)


def new_paddock(folder: Path, etcd_hosts: str) -> Server:
    """One more server of a service."""
    folder.mkdir(parents=True)
    port = free_port()
    command = [sys.executable, "-m", "paddock", "serve", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--data", str(folder / "data")]
    command += ["--log", f"etcd://{etcd_hosts}/bench", "--log-level", "warning"]
    return Server("Paddock", command, port, folder)


def apache(folder: Path) -> Service:
    """An ensemble of three."""
    ports = [(free_port(), free_port(), free_port()) for _ in range(SIZE)]
    members = []
    for number, (port, _, _) in enumerate(ports, 1):
        own = folder / f"server-{number}"
        (own / "data").mkdir(parents=True)
        (own / "data" / "myid").write_text(str(number))
        servers.configure(own, port, initLimit=20, syncLimit=10)
        with (own / "zoo.cfg").open("a") as settings:
            settings.write("4lw.commands.whitelist=*\n")
            for other, (_, quorum, election) in enumerate(ports, 1):
                settings.write(f"server.{other}=127.0.0.1:{quorum}:{election}\n")
        (own / "log4j.properties").write_text("log4j.rootLogger=OFF\n")
        members.append(servers.new_apache(own, port))
    return Service("Apache ZooKeeper", members)


def four_letter_word(port: int, word: bytes) -> bytes:
    """Return what a server answers; nothing if it does not."""
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 2.0) as link:
        link.sendall(word)
        while piece := link.recv(1 << 16):
            answer += piece
    return answer


def snapshot_index(etcd_hosts: str) -> int:
    """Return the index of the snapshot of a service in etcd; 0 without one."""
    command = [sys.executable, "-m", "paddock", "cluster", "status", "--quick", "--json"]
    done = subprocess.run(
        [*command, "--log", f"etcd://{etcd_hosts}/bench"], capture_output=True, text=True
    )
    if done.returncode:
        raise BenchError(f"paddock cluster status: {done.stderr.strip()}")
    snapshot = json.loads(done.stdout).get("snapshot")
    return int(snapshot["index"]) if snapshot else 0


def _etcd(program: str, folder: Path) -> list[EtcdMember]:
    ports = [(free_port(), free_port()) for _ in range(SIZE)]
    cluster = ",".join(f"m{n}=http://127.0.0.1:{peer}" for n, (_, peer) in enumerate(ports))
    found = []
    for number, (port, peer) in enumerate(ports):
        own = folder / f"etcd-{number + 1}"
        own.mkdir(parents=True)
        clients_url, peers_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
        command = [program, "--name", f"m{number}", "--data-dir", str(own / "data")]
        command += ["--listen-client-urls", clients_url, "--advertise-client-urls", clients_url]
        command += ["--listen-peer-urls", peers_url, "--initial-advertise-peer-urls", peers_url]
        command += ["--initial-cluster", cluster, "--log-level", "error", *ETCD_OPTIONS]
        found.append(EtcdMember("etcd", command, port, own))
    return found


def _etcdctl(port: int, *arguments: str) -> str:
    command: Sequence[str] = ["etcdctl", f"--endpoints=127.0.0.1:{port}", *arguments]
    environment = {**os.environ, "ETCDCTL_API": "3", "ETCD_UNSUPPORTED_ARCH": _architecture()}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise BenchError(f"etcdctl: {done.stderr.strip()}")
    return done.stdout


def _architecture() -> str:
    return {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
