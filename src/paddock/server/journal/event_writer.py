"""Writes the events of a running server to files, without the server waiting for it.

The rules:

* An event is appended to a queue. Once a second a thread of its own writes what has gathered; at
  the end, the rest. A process that is killed loses the last second, but not that it was started.
* If the disk takes longer, the queue grows to its bound. What comes then is lost and counted.
* Anybody can fail at a handshake, as often as he likes. So only some of that is written in a
  second, and the rest counts as lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from paddock.log.file.disk import Disk
from paddock.server.journal.event_files import EventFiles
from paddock.server.journal.journal import Journal
from paddock.server.journal.stall_watch import StallWatch
from paddock.state.access import Identities, user_name
from paddock.storage.events import HANDSHAKE_FAILED, SERVER_STARTED, Event

logger: Final = logging.getLogger(__name__)

KEEP_MS: Final = 24 * 3600 * 1000
KEEP_BYTES: Final = 64 << 20
"""For how long events are kept, and how many bytes of them."""

WRITE_SECONDS: Final = 1.0
EVENTS_MAX: Final = 10_000
FAILURES_MAX: Final = 20
"""How many failed handshakes are written at once."""


class EventWriter(Journal):
    """The events of one server; `time_ms` never goes back."""

    def __init__(
        self,
        folder: Path,
        time_ms: Callable[[], int],
        zxid: Callable[[], int],
        *,
        keep_ms: int = KEEP_MS,
        keep_bytes: int = KEEP_BYTES,
        disk: Disk | None = None,
    ) -> None:
        self._files = EventFiles(folder, keep_ms, keep_bytes, disk or Disk())
        self._time_ms = time_ms
        self._zxid = zxid
        self._loop = asyncio.get_running_loop()
        # Invariant: at most EVENTS_MAX, of which at most FAILURES_MAX are failed handshakes.
        self._gathered: list[Event] = []
        self._failures = 0
        self._lost = 0
        # Whether a write is due, or under way.
        self._timer: asyncio.TimerHandle | None = None
        self._is_writing = False
        self._is_stopped = False
        self._stall_watch: StallWatch | None = None
        self._executor = _new_executor()

    def add(
        self,
        kind: str,
        *,
        session: int = 0,
        address: str = "",
        identities: Identities | None = None,
        reason: str = "",
        **details: object,
    ) -> None:
        if kind == HANDSHAKE_FAILED:
            self._failures += 1
        if len(self._gathered) >= EVENTS_MAX or (
            kind == HANDSHAKE_FAILED and self._failures > FAILURES_MAX
        ):
            self._lost += 1
            return
        names = () if identities is None else _names(identities)
        self._gathered.append(
            Event(
                self._time_ms(),
                kind,
                self._zxid(),
                self.server,
                session,
                address,
                names,
                reason,
                details,
            )
        )
        self._write_later()
        if kind == SERVER_STARTED and self._timer is not None:
            # By this alone a later one knows that this one was killed.
            self._timer.cancel()
            self._hand_over()

    def watch_stalls(
        self, monotonic: Callable[[], float], wall_clock_ms: Callable[[], int]
    ) -> None:
        """Write down when the server stood still, by these clocks."""
        self._stall_watch = StallWatch(self, monotonic, wall_clock_ms)

    def stop(self) -> None:
        self._is_stopped = True
        if self._stall_watch is not None:
            self._stall_watch.stop()
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        self._executor.shutdown()
        self._write(*self._take())

    def _write_later(self) -> None:
        if self._timer is None and not self._is_writing and not self._is_stopped:
            self._timer = self._loop.call_later(WRITE_SECONDS, self._hand_over)

    def _hand_over(self) -> None:
        self._timer = None
        events, lost = self._take()
        try:
            writing = self._loop.run_in_executor(self._executor, self._write, events, lost)
        except (RuntimeError, MemoryError):
            # There is no memory for a thread. The executor would write these when it has got one.
            self._executor = _new_executor()
            self._lost += lost + len(events)
        else:
            self._is_writing = True
            writing.add_done_callback(self._written)

    def _written(self, writing: asyncio.Future[None]) -> None:
        self._is_writing = False
        if self._gathered:
            self._write_later()

    def _take(self) -> tuple[list[Event], int]:
        taken = self._gathered, self._lost
        self._gathered, self._lost, self._failures = [], 0, 0
        return taken

    def _write(self, events: list[Event], lost: int) -> None:
        if events:
            try:
                self._files.append(events, lost)
            except Exception:
                logger.exception("%d events are lost", len(events))


def _new_executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "paddock-events")


def _names(identities: Identities) -> tuple[str, ...]:
    return tuple(f"{one.scheme}:{user_name(one)}" for one in identities.entries)
