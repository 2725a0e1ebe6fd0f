"""Writes down, for history, each record of the shared log that this server has applied.

* The event loop encodes and gathers records, and a thread of its own writes them (`HistoryFiles`).
  The loop never waits. What waits to be written is bounded: beyond that, records are left out.
* The loop sums up their checksums, which take a hundredth of what it takes to apply them, while the
  processor has them in its caches. A thread would ask for the GIL again for each of them: that took
  three times as much.
* After an error of the disk, if too much waits, or if there is no thread to be had, nothing is
  taken for a while, which is logged once. What is left out is a gap, which the files show. The
  server serves on: no state stands on them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from paddock.log.interface import Record
from paddock.storage.cluster.history import EncodedRecord, HistoryFiles

logger: Final = logging.getLogger(__name__)

# How many bytes may wait to be written; and what each record takes besides its payload.
WAITING_BYTES_MAX: Final = 16 << 20
_RECORD_BYTES: Final = 1 << 8
# Seconds in which records gather before they are written, and after an error.
_GATHER: Final = 0.1
_PAUSE: Final = 10.0


class Recorder:
    """Takes the records of the log on the event loop, and has them written."""

    def __init__(self, files: HistoryFiles) -> None:
        self._files = files
        self._loop = asyncio.get_running_loop()
        self._executor = _new_executor()
        # The records that wait, and the bytes of these and of those that are being written.
        self._waiting: list[EncodedRecord] = []
        self._waiting_bytes = 0
        # Writes what has gathered; None if nothing has.
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = None
        # Until when nothing is taken, and the first record that was left out since one was written.
        self._paused_until = 0.0
        self._gap: int | None = None

    @property
    def files(self) -> HistoryFiles:
        """Where the records go."""
        return self._files

    def follow(self, service: bytes) -> None:
        """Take records of the log of this service from now on."""
        self._files.service = service

    async def set_aside(self) -> None:
        """Begin anew, since what is there is of another log, and so is what was taken."""
        await self.flush()
        try:
            await self._in_thread(self._files.set_aside)
        except (OSError, RuntimeError, MemoryError) as error:
            # The records to come show it as well.
            logger.error("an old history cannot be set aside: %s", error)

    def take(self, record: Record) -> None:
        """Take the next record that was applied."""
        if self._loop.time() < self._paused_until:
            return
        if self._waiting_bytes + len(record.payload) + _RECORD_BYTES > WAITING_BYTES_MAX:
            self._pause(record.index, "the disk is slower than the log")
            return
        encoded = EncodedRecord(record)
        self._waiting_bytes += encoded.size + _RECORD_BYTES
        self._waiting.append(encoded)
        if self._timer is None and self._writing is None:
            self._timer = self._loop.call_later(_GATHER, self._write)

    async def flush(self) -> None:
        """Wait until all that was taken is written, or left out."""
        while self._timer is not None or self._writing is not None:
            if self._writing is None:
                self._write()
            if self._writing is not None:
                await asyncio.wait([self._writing])

    async def close(self) -> None:
        """Write what has gathered, and end the thread."""
        await self.flush()
        try:
            await self._in_thread(self._files.close)
        except (OSError, RuntimeError, MemoryError) as error:
            logger.error("the end of history may not be whole: %s", error)
        self._executor.shutdown()

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        records, self._waiting = self._waiting, []
        try:
            writing = self._in_thread(lambda: self._files.append(records))
        except (RuntimeError, MemoryError) as error:
            self._written(records, error)
        else:
            self._writing = writing
            writing.add_done_callback(
                lambda done: self._written(records, None if done.cancelled() else done.exception())
            )

    def _in_thread(self, work: Callable[[], None]) -> asyncio.Future[None]:
        """Have the thread do some work. Raises RuntimeError, MemoryError if there is none."""
        try:
            return self._loop.run_in_executor(self._executor, work)
        except BaseException:
            # The executor would do it later, when it has got a thread for something else.
            self._executor = _new_executor()
            raise

    def _written(self, records: list[EncodedRecord], error: BaseException | None) -> None:
        self._writing = None
        self._waiting_bytes -= sum(one.size + _RECORD_BYTES for one in records)
        first, last = records[0].position.index, records[-1].position.index
        if error is not None:
            self._pause(first, str(error) or type(error).__name__)
        elif self._gap is not None and last > self._gap:
            self._gap = None
            logger.info("history goes on at record %d", last)
        if self._waiting:
            self._timer = self._loop.call_later(_GATHER, self._write)

    def _pause(self, index: int, reason: str) -> None:
        """Leave records out for a while, from this one on."""
        self._paused_until = self._loop.time() + _PAUSE
        if self._gap is None:
            self._gap = index
            logger.error(
                "history has a gap, from record %d on: %s. The server is not affected",
                index,
                reason,
                extra={"index": index, "reason": reason},
            )


def _new_executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "paddock-history")
