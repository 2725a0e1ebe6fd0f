"""The audit log of a server: who did what, with which result.

`paddock.server.admin.audit_format` defines the lines. A thread of its own writes them, a batch at a
time. If the disk falls behind by many batches, the server waits for it: nothing is dropped. A file
that was moved away is created again. Lines that cannot be written are lost, and the log says so.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from paddock.errors import PaddockError
from paddock.server.admin.audit_format import (
    AUDITED,
    Event,
    events_of,
    json_line,
    text_line,
    users_of,
)
from paddock.server.admin.log_handler import JSON
from paddock.state.access import Identities
from paddock.state.entry import Entry
from paddock.state.machine import Outcome

logger: Final = logging.getLogger(__name__)

# Batches in the queue; each is at most about 1 MiB of requests.
_BATCHES_MAX: Final = 64


class AuditError(PaddockError):
    """The audit log cannot be opened; one line that says why."""


class AuditLog:
    """The audit log of a server until `close`: in a file or, without one, on stderr.

    Raises AuditError if the file cannot be opened.
    """

    def __init__(self, path: Path | None, form: str, wall_clock_ms: Callable[[], int]) -> None:
        self._file = AppendedFile(path)
        self._form = form
        self._wall_clock_ms = wall_clock_ms
        self._user = _process_user()
        self._loop = asyncio.get_running_loop()
        # Entries applied in this pass of the event loop.
        self._gathered: list[tuple[Entry, Outcome]] = []
        self._batches: queue.Queue[list[tuple[Entry, Outcome]] | Event | None] = queue.Queue(
            _BATCHES_MAX
        )
        self._writer = threading.Thread(target=self._write, name="paddock-audit", daemon=True)
        self._writer.start()

    def take(self, entry: Entry, outcome: Outcome) -> None:
        """Add an entry that was applied."""
        if entry.operation in AUDITED:
            if not self._gathered:
                self._loop.call_soon(self._hand_over)
            self._gathered.append((entry, outcome))

    def add(
        self,
        operation: str,
        result: str,
        identities: Identities | None = None,
        address: str | None = None,
    ) -> None:
        """Add an event of the server itself, or of a client's admin command on all data."""
        self._hand_over()
        users = (self._user,) if identities is None else users_of(identities)
        self._batches.put(Event(self._wall_clock_ms(), operation, result, users=users, ip=address))

    def close(self) -> None:
        """Write what is left and close the file. Blocks; call it after the last `take`."""
        self._hand_over()
        self._batches.put(None)
        self._writer.join()

    def _hand_over(self) -> None:
        if self._gathered:
            batch, self._gathered = self._gathered, []
            self._batches.put(batch)

    def _write(self) -> None:
        """Run the writer's thread."""
        while (batch := self._batches.get()) is not None:
            try:
                self._file.append(self._lines(batch))
            except Exception:
                logger.exception("the audit log missed some lines")
        self._file.close()

    def _lines(self, batch: list[tuple[Entry, Outcome]] | Event) -> list[str]:
        line = json_line if self._form == JSON else text_line
        if isinstance(batch, Event):
            return [line(batch)]
        return [
            line(event)
            for entry, outcome in batch
            for event in events_of(entry, outcome, self._user)
        ]


def _process_user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


class AppendedFile:
    """A file to append to, created again when it was moved away."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file = 2 if path is None else -1
        # Whether the last line was written in part only.
        self._is_torn = False
        try:
            self._follow()
        except OSError as error:
            raise AuditError(f"audit log {path}: cannot be written: {error.strerror}") from error

    def append(self, lines: list[str]) -> None:
        if not lines:
            return
        data = "".join(lines).encode("utf-8", "backslashreplace")
        try:
            self._follow()
            if self._is_torn:
                data = b"\n" + data
            while data:
                data = data[os.write(self._file, data) :]
                self._is_torn = True
            self._is_torn = False
        except OSError as error:
            logger.error(
                "the audit log cannot be written, %d lines are lost: %s",
                max(data.count(b"\n"), 1),
                error,
            )

    def close(self) -> None:
        if self._path is not None and self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _follow(self) -> None:
        """Open the file that has the name now."""
        if self._path is None:
            return
        if self._file >= 0:
            try:
                if os.path.samestat(os.stat(self._path), os.fstat(self._file)):
                    return
            except FileNotFoundError:
                pass
            self.close()
        self._file = os.open(
            self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        self._is_torn = False
