"""The way from one server to the model of etcd: it can be cut, in one or both directions.

A request that was sent is carried out when it arrives, whether or not anybody still waits for it.
Streams go on after a short cut, as TCP does, and break in a long one.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import Final

from paddock.log.etcd.store import StoreError
from paddock.log.interface import Record
from paddock.testing.simulation.store_faults import StoreFaults

# After so long without a sign of life a connection is taken for broken.
KEEPALIVE_S: Final = 15.0


class Link:
    """What lies between one server and etcd."""

    def __init__(self, name: str) -> None:
        self.name = name
        # Added to each message, in each direction.
        self.delay_s = 0.0
        # An append is carried out so much later, and its caller is told that the connection broke.
        self.hoard_s = 0.0
        # Each write is refused with this, as it is where a permission is missing.
        self.forbidden = ""
        # Records that the next streams do not show: no etcd does that.
        self.records_dropped = 0
        self.streams: list[Stream] = []
        self._requests_cut = False
        self._replies_cut = False
        # When it was cut.
        self._cut_at = 0.0

    @property
    def is_cut(self) -> bool:
        """Whether nothing arrives at etcd."""
        return self._requests_cut

    @property
    def is_mute(self) -> bool:
        """Whether nothing comes back."""
        return self._replies_cut

    @property
    def breaks_at(self) -> float | None:
        """When its streams break, for want of a sign of life; None if nothing is cut."""
        is_whole = not self._requests_cut and not self._replies_cut
        return None if is_whole else self._cut_at + KEEPALIVE_S

    def cut(self) -> None:
        """Let nothing through."""
        self.cut_requests()
        self.cut_replies()

    def cut_requests(self) -> None:
        """Let replies and records through, and no requests."""
        self._note_cut()
        self._requests_cut = True
        self._wake()

    def cut_replies(self) -> None:
        """Let requests through, and no replies or records."""
        self._note_cut()
        self._replies_cut = True
        self._wake()

    def heal(self) -> None:
        self._requests_cut = self._replies_cut = False
        self._wake()

    def break_streams(self) -> None:
        """Break the watches, as a member that ends does."""
        for stream in self.streams:
            stream.fail(StoreError(f"{self.name}: the stream broke"))

    def silence_streams(self) -> None:
        """Let the present watches show nothing any more, without a word."""
        for stream in self.streams:
            stream.is_silent = True

    def _note_cut(self) -> None:
        if self.breaks_at is None:
            self._cut_at = asyncio.get_running_loop().time()

    def _wake(self) -> None:
        for stream in self.streams:
            stream.wake()


class Stream:
    """A watch of the log: records on their way to one server."""

    def __init__(self, link: Link, after: int, faults: StoreFaults, chances: random.Random) -> None:
        self.is_silent = False
        # Whether its caller has gone.
        self.is_closed = False
        # Whether it reads the history, which may be compacted before it has.
        self.is_behind = False
        self._after = after
        self._link = link
        self._faults = faults
        self._random = chances
        self._loop = asyncio.get_running_loop()
        # When each record is there, which are in order.
        self._records: deque[tuple[float, Record]] = deque()
        self._error: StoreError | None = None
        # Whether the error comes before what is on its way.
        self._is_error_now = False
        self._changed = asyncio.Event()

    def publish(self, record: Record) -> None:
        """Send a record that is committed."""
        if self._error is not None or record.revision <= self._after:
            return
        if self._link.records_dropped:
            self._link.records_dropped -= 1
            return
        faults = self._faults
        at = self._loop.time() + self._random.uniform(*faults.latency_s) + self._link.delay_s
        if self._chance(faults.stream_behind):
            self.is_behind = True
            at += self._random.uniform(*faults.stream_behind_s)
        if self._records:
            at = max(at, self._records[-1][0])
        self._records.append((at, record))
        if self._chance(faults.stream_broken):
            self._error = StoreError(f"{self._link.name}: the stream broke")
        elif self._chance(faults.stream_silent):
            self.is_silent = True
        self.wake()

    def compact(self, error: StoreError, revision: int) -> None:
        """End it if it still has to read what is compacted now."""
        if self.is_behind and self._records and self._records[0][1].revision < revision:
            self.fail(error)

    def fail(self, error: StoreError) -> None:
        """Break it now; what is on its way is lost."""
        self._error = error
        self._is_error_now = True
        self.wake()

    def wake(self) -> None:
        self._changed.set()

    async def take(self) -> Record:
        """Wait for the next record; raises StoreError when the stream has ended."""
        while True:
            self._changed.clear()
            if self._error is not None and (self._is_error_now or not self._records):
                raise self._error
            wakes_at = self._link.breaks_at
            if wakes_at is not None and self._loop.time() >= wakes_at:
                raise StoreError(f"{self._link.name}: no sign of life")
            if self._records and not self.is_silent and not self._link.is_mute:
                at, record = self._records[0]
                if self._loop.time() >= at:
                    self._records.popleft()
                    if not self._records:
                        self.is_behind = False
                    return record
                wakes_at = at if wakes_at is None else min(at, wakes_at)
            try:
                async with asyncio.timeout_at(wakes_at):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def _chance(self, probability: float) -> bool:
        return probability > 0 and self._random.random() < probability
