"""A log on a simulated disk, for a single server: slow, full, failing, and what a crash leaves.

The disk outlives the process. A batch is written when it is proposed, and durable after a while; a
crash in between may leave it, or lose it. Rules of `paddock.log.interface` hold.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from paddock.log.interface import Listener, LogError, Record
from paddock.testing.simulation.process import ProcessLoop


@dataclass
class StoredBatch:
    """A batch on the disk, and when it was durable."""

    payload: bytes
    at: float


class SimulatedDisk:
    """What one machine has stored."""

    def __init__(self, seed: str, sync_max: float) -> None:
        self.batches: list[StoredBatch] = []
        # How long a sync takes at most.
        self.sync_max = sync_max
        # Whether writes are refused for want of space, and whether syncs fail.
        self.is_full = False
        self.is_failing = False
        # Written and not durable yet.
        self.unsynced: bytes | None = None
        self.random = random.Random(f"{seed} disk")

    def crash(self, now: float) -> str:
        """Lose what was not durable, or keep it; return what happened."""
        payload, self.unsynced = self.unsynced, None
        if payload is None:
            return "nothing was unsynced"
        if self.random.random() < 0.5:
            self.batches.append(StoredBatch(payload, now))
            return "an unsynced batch is there all the same"
        return "an unsynced batch is lost"


class DiskLog:
    """The log of one process, on a disk that others before it have written to."""

    server: Final = b""
    in_flight_max: Final = 1
    is_shared: Final = False
    torn: Final = None

    def __init__(self, disk: SimulatedDisk, process: ProcessLoop) -> None:
        self._disk = disk
        self._process = process
        self._listener: Listener | None = None
        # What was proposed and not told of.
        self._pending: tuple[int, bytes] | None = None
        # The number of the proposal whose outcome is unknown, until `recover` finds it.
        self._in_doubt: int | None = None
        # How many batches the listener knows of.
        self._told = 0

    @property
    def last_index(self) -> int:
        return len(self._disk.batches)

    def start(self, listener: Listener, after: int = 0) -> None:
        for record in self.records(after):
            listener.committed(record)
        self._told = self.last_index
        self._listener = listener

    def records(self, after: int) -> Iterator[Record]:
        for index, batch in enumerate(self._disk.batches[after:], after + 1):
            yield Record(index, batch.payload)

    def propose(self, number: int, payload: bytes) -> None:
        assert self._listener is not None, "the log does not run"
        assert self._in_doubt is None, "the log is in doubt"
        disk = self._disk
        if disk.is_full:
            self._listener.refused(number, "no space left on the simulated disk")
            return
        self._pending = (number, payload)
        disk.unsynced = payload
        self._process.call_later(disk.random.uniform(0, disk.sync_max), self._synced)

    def _synced(self) -> None:
        if self._pending is None or self._listener is None:
            return
        (number, payload), self._pending = self._pending, None
        disk = self._disk
        if disk.is_failing:
            self._in_doubt = number
            disk.crash(self._process.true_time())
            self._listener.unknown("the simulated disk does not sync")
            return
        disk.unsynced = None
        disk.batches.append(StoredBatch(payload, self._process.true_time()))
        self._told = self.last_index
        self._listener.committed(Record(self._told, payload, self.server, number))

    def recover(self) -> None:
        if self._disk.is_failing:
            raise LogError("the simulated disk still does not sync")
        assert self._listener is not None
        number, self._in_doubt = self._in_doubt, None
        assert number is not None, "no outcome is unknown"
        # Named as the proposal that it was, as the real log does.
        for record in self.records(self._told):
            self._listener.committed(Record(record.index, record.payload, self.server, number))
        self._told = self.last_index

    def purge(self, below: int) -> None:
        """Keep everything: the judge reads it."""

    def close(self) -> None:
        self._listener = None
