"""What the tests of the log share: waiting for reports, and a disk that fails on demand."""

import contextlib
import errno
import os
import queue
from collections.abc import Iterator, Sequence
from pathlib import Path

from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.log.interface import Record
from tests.support.logs import Durability, Reports

_WAIT_S = 30  # only a hanging log ever waits so long


class FailingDisk(Disk):
    """A disk whose operations fail while they are told to."""

    def __init__(self) -> None:
        # The operation's name, and the number of the error it fails with.
        self.failing: dict[str, int] = {}
        self.calls: list[str] = []

    def write(self, file: int, data: bytes, offset: int) -> None:
        """Write, or write the first half and fail."""
        if "write" in self.failing:
            super().write(file, data[: len(data) // 2], offset)
        self._may_fail("write")
        super().write(file, data, offset)

    def write_parts(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        self.write(file, b"".join(parts), offset)

    def read(self, file: int, size: int, offset: int) -> bytes:
        self._may_fail("read")
        return super().read(file, size, offset)

    def preallocate(self, file: int, start: int, end: int) -> None:
        self._may_fail("preallocate")
        super().preallocate(file, start, end)

    def sync(self, file: int) -> None:
        self._may_fail("sync")
        super().sync(file)

    def rename(self, old: Path, new: Path) -> None:
        self._may_fail("rename")
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._may_fail("remove")
        super().remove(path)

    def sync_folder(self, folder: Path) -> None:
        self._may_fail("sync_folder")
        super().sync_folder(folder)

    @contextlib.contextmanager
    def fail(self, operation: str, number: int = errno.EIO) -> Iterator[None]:
        """Let an operation fail inside the scope."""
        self.failing[operation] = number
        try:
            yield
        finally:
            del self.failing[operation]

    def _may_fail(self, operation: str) -> None:
        self.calls.append(operation)
        if operation in self.failing:
            number = self.failing[operation]
            raise OSError(number, os.strerror(number))


class Proposer:
    """A started log, and what it reported."""

    def __init__(self, log: FileLog, after: int = 0) -> None:
        self.log = log
        self._reports: queue.SimpleQueue[tuple[int, Durability, str]] = queue.SimpleQueue()
        self._listener = Reports(log, lambda *report: self._reports.put(report))
        self._number = 0
        log.start(self._listener, after)

    def propose(self, payload: bytes) -> tuple[int, Durability, str]:
        """Propose a batch and wait for its report."""
        self._number += 1
        index = self.log.last_index + 1
        self.log.propose(self._number, payload)
        report = self._reports.get(timeout=_WAIT_S)
        assert report[0] == index
        assert self._reports.empty(), "a proposal is reported once"
        name = (self.log.server, self._number)
        match report[1]:
            case Durability.DURABLE:
                assert self._listener.records[-1] == Record(index, payload, *name)
            case Durability.NOT_WRITTEN:
                assert self._listener.refusals[-1] == self._number
        return report

    def recover(self) -> list[Record]:
        """Recover the log; return what was committed by that, which must be the last proposal."""
        before = len(self._listener.records)
        self.log.recover()
        found = self._listener.records[before:]
        for one in found:
            assert self._reports.get_nowait() == (one.index, Durability.DURABLE, "")
        assert all((one.server, one.number) == (self.log.server, self._number) for one in found)
        return [Record(one.index, one.payload) for one in found]

    def write(self, *payloads: bytes) -> None:
        """Propose batches that must become durable."""
        for payload in payloads:
            _, outcome, reason = self.propose(payload)
            assert outcome is Durability.DURABLE, reason


def fill(folder: Path, *payloads: bytes, segment_bytes: int = 4096) -> None:
    """Write a log with these batches, then close it."""
    with contextlib.closing(FileLog(folder, segment_bytes=segment_bytes)) as log:
        Proposer(log).write(*payloads)


def read(folder: Path, after: int = 0) -> list[Record]:
    """Open a log and read it."""
    with contextlib.closing(FileLog(folder)) as log:
        return list(log.records(after))


def payloads(folder: Path) -> list[bytes]:
    """Open a log and read what was proposed."""
    return [record.payload for record in read(folder)]


def segments(folder: Path) -> list[Path]:
    """Return the files of a log, oldest first."""
    return sorted(folder.glob("*.log"))


def flip(path: Path, offset: int) -> None:
    """Damage one byte of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x55
    path.write_bytes(data)
