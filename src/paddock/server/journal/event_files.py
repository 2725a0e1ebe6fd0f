"""The files of events on the disk: appended to, rotated and purged, all in one thread.

The rules:

* A file takes events until it is large, or has an eighth of the time that is kept. The newest file
  of the last server is appended to, if that can be done.
* The oldest files are purged: those whose events are all too old, and those above the limit of
  bytes. The newest one stays. What cannot be removed, or is no file of ours, keeps no other one.
* Nothing is synced. Events that cannot be written are lost. When writing works again, a line says
  how many.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import Final

from paddock.log.file.disk import Disk
from paddock.storage.events import LOST, Event, event_files, file_name

logger: Final = logging.getLogger(__name__)

FILE_BYTES_MAX: Final = 8 << 20
_FILES_KEPT: Final = 8


class EventFiles:
    """The files of one folder. None stays open between two writes: there is one a second."""

    def __init__(self, folder: Path, keep_ms: int, keep_bytes: int, disk: Disk) -> None:
        self._folder = folder
        self._keep_ms = keep_ms
        self._keep_bytes = keep_bytes
        self._disk = disk
        self._file_bytes = min(FILE_BYTES_MAX, keep_bytes // _FILES_KEPT)
        # The newest file, the time in its name, and its bytes; None before the folder was looked
        # at, and after a failure.
        self._path: Path | None = None
        self._begin_ms = 0
        self._size = 0
        # Events that were lost and not told of yet.
        self._lost = 0

    def append(self, events: list[Event], lost: int = 0) -> None:
        """Write events, after so many others were lost. Raises nothing."""
        self._lost += lost
        lines = [event.line() for event in events]
        if self._lost:
            lines.insert(0, Event(events[0].time_ms, LOST, details={"count": self._lost}).line())
        try:
            self._write("".join(lines).encode(), events[0].time_ms)
        except OSError as error:
            logger.error("%d events are lost: %s", len(events), error)
            self._lost += len(events)
            self._path = None
        else:
            self._lost = 0

    def _write(self, data: bytes, time_ms: int) -> None:
        if self._path is None:
            self._look()
        if (
            self._path is None
            or self._size + len(data) > self._file_bytes
            or time_ms - self._begin_ms > self._keep_ms // _FILES_KEPT
        ):
            self._path = self._begin(time_ms)
        try:
            file = self._disk.open(self._path)
        except OSError:
            # Somebody has removed it, or it belongs to somebody else.
            self._path = self._begin(time_ms)
            file = self._disk.open(self._path)
        try:
            size = self._disk.size(file)
            if size and self._disk.read(file, 1, size - 1) != b"\n":
                # A crash has torn the last line.
                data = b"\n" + data
            try:
                self._disk.write(file, data, size)
            except OSError:
                # Take back what was written in part.
                os.ftruncate(file, size)
                raise
        finally:
            self._disk.close(file)
        self._size = size + len(data)

    def _look(self) -> None:
        """Find the newest file, if there is one."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        files = event_files(self._folder)
        if files:
            self._begin_ms, self._path = files[-1]
            self._size = self._path.stat().st_size

    def _begin(self, time_ms: int) -> Path:
        """Begin a file, and purge old ones."""
        # A clock that was set back while no server ran must not empty a file.
        self._begin_ms = max(time_ms, self._begin_ms + 1)
        path = self._folder / file_name(self._begin_ms)
        self._disk.close(self._disk.create(path))
        self._purge()
        return path

    def _purge(self) -> None:
        files = event_files(self._folder)
        # The newest one may get as large as this.
        size = self._file_bytes
        for i in range(len(files) - 2, -1, -1):
            path, end_ms = files[i][1], files[i + 1][0]
            # What cannot be removed now is tried with the next file.
            with contextlib.suppress(OSError):
                size += path.stat().st_size
                if size > self._keep_bytes or end_ms < self._begin_ms - self._keep_ms:
                    self._disk.remove(path)
