"""One server with a log of its own, on this machine: Paddock, or Apache ZooKeeper.

    with Sole(SoleServer) as sole:
        sole.server.kill()
        sole.heal()

It needs neither root nor namespaces. Nothing here opens a session: a history has them all.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from paddock.log.file.file_log import FileLog
from paddock.testing.simulation.history import History, Logged
from paddock.testing.simulation.witness import read_log
from tests.fault.stage.lab import wait_until
from tests.support.apache import ApacheServer
from tests.support.apache_log import read_transactions
from tests.support.members import Member
from tests.support.paddock_server import PaddockServer
from tests.support.server import PROBE_DEADLINE_S, Options

_MEMORY: Final = "/dev/shm" if os.path.isdir("/dev/shm") else None


class SoleServer(Member, PaddockServer):
    """One Paddock."""

    def is_serving(self) -> bool:
        return self.mode(PROBE_DEADLINE_S) == "standalone"

    def read_log(self) -> Iterable[Logged]:
        return read_file_log(self.data / "log")


class SoleApache(Member, ApacheServer):
    """One Apache ZooKeeper."""

    heap_mb = 256

    def is_serving(self) -> bool:
        # A connection that is made too early may never be answered.
        return self.mode(PROBE_DEADLINE_S) == "standalone"

    def read_log(self) -> Iterable[Logged]:
        return read_transactions(self.data)

    def thread_dump(self) -> str:
        return ApacheServer.thread_dump(self)


class Sole:
    """A server for a scene. `with` starts it, and leaves neither a process nor files behind."""

    def __init__(self, kind: type[SoleServer] | type[SoleApache]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="paddock-test-sole-", dir=_MEMORY))
        self.server = kind(1, Options(), self.folder / "server")
        self.members = [self.server]

    def __enter__(self) -> Self:
        try:
            self.heal()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(f"--- {self.server!r} ended so:\n{self.server.log_tail()}")
        self._remove()

    def heal(self) -> None:
        """Undo everything that was done, and wait until it serves."""
        if not self.server.alive:
            self.server.kill()
            self.server.launch()
        elif self.server.paused:
            self.server.resume()
        wait_until(self.server.is_serving, "the server serves")

    def read_log(
        self, history: History, counts: Counter[str], struck: set[Member]
    ) -> Iterable[Logged]:
        """Read the log of the server, which outlives it."""
        return self.server.read_log()

    def differences(self) -> list[str]:
        """Return nothing: there is no other server."""
        return []

    def _remove(self) -> None:
        self.server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def read_file_log(folder: Path) -> list[Logged]:
    """Read the log of a Paddock for the judge. When each was committed is not known."""
    log = FileLog(folder)
    with contextlib.closing(log):
        return list(read_log((-1.0, record.payload) for record in log.records(0)))
