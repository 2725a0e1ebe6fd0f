"""etcd, the log of several servers: one member, or a cluster of three, from Debian's packages.

    with Etcd(tmp_path / "etcd") as etcd:
        store = EtcdStore(EtcdOptions((etcd.endpoint,)), Keys("test"))

    with EtcdCluster(tmp_path / "etcd") as cluster:
        cluster.leader().kill()

A member is a process like any other server of the tests; it can be killed, stopped, paused, wiped
and started again, and keeps its ports and its data meanwhile. Its log is `server.log` in its
folder, which pytest keeps if the test gave a folder of its own.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support import certificates
from tests.support.server import (
    POLL_S,
    PROBE_DEADLINE_S,
    START_DEADLINE_S,
    Server,
    ServerFailedError,
    ServerMissingError,
    free_ports,
)

SIZE: Final = 3
QUOTA_BYTES: Final = 1 << 30
# etcd keeps 5,000 entries more than this in memory.
SNAPSHOT_COUNT: Final = 1000

# How Go calls what Python calls otherwise. etcd 3.4 starts there only if it is told to.
_ARCHITECTURES: Final = {"aarch64": "arm64"}
_LEADS: Final = re.compile(r"^etcd_server_is_leader 1$", re.MULTILINE)


def find_etcd() -> str:
    """Return the program, or say what to install."""
    program = shutil.which("etcd")
    if program is None:
        raise ServerMissingError("etcd is missing (Debian: apt-get install etcd-server)")
    return program


def find_etcdctl() -> str:
    """Return the command, or say what to install."""
    program = shutil.which("etcdctl")
    if program is None:
        raise ServerMissingError("etcdctl is missing (Debian: apt-get install etcd-client)")
    return program


class Etcd(Server):
    """A member of an etcd: the only one, unless `peers` names others."""

    name = "etcd"

    def __init__(
        self,
        folder: Path | None = None,
        *,
        quota_bytes: int = QUOTA_BYTES,
        snapshot_count: int = SNAPSHOT_COUNT,
        arguments: Sequence[str] = (),
        is_secure: bool = False,
    ) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder=folder)
        self.member = "one"
        self.port, self.peer_port, self.metrics_port = free_ports(3)
        self.quota_bytes = quota_bytes
        self.snapshot_count = snapshot_count
        # Such as `--cert-file`; may be changed before the next start.
        self.arguments = list(arguments)
        self.is_secure = is_secure
        self.paused = False
        self.peers = {self.member: self.peer_url}

    def __repr__(self) -> str:
        return f"etcd {self.member}"

    @property
    def endpoint(self) -> str:
        """Where clients find it: `host:port`."""
        return self.hosts

    @property
    def url(self) -> str:
        return f"{'https' if self.is_secure else 'http'}://{self.hosts}"

    @property
    def peer_url(self) -> str:
        return f"http://{self.host}:{self.peer_port}"

    @property
    def database(self) -> Path:
        """The file with its keys."""
        return self.data / "member" / "snap" / "db"

    @property
    def running(self) -> bool:
        """Whether its process runs and is not paused."""
        return self.alive and not self.paused

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command = [find_etcd(), "--name", self.member, "--data-dir", str(self.data)]
        command += ["--listen-client-urls", self.url, "--advertise-client-urls", self.url]
        command += ["--listen-peer-urls", self.peer_url]
        command += ["--initial-advertise-peer-urls", self.peer_url]
        peers = ",".join(f"{member}={url}" for member, url in self.peers.items())
        command += ["--initial-cluster", peers, "--initial-cluster-token", str(self.peer_port)]
        # Not over TLS, whatever clients need.
        command += ["--listen-metrics-urls", f"http://{self.host}:{self.metrics_port}"]
        command += ["--quota-backend-bytes", str(self.quota_bytes)]
        command += ["--snapshot-count", str(self.snapshot_count)]
        command += ["--logger", "zap", "--log-outputs", "stderr", *self.arguments]
        machine = platform.machine()
        return command, {"ETCD_UNSUPPORTED_ARCH": _ARCHITECTURES.get(machine, machine)}

    def is_serving(self) -> bool:
        """Whether it takes part in a quorum."""
        return self.running and '"health":"true"' in self._get("/health")

    def leads(self) -> bool:
        """Whether it is the leader, as far as it knows."""
        return self.running and _LEADS.search(self._get("/metrics")) is not None

    def pause(self) -> None:
        """Stop its clock: to the others it hangs, and its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """Let it go on from where it was."""
        os.kill(self.pid, signal.SIGCONT)
        self.paused = False

    def stop(self) -> int | None:
        # What is paused cannot hear that it should end.
        if self.alive and self.paused:
            self.resume()
        return super().stop()

    def kill(self) -> None:
        super().kill()
        self.paused = False

    def wait_serving(self) -> None:
        """Wait until it takes part in a quorum."""
        self._wait_ready()

    def wipe(self) -> None:
        """Forget everything; only while it does not run."""
        assert not self.alive, f"{self!r} runs"
        shutil.rmtree(self.data)
        self.data.mkdir()

    def ctl(self, *arguments: str) -> str:
        """Run `etcdctl` on it; return what it says."""
        command = [find_etcdctl(), "--endpoints", self.url]
        # Authentication counts as a part of the dialling.
        command += ["--command-timeout", "60s", "--dial-timeout", "60s", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "ETCDCTL_API": "3"}
        )
        if done.returncode:
            raise ServerFailedError(f"etcdctl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def _get(self, path: str) -> str:
        """Ask by HTTP; return nothing if it does not answer."""
        connection = http.client.HTTPConnection(
            self.host, self.metrics_port, timeout=PROBE_DEADLINE_S
        )
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException):
            return ""
        finally:
            connection.close()


class EtcdPki:
    """An authority, a certificate for etcd and one for its clients, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.ca = folder / "ca.pem"
        self.certificate = folder / "client.pem"
        self.key = folder / "client.key"
        self._folder = folder
        self.issue()

    def issue(self) -> None:
        """Write new ones, of a new authority."""
        authority = certificates.Authority()
        self.ca.write_bytes(authority.pem())
        for name in ("server", "client"):
            issued = authority.issue(certificates.name(f"CN={name}"))
            (self._folder / f"{name}.pem").write_bytes(issued.certificate_pem())
            (self._folder / f"{name}.key").write_bytes(issued.key_pem())

    def arguments(self) -> list[str]:
        """Return what etcd is started with; it asks its clients for certificates then."""
        trusted = ["--trusted-ca-file", str(self.ca), "--client-cert-auth"]
        server = [str(self._folder / "server.pem"), str(self._folder / "server.key")]
        return [*trusted, "--cert-file", server[0], "--key-file", server[1]]


class EtcdCluster:
    """Three members. `with` stops them and removes their folder, if it is ours."""

    def __init__(self, folder: Path | None = None, *, arguments: Sequence[str] = ()) -> None:
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="paddock-test-etcd-"))
        self.members: list[Etcd] = []
        for number in range(SIZE):
            member = Etcd(self.folder / str(number), arguments=arguments)
            member.member = f"m{number}"
            self.members.append(member)
        for member in self.members:
            member.peers = {one.member: one.peer_url for one in self.members}
            member.arguments += ["--initial-cluster-token", self.folder.name]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def endpoints(self) -> tuple[str, ...]:
        return tuple(member.endpoint for member in self.members)

    def start(self) -> None:
        """Start the members that do not run, resume those that are paused; wait for all."""
        for member in self.members:
            if not member.alive:
                # One that crashed is still known as a process.
                member.kill()
                member.launch()
            elif member.paused:
                member.resume()
        for member in self.members:
            member.wait_serving()

    def stop(self) -> None:
        with contextlib.ExitStack() as stack:
            if self._own_folder:
                stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            for member in self.members:
                # A clean stop waits for the other members, and they end, too.
                stack.callback(member.kill)

    def leader(self) -> Etcd:
        """Return the member that leads, as soon as one does."""
        limit = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < limit:
            # One that was paused may believe for a while that it still leads.
            leaders = [member for member in self.members if member.leads()]
            if len(leaders) == 1:
                return leaders[0]
            time.sleep(POLL_S)
        raise ServerFailedError("no member of etcd leads")

    def followers(self) -> list[Etcd]:
        """Return the running members that do not lead."""
        leader = self.leader()
        return [member for member in self.members if member.running and member is not leader]

    def in_order(self, first: Etcd) -> tuple[str, ...]:
        """Return the endpoints, beginning with that of a member."""
        at = self.members.index(first)
        return self.endpoints[at:] + self.endpoints[:at]
