"""Paddock as a process that is killed, stopped, traced, or does not come up at all."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import requests as rq
from tests.support import wire
from tests.support.command import COMMAND, refusal
from tests.support.paddock_server import PaddockServer
from tests.support.records import Stat
from tests.support.server import Options

DEADLINE_S = 30.0

#: Everything that can be read, by path.
Tree = dict[str, tuple[bytes | None, Stat]]


class FaultServer(PaddockServer):
    """A server whose data outlives it. With `trace`, strace writes its calls to that file."""

    def __init__(
        self, folder: Path, options: Options | None = None, trace: Path | None = None
    ) -> None:
        super().__init__(options, folder)
        self._trace = trace

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super().prepare()
        if self._trace is not None:
            # -D: the server is our child and the tracer is not, so signals reach the server.
            records = "pwrite64,pwritev,pwritev2"
            calls = f"trace=fdatasync,fsync,{records},write,writev,sendto,sendmsg"
            strace = ["strace", "-D", "-f", "-y", "-s", "0", "-e", calls, "-e", "signal=none"]
            command = [*strace, "-o", str(self._trace), *command]
        return command, environment

    def interrupt(self) -> int | None:
        """Stop as Ctrl-C does; return the exit status."""
        return self._end(signal.SIGINT)

    def limit_memory(self, more_bytes: int) -> None:
        """Let the server that runs have so much more memory, and no more."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        match = re.search(r"^VmSize:\s+(\d+) kB$", status, re.MULTILINE)
        assert match is not None, "no VmSize"
        limit = int(match[1]) * 1024 + more_bytes
        resource.prlimit(self.pid, resource.RLIMIT_AS, (limit, limit))

    def start_and_kill(self, after_s: float) -> None:
        """Start it and kill it after so long, whatever it is doing then."""
        command, environment = self.prepare()
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **environment}
            )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
        process.kill()
        process.wait()

    def start_and_stop(self) -> None:
        """Start it, let no client in, and stop it once it serves."""
        command, environment = self.prepare()
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        ) as process:
            assert process.stdout is not None
            assert b"listens" in process.stdout.readline()
            process.terminate()
            assert process.wait(DEADLINE_S) == 0

    def refusal(self) -> str:
        """Start it on data that it must refuse; return the one line that it says."""
        command, _ = self.prepare()
        return refusal(*command[len(COMMAND) :], "--log-level", "error", status=1)

    @property
    def segments(self) -> list[Path]:
        """The files of the log, oldest first."""
        return sorted((self.data / "log").glob("*.log"))

    @property
    def snapshots(self) -> list[Path]:
        """The snapshots, oldest first."""
        return sorted((self.data / "snapshots").glob("*.snapshot"))


def eventually(condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Wait until the condition holds."""
    limit = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < limit, f"not in time: {what}"
        time.sleep(0.01)


def read_tree(client: wire.Client) -> Tree:
    """Read every node below the root, but for the server's own."""
    tree: Tree = {}
    level = ["/"]
    while level:
        listed = client.calls(*(rq.get_children(path) for path in level))
        level = [
            f"{path.rstrip('/')}/{name}"
            for path, reply in zip(level, listed, strict=True)
            for name in reply.strings
            if (path, name) != ("/", "zookeeper")
        ]
        read = client.calls(*(rq.get_data(path) for path in level))
        for path, reply in zip(level, read, strict=True):
            tree[path] = (reply.data, reply.stat)
    return tree


def need_strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is missing (Debian: apt-get install strace)")
