"""The servers that are measured: started as their users start them, stopped by their process id.

Both keep their data on a real disk with fsync on, listen on 127.0.0.1, and accept as many
connections as the system permits.
"""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

START_DEADLINE_S: Final = 120.0
STOP_DEADLINE_S: Final = 60.0
ATTEMPT_DEADLINE_S: Final = 1.0
# Open files of a server besides connections: Python's modules, a JVM's archives, its data.
OTHER_FILES: Final = 500
ZOOKEEPER_JAR: Final = Path("/usr/share/java/zookeeper.jar")

# A new session with a timeout of 30 s, then `exists /`.
_HANDSHAKE: Final = bytes.fromhex("0000002d" + "00" * 12 + "00007530" + "00" * 8 + "00000010") + (
    bytes(17)
)
_EXISTS_ROOT: Final = bytes.fromhex("0000000e 00000001 00000003 00000001 2f 00")
_CLOSE: Final = bytes.fromhex("00000008 00000002 fffffff5")


class BenchError(Exception):
    """The benchmark cannot continue; the message is one line."""


@dataclass(slots=True)
class Server:
    """One server process and where to reach it."""

    name: str
    command: list[str]
    port: int
    # The folder of its settings, its data and its log.
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None, "not started"
        return self.process.pid

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def snapshots(self) -> set[Path]:
        """The snapshots in its folder."""
        data = self.folder / "data"
        return {
            path
            for path in data.rglob("*")
            if "snapshot" in str(path.relative_to(data)) and path.is_file() and not _is_part(path)
        }

    @property
    def rss_mib(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise BenchError(f"{self.name} has ended")

    def start(self) -> float:
        """Start it; return the seconds until it answered its first read."""
        began = time.monotonic()
        with self.log.open("ab") as log:
            # A session of its own, so that Ctrl-C reaches only us and we stop it.
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        while time.monotonic() - began < START_DEADLINE_S:
            if self.process.poll() is not None:
                raise BenchError(f"{self.name} did not start: {self._last_words()}")
            if _answers_a_read(self.port):
                return time.monotonic() - began
            time.sleep(0.005)
        raise BenchError(f"{self.name} does not answer: {self._last_words()}")

    def stop(self) -> None:
        """Stop it cleanly, or kill it if it does not react."""
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """End it by `kill -9`."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _is_part(path: Path) -> bool:
    return path.suffix == ".tmp"


def _answers_a_read(port: int) -> bool:
    # A connection made between bind and ready may never be answered, so each attempt is short.
    try:
        with socket.create_connection(("127.0.0.1", port), ATTEMPT_DEADLINE_S) as connection:
            connection.sendall(_HANDSHAKE)
            _read_frame(connection)
            connection.sendall(_EXISTS_ROOT)
            reply = _read_frame(connection)
            connection.sendall(_CLOSE)
            return reply[12:16] == bytes(4)
    except OSError:
        return False


def _read_frame(connection: socket.socket) -> bytes:
    size = int.from_bytes(_read_exactly(connection, 4))
    return _read_exactly(connection, size)


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionError("closed")
        data += chunk
    return data


def missing_apache() -> str | None:
    """Return, as one line, why Apache ZooKeeper cannot be measured; None if it can."""
    if not ZOOKEEPER_JAR.exists():
        return "Apache ZooKeeper is not installed (Debian: apt-get install zookeeper)"
    if shutil.which("java") is None:
        return "Java is not installed (Debian: apt-get install default-jre-headless)"
    return None


def paddock(folder: Path) -> Server:
    """Paddock from this interpreter, with its data in `folder`."""
    port = _prepare(folder)
    command = [sys.executable, "-m", "paddock", "serve", "--config", str(folder / "zoo.cfg")]
    return Server("Paddock", [*command, "--log-level", "warning"], port, folder)


def apache(folder: Path) -> Server:
    """Debian's Apache ZooKeeper, with its data in `folder`."""
    return new_apache(folder, _prepare(folder))


def new_apache(folder: Path, port: int) -> Server:
    """The same, in a folder that is prepared."""
    command = ["java", "-Xmx1g", "-cp", f"{folder}:{ZOOKEEPER_JAR}"]
    command += ["-Dzookeeper.admin.enableServer=false"]
    command += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(folder / "zoo.cfg")]
    return Server("Apache ZooKeeper", command, port, folder)


def _prepare(folder: Path) -> int:
    """Write a zoo.cfg that both servers follow; return the port in it."""
    (folder / "data").mkdir(parents=True)
    port = free_port()
    configure(folder, port)
    (folder / "log4j.properties").write_text("log4j.rootLogger=OFF\n")
    return port


def configure(folder: Path, port: int, **more: int | str) -> None:
    """Write the zoo.cfg of a server, for its next start."""
    settings = {
        "dataDir": folder / "data",
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "tickTime": 2000,
        "maxClientCnxns": 0,
        **more,
    }
    (folder / "zoo.cfg").write_text("".join(f"{k}={v}\n" for k, v in settings.items()))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def connections_allowed() -> int:
    """Raise our limit of open files; return how many connections fit into it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most - OTHER_FILES


@contextlib.contextmanager
def running(*servers: Server) -> Iterator[list[float]]:
    """Start servers one after the other; stop each of them at the end, in any case.

    Yields the seconds from each start to the first answer.
    """
    with contextlib.ExitStack() as stack:
        took_s = []
        for server in servers:
            stack.callback(server.stop)
            took_s.append(server.start())
        yield took_s


def file_system_of(folder: Path) -> str:
    """Return the type of the file system that `folder` is on, as the system calls it."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, found, *_ = line.split()
        inside = os.path.commonpath([mount, folder.resolve()]) == mount
        if inside and len(mount) >= len(best):
            best, kind = mount, found
    return kind
