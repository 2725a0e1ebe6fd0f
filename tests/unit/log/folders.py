"""Data folders as a server leaves them, made without one."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.protocol import opcodes
from paddock.protocol.requests import CreateRequest
from paddock.state.entry import Batch, Entry
from paddock.state.machine import StateMachine, session_body
from paddock.storage.data_directory import DataDirectory
from paddock.storage.snapshots import SnapshotStore
from paddock.storage.state_swap import write_state
from tests.unit.log.helpers import Proposer
from tests.unit.state.driver import OPEN, PASSWORD, encode

SESSION = 0x1234


class FolderBuilder:
    """Writes batches to a data folder, each of which creates one node. `with` leaves it unused."""

    def __init__(self, path: Path, segment_bytes: int = 500, after: int = 0) -> None:
        self._path = path
        self._directory = DataDirectory(path)
        self._log = FileLog(self._directory.log_path, segment_bytes=segment_bytes)
        self._proposer = Proposer(self._log, after)
        self.machine = StateMachine()
        self.index = 0
        self._write(Entry(opcodes.CREATE_SESSION, session_body(30_000, PASSWORD), SESSION))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._log.close()
        self._directory.close()

    def create(self, *paths: str, digest: int | None = None) -> None:
        """Create nodes, each by a batch of its own."""
        for path in paths:
            body = encode(CreateRequest(path.encode(), b"data of " + path.encode(), OPEN, 0))
            self._write(Entry(opcodes.CREATE, body, SESSION, 1, time_ms=1000 + self.index), digest)

    def snapshot(self) -> Path:
        return write_state(self._directory.snapshots_path, self.machine, self.index, Disk())

    def purge(self) -> None:
        """Remove what the newest snapshot makes up for, and the older ones."""
        self._log.purge(SnapshotStore(self._directory.snapshots_path).purge(1))

    def write_batch(self, batch: Batch) -> None:
        """Write a batch as it is, and apply it."""
        self._proposer.write(batch.encode())
        for entry in batch.entries:
            self.machine.apply(entry)
        self.index += 1

    def _write(self, entry: Entry, digest: int | None = None) -> None:
        known = self.machine.digest() if digest is None else digest
        self.write_batch(Batch([entry], self.index, known))


def names(count: int, first: int = 0) -> list[str]:
    return [f"/n{number}" for number in range(first, first + count)]


def paths(machine: StateMachine) -> set[str]:
    """The nodes that tests made."""
    found = {path.decode() for path in machine.tree.nodes}
    return {path for path in found if path.startswith("/n")}


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, to see that it is not touched."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def copy_of(folder: Path, name: str) -> Path:
    copy = folder.parent / name
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(copy)
    return shutil.copytree(folder, copy)
