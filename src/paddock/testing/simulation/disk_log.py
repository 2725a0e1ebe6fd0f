"""The log on a simulated disk, and its witness."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from paddock.log.file.disk import Disk
from paddock.log.file.file_log import FileLog
from paddock.log.interface import Listener, Log, Record, Torn
from paddock.testing.simulation.disk import SimulatedDisk, Witness
from paddock.testing.simulation.disk_writer import SimulatedDiskWriter

# A segment so small that there are several, and that a full disk is noticed soon.
_SEGMENT_BYTES: Final = 16 << 10
_STEP_BYTES: Final = 2 << 10


class WitnessedLog:
    """The log on a disk, with a witness of what it tells."""

    def __init__(self, log: FileLog, witness: Witness) -> None:
        self._log = log
        self._witness = witness
        witness.opened(log)
        witness.counts["disk: torn tails"] += log.torn is not None

    server: Final = FileLog.server
    in_flight_max: Final = FileLog.in_flight_max
    is_shared: Final = FileLog.is_shared

    @property
    def last_index(self) -> int:
        return self._log.last_index

    @property
    def torn(self) -> Torn | None:
        return self._log.torn

    def start(self, listener: Listener, after: int = 0) -> None:
        self._witness.counts["disk: starts from a snapshot"] += after > 0
        self._log.start(_Ear(listener, self._witness), after)

    def propose(self, number: int, payload: bytes) -> None:
        self._log.propose(number, payload)

    def records(self, after: int) -> Iterator[Record]:
        return self._log.records(after)

    def recover(self) -> None:
        self._log.recover()

    def purge(self, below: int) -> None:
        self._witness.purged(below)
        self._log.purge(below)

    def leave_loop(self) -> None:
        self._log.leave_loop()

    def close(self) -> None:
        self._log.close()


class _Ear:
    def __init__(self, listener: Listener, witness: Witness) -> None:
        self.refused = listener.refused
        self.unknown = listener.unknown
        self._listener = listener
        self._witness = witness

    def committed(self, record: Record) -> None:
        self._witness.committed(record)
        self._listener.committed(record)


def open_log(folder: Path, *, disk: Disk | None, new_disk_writer: None = None) -> Log:
    """Open the log in a folder of a simulated disk, which no real disk writer writes to."""
    assert isinstance(disk, SimulatedDisk)
    assert new_disk_writer is None
    log = FileLog(
        folder,
        segment_bytes=_SEGMENT_BYTES,
        step_bytes=_STEP_BYTES,
        disk=disk,
        # It has of a real one what the log uses.
        new_disk_writer=cast("Any", partial(SimulatedDiskWriter, disk))
        if disk.has_writer
        else None,
    )
    return WitnessedLog(log, disk.witness)
