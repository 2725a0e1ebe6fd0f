"""The disk of a single server: real files, and the truth about what of them is durable.

The files are what the kernel shows. They outlive a process that is killed, and not the power:

* A write arrives with the next sync of its file that succeeds; before that, some of its sectors do,
  or none. A sync takes a while, in virtual time.
* A sync that fails drops what it should have written, though the file still shows it.
* A name arrives with the sync of its folder, or before, or never; but names keep their order.
* A full disk takes no write that makes a file longer.

`Witness` keeps every batch that was ever in the log, for the judge: the log itself is purged.
"""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from paddock.log.file.disk import Disk
from paddock.log.interface import Log, Record
from paddock.testing.simulation.threads import pause

# What arrives whole or not at all.
_SECTOR_BYTES: Final = 512


@dataclass
class _Content:
    """What the disk has of one file, and what it was told since."""

    arrived: bytearray = field(default_factory=bytearray)
    waiting: list[tuple[int, bytes]] = field(default_factory=list)

    def arrive(self, keep: Callable[[], bool]) -> None:
        """Let those sectors of the waiting writes arrive that are kept."""
        for offset, data in self.waiting:
            for start, piece in _by_sectors(offset, data):
                if keep():
                    end = start + len(piece)
                    self.arrived.extend(bytes(max(0, end - len(self.arrived))))
                    self.arrived[start:end] = piece
        self.waiting.clear()


def _by_sectors(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        size = _SECTOR_BYTES - offset % _SECTOR_BYTES
        yield offset, data[:size]
        data = data[size:]
        offset += size


class SimulatedDisk(Disk):
    """What one machine has stored."""

    def __init__(
        self, seed: str, sync_max: float, now: Callable[[], float], *, has_writer: bool = False
    ) -> None:
        # How long a sync takes at most.
        self.sync_max = sync_max
        # Whether the log on it is written by a disk writer.
        self.has_writer = has_writer
        # Whether there is no space, and whether syncs fail.
        self.is_full = False
        self.is_failing = False
        self.witness = Witness(now)
        self._random = random.Random(f"{seed} disk")
        # By folder, the content of each name; and how that was after each change of a name since
        # the last sync of the folder.
        self._names: dict[Path, dict[Path, _Content]] = {}
        self._histories: dict[Path, list[dict[Path, _Content]]] = {}
        # The open files, by numbers of our own: those of a dead process mean nothing.
        self._open: dict[int, tuple[int, _Content]] = {}
        self._last = 0

    # What happens to a machine.

    def let_go(self) -> None:
        """Close what a dead process had open; what it wrote is there."""
        for file, _ in self._open.values():
            os.close(file)
        self._open.clear()
        self.witness.process_ended()

    def cut_power(self) -> str:
        """Forget what has not arrived; return what became of it."""
        waiting = sum(len(one.waiting) for names in self._names.values() for one in names.values())
        unsynced = sum(len(one) - 1 for one in self._histories.values())
        for folder, histories in self._histories.items():
            names = dict(self._random.choice(histories))
            for path in folder.iterdir():
                path.unlink()
            for path, content in names.items():
                content.arrive(self._perhaps)
                path.write_bytes(content.arrived)
            self._names[folder] = names
            self._histories[folder] = [dict(names)]
        return f"{waiting} writes and {unsynced} names were not synced"

    # What the log and the snapshots call.

    def create(self, path: Path) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        content = self._names.setdefault(path.parent, {})[path] = _Content()
        self._remember_names(path.parent)
        return self._opened(super().create(path), content)

    def open(self, path: Path) -> int:
        return self._opened(super().open(path), self._names[path.parent][path])

    def close(self, file: int) -> None:
        real, _ = self._open.pop(file, (-1, None))
        if real >= 0:
            super().close(real)

    def size(self, file: int) -> int:
        return super().size(self._real(file))

    def read(self, file: int, size: int, offset: int) -> bytes:
        return super().read(self._real(file), size, offset)

    def write(self, file: int, data: bytes, offset: int) -> None:
        real, content = self._open[file]
        if self.is_full and offset + len(data) > super().size(real):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(real, data, offset)
        content.waiting.append((offset, data))

    def write_parts(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        self.write(file, b"".join(parts), offset)

    def sync(self, file: int) -> None:
        pause(self.sync_seconds())
        self.sync_now(file)

    def sync_seconds(self) -> float:
        """Return how long the next sync takes."""
        return self._random.uniform(0, self.sync_max)

    def sync_now(self, file: int) -> None:
        """Sync a file, without a wait."""
        _, content = self._open[file]
        if self.is_failing:
            content.arrive(self._perhaps)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        content.arrive(lambda: True)

    def drop(self, file: int) -> None:
        """Nothing is held in memory here."""

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        names = self._names[old.parent]
        names[new] = names.pop(old)
        self._remember_names(old.parent)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._names[path.parent].pop(path, None)
        self._remember_names(path.parent)

    def sync_folder(self, folder: Path) -> None:
        pause(self.sync_seconds())
        if self.is_failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._histories[folder] = [dict(self._names.setdefault(folder, {}))]

    def _opened(self, real: int, content: _Content) -> int:
        self._last += 1
        self._open[self._last] = real, content
        return self._last

    def _real(self, file: int) -> int:
        return self._open[file][0]

    def _remember_names(self, folder: Path) -> None:
        self._histories.setdefault(folder, [{}]).append(dict(self._names[folder]))

    def _perhaps(self) -> bool:
        return self._random.random() < 0.5


@dataclass
class StoredBatch:
    """A batch in the log, and when it was committed."""

    payload: bytes
    at: float


class Witness:
    """All batches of a log: those that were purged, and those that a start has found."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.batches: list[StoredBatch] = []
        # What starts have found, for the campaign.
        self.counts: Counter[str] = Counter()
        self._now = now
        # Up to which index the log may be purged, and when the last process has ended.
        self._purged = 0
        self._ended_at = 0.0

    def opened(self, log: Log) -> None:
        """Look at what is there: it may be more than was told, and must not be less."""
        told = self.batches[self._purged :]
        del self.batches[self._purged :]
        for number, record in enumerate(log.records(self._purged)):
            is_known = number < len(told) and told[number].payload == record.payload
            at = told[number].at if is_known else self._ended_at
            self.counts["disk: batches found at a start"] += not is_known
            self.batches.append(StoredBatch(record.payload, at))

    def committed(self, record: Record) -> None:
        if record.index > len(self.batches):
            self.batches.append(StoredBatch(record.payload, self._now()))

    def purged(self, below: int) -> None:
        self._purged = max(self._purged, min(below, len(self.batches)))

    def process_ended(self) -> None:
        self._ended_at = self._now()
