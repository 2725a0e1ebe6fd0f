"""The processes of a cluster on one machine: etcd's members, and servers.

Each writes to a log of its own, ends with us, and is not reached by Ctrl-C in our terminal: we end
them in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from paddock.cli.cluster import leash
from paddock.cli.cluster.folder import HOST, ClusterFolder
from paddock.cli.output import CannotBeDone

# How long a process may take until it serves, and to end after it was asked to. etcd's leader would
# look for a successor for seconds, when all members stop at once; killed, it loses nothing.
START_SECONDS: Final = 60.0
_SERVER_STOP_SECONDS: Final = 30.0
_ETCD_STOP_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.05
# Of a log whose end is told.
_TAIL_BYTES: Final = 4096
# What Paddock wants of etcd: its defaults keep 100,000 entries in memory, and 2 GB of data, and a
# member that comes back causes an election.
_ETCD_OPTIONS: Final = {
    "--snapshot-count": "1000",
    "--quota-backend-bytes": str(8 << 30),
    "--heartbeat-interval": "50",
    "--election-timeout": "500",
    "--pre-vote": "true",
    "--logger": "zap",
    "--log-level": "warn",
}


@dataclass(slots=True)
class ClusterProcess:
    """One process of a cluster."""

    name: str
    port: int
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]
    # What to ask for on its port, and what the answer has in it once it serves.
    question: bytes
    answer: bytes
    stop_seconds: float
    process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None, "it was started"
        return self.process.pid

    async def start(self) -> None:
        """Start it, and do not wait until it serves."""
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *self.command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self.environment,
            )

    async def wait_until_it_serves(self) -> None:
        """Raise CannotBeDone if it ends instead, or takes too long."""
        assert self.process is not None, "it was started"
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await self._serves():
                    if self.process.returncode is not None:
                        raise CannotBeDone(f"{self.end()}{self.last_line()}")
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            raise CannotBeDone(
                f"{self.name} does not serve after {START_SECONDS:.0f} s; see {self.log}"
            ) from None

    async def wait(self) -> None:
        """Wait until it has ended."""
        assert self.process is not None, "it was started"
        await self.process.wait()

    async def stop(self) -> None:
        """Ask it to end, and kill it if it does not."""
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self.stop_seconds):
                await self.wait()
        except TimeoutError:
            self.signal(signal.SIGKILL)
            await self.wait()

    def signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def end(self) -> str:
        """Say how it has ended."""
        assert self.process is not None, "it was started"
        status = self.process.returncode
        assert status is not None, "it has ended"
        how = f"status {status}" if status >= 0 else signal.Signals(-status).name
        return f"{self.name} has ended with {how}"

    def last_line(self) -> str:
        """Return the last line of its log, as the reason why it ended."""
        with self.log.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").split("\n")
        return next((f": {line}" for line in reversed(lines) if line.strip()), "")

    async def _serves(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection(HOST, self.port)
        except OSError:
            return False
        try:
            writer.write(self.question)
            return self.answer in await reader.read()
        except OSError:
            return False
        finally:
            writer.close()


def find_etcd() -> str:
    """Return the path of etcd; raise CannotBeDone with how to install it."""
    found = shutil.which("etcd")
    if found is None:
        raise CannotBeDone(
            "there is no etcd on the PATH: apt install etcd-server, brew install etcd, or"
            " https://github.com/etcd-io/etcd/releases"
        )
    return found


def etcd_processes(folder: ClusterFolder, program: str) -> list[ClusterProcess]:
    """Return the members of etcd, none of them started."""
    members = list(enumerate(folder.etcd, start=1))
    everyone = ",".join(f"etcd-{number}=http://{HOST}:{one.peers}" for number, one in members)
    # etcd refuses some architectures without this; it is ignored on the others.
    machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    found = []
    for number, ports in members:
        name = f"etcd-{number}"
        clients, peers = f"http://{HOST}:{ports.clients}", f"http://{HOST}:{ports.peers}"
        options = {
            "--name": name,
            "--data-dir": str(folder.path / name),
            "--listen-client-urls": clients,
            "--advertise-client-urls": clients,
            "--listen-peer-urls": peers,
            "--initial-advertise-peer-urls": peers,
            "--initial-cluster": everyone,
            **_ETCD_OPTIONS,
        }
        found.append(
            ClusterProcess(
                name,
                ports.clients,
                [program, *(f"{name}={value}" for name, value in options.items())],
                folder.path / f"{name}.log",
                {**_environment("ETCD_"), "ETCD_UNSUPPORTED_ARCH": machine},
                b"GET /health HTTP/1.0\r\n\r\n",
                b'"true"',
                _ETCD_STOP_SECONDS,
            )
        )
    return found


def server_processes(folder: ClusterFolder, config: Path | None) -> list[ClusterProcess]:
    """Return the servers, none of them started."""
    found = []
    for number, port in enumerate(folder.servers, start=1):
        name = f"server-{number}"
        options = {
            "--host": HOST,
            "--port": str(port),
            "--advertise": f"{HOST}:{port}",
            "--log": folder.url,
            "--data": str(folder.path / name),
            "--four-letter-words": "*",
        }
        if config is not None:
            options["--config"] = str(config)
        found.append(
            ClusterProcess(
                name,
                port,
                [
                    *(sys.executable, "-m", "paddock", "serve"),
                    *(word for option in options.items() for word in option),
                ],
                folder.path / f"{name}.log",
                _environment("PADDOCK_"),
                b"srvr",
                b"Mode: ",
                _SERVER_STOP_SECONDS,
            )
        )
    return found


def _environment(but: str) -> dict[str, str]:
    """Return our environment without the settings that begin with `but`."""
    return {name: value for name, value in os.environ.items() if not name.startswith(but)}
