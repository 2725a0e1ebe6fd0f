"""The disk writer of a simulated process.

It stands for `paddock.log.file.disk_writer.DiskWriter`, whose thread waits for nothing else of the
process: what was handed to it is written at once, and the sync takes a while. If the process is
killed meanwhile, the sync never ends; if it is paused, so is the thread.
"""

from __future__ import annotations

import asyncio
from asyncio.events import _get_running_loop

from paddock.testing.simulation.disk import SimulatedDisk
from paddock.testing.simulation.process import ProcessLoop


class SimulatedDiskWriter:
    """Writes to a simulated disk for the process that makes it."""

    def __init__(self, disk: SimulatedDisk) -> None:
        process = _get_running_loop()
        assert isinstance(process, ProcessLoop), "a disk writer belongs to a process"
        self._process = process
        self._disk = disk
        self._event = process.new_event()
        self._file = -1
        # What is to come: the end of the write under way.
        self._end: asyncio.Handle | None = None
        # When the last write ended; None if there is none, or if it was taken.
        self._ended_at: float | None = None
        self._error: OSError | None = None

    def fileno(self) -> int:
        return self._event

    def write(self, file: int, offset: int, pieces: list[bytes], /) -> None:
        assert self._end is None
        assert self._ended_at is None, "the last write was not taken"
        self._file = file
        self._error = None
        try:
            self._disk.write(file, b"".join(pieces), offset)
        except OSError as error:
            self._error = error
            self._end = self._process.call_soon(self._sync)
        else:
            self._end = self._process.call_later(self._disk.sync_seconds(), self._sync)

    def wait(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._sync()

    def take(self) -> float | None:
        if self._ended_at is None:
            return None
        late = self._process.time() - self._ended_at
        self._ended_at = None
        if self._error is not None:
            raise self._error
        return late

    def close(self) -> None:
        self.wait()

    def _sync(self) -> None:
        self._end = None
        if self._error is None:
            try:
                self._disk.sync_now(self._file)
            except OSError as error:
                self._error = error
        self._ended_at = self._process.time()
        self._process.set_event(self._event)
