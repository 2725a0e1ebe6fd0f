"""The way of a write: gathered into a batch, made durable by the log, applied, answered.

While one batch syncs the next one gathers, so a sync is shared by all who wait (group commit).
Everything happens on the event loop, except the log's own work. The rules:

* An entry is applied when, and only when, the log has said that it is durable.
* After an entry is applied, watchers are told of its changes, then its origin is, and only then is
  the next one applied. So an event comes before any reply that shows the change, and whoever waits
  for an entry sees the state right after it.
* What the log surely did not write is refused. What it may have written is not answered at all:
  everybody is disconnected, and the log is read again before anything else is written.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from paddock.errors import SYSTEM_ERROR
from paddock.log.interface import Durability, Log, Record
from paddock.server.notices import Notices
from paddock.server.statistics import Statistics
from paddock.state.entry import BATCH_BYTES_MAX, Batch, Entry
from paddock.state.machine import Outcome, StateMachine
from paddock.state.watches import Watcher, Watches

logger: Final = logging.getLogger(__name__)


class Origin(Watcher):
    """Where an entry came from, and who is told what became of it."""

    def __init__(self) -> None:
        super().__init__()
        # Whether it is among those to be flushed when the batch has been applied.
        self.is_dirty = False

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        """Take the outcome of an entry that has just been applied."""
        raise NotImplementedError

    def refuse(self, entry: Entry, code: int) -> None:
        """Take the news that an entry was surely not written."""
        raise NotImplementedError

    def flush(self) -> None:
        """Send what has gathered."""
        raise NotImplementedError

    def abort(self) -> None:
        """Take the news that an outcome could not be told: whoever waits must not go on waiting."""


class Proposal:
    """A batch under way."""

    __slots__ = ("begun", "entries", "origins", "size")

    def __init__(self, entries: list[Entry], origins: list[Origin], begun: float) -> None:
        self.entries = entries
        self.origins = origins
        self.begun = begun
        # Bytes of the batch in the log.
        self.size = 0


class Pipeline:
    """Takes entries, and sees each of them through."""

    def __init__(
        self,
        machine: StateMachine,
        watches: Watches,
        log: Log,
        index: int,
        statistics: Statistics,
        wall_clock_ms: Callable[[], int],
        entries_max: int = 0,
        bytes_max: int = 0,
    ) -> None:
        self.machine = machine
        self.watches = watches
        # The index of the last batch that was applied.
        self.applied = index
        # Entries applied since the server started, and their bytes in the log; snapshots are taken
        # by both.
        self.applied_entries = 0
        self.applied_bytes = 0
        # Called after a batch was applied, before anybody hears of it.
        self.on_applied: Callable[[], None] | None = None
        # Called when it is not known whether a batch was written.
        self.on_unknown: Callable[[str], None] | None = None
        # Called with each entry that was applied, and with what came of it.
        self.on_entry: Callable[[Entry, Outcome], None] | None = None
        # A sync that takes more seconds than this gets a line.
        self.slow_sync = 1.0
        # Called when a batch is through, and there may be room for more.
        self.on_room: Callable[[], None] | None = None
        # How many entries should gather at most, and how many bytes of them; 0 is no limit.
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._log = log
        self.statistics = statistics
        self._wall_clock_ms = wall_clock_ms
        # The time of the last batch. Invariant: it never goes back, whatever the clock does.
        self._stamp_ms = machine.time_ms
        self._loop = asyncio.get_running_loop()
        self._notices = Notices(self._loop.time)
        self._entries: list[Entry] = []
        self._origins: list[Origin] = []
        # Bytes of the entries that have gathered.
        self._size = 0
        self._flying: Proposal | None = None
        # Whether a look at what has gathered is on its way.
        self._scheduled = False
        # Whether the log is not to be written to: it is broken, or we are stopping.
        self._halted = False
        self._dirty: list[Origin] = []
        # Whether a batch is being applied, at whose end the dirty ones are flushed.
        self._telling = False
        # Waits for the batch under way, when the server stops.
        self._drained: asyncio.Future[None] | None = None
        # Whether the last batch was refused for want of room, so that it is said once.
        self._full = False
        log.start(self._report, index)

    def submit(self, entry: Entry, origin: Origin) -> None:
        """Take an entry into the batch that gathers."""
        self._entries.append(entry)
        self._origins.append(origin)
        self._size += entry.size()
        if not self._scheduled and self._flying is None:
            self._scheduled = True
            self._loop.call_soon(self._look)

    def mark_dirty(self, origin: Origin) -> None:
        """Have an origin flushed once, when the batch being applied is through, or else soon."""
        if not origin.is_dirty:
            origin.is_dirty = True
            if not self._dirty and not self._telling:
                self._loop.call_soon(self._flush_dirty)
            self._dirty.append(origin)

    def outstanding(self) -> int:
        """Count the entries that are not answered yet."""
        return len(self._entries) + (0 if self._flying is None else len(self._flying.entries))

    def is_syncing(self) -> bool:
        """Tell whether the log has something to do, in a thread of its own."""
        return self._flying is not None

    def is_congested(self, share: int) -> bool:
        """Tell whether more has gathered than this share of the limit: 1 all of it, 2 half."""
        return (
            0 < self._entries_max // share < len(self._entries)
            or 0 < self._bytes_max // share < self._size
        )

    async def drain(self) -> None:
        """Wait until everything that was submitted has been told."""
        while not self._halted and not (self._flying is None and not self._entries):
            self._drained = self._loop.create_future()
            await self._drained
        self._halted = True

    def drop(self) -> None:
        """Forget what has gathered; whoever waits for it has been disconnected."""
        self._entries = []
        self._origins = []
        self._size = 0

    def resume(self, survivors: list[Record]) -> None:
        """Go on after the log was read again, with what turned out to be written after all."""
        for record in survivors:
            for entry in Batch.decode(record.payload).entries:
                self._apply(entry, None)
            self.applied = record.index
        self._flush_dirty()
        self._halted = False
        self._look()

    def _look(self) -> None:
        self._scheduled = False
        if self._flying is not None or self._halted or not self._entries:
            return
        if self._size <= BATCH_BYTES_MAX:
            entries, self._entries = self._entries, []
            origins, self._origins = self._origins, []
            self._size = 0
        else:
            entries, origins = self._take_fairly()
        self._stamp_ms = max(self._wall_clock_ms(), self._stamp_ms)
        for entry in entries:
            entry.time_ms = self._stamp_ms
        self._flying = Proposal(entries, origins, self._loop.time())
        payload = Batch(entries, self.applied, self.machine.digest()).encode()
        self._flying.size = len(payload)
        self._log.propose(payload)

    def _take_fairly(self) -> tuple[list[Entry], list[Origin]]:
        """Take what fits into one batch, the next entry of each origin in turn.

        So whoever has sent much does not keep whoever has sent little waiting. The first in line
        always comes along, however large it is; what is taken stays in the order in which it came.
        """
        queues: dict[Origin, deque[int]] = {}
        for position, origin in enumerate(self._origins):
            queue = queues.get(origin)
            if queue is None:
                queues[origin] = deque((position,))
            else:
                queue.append(position)
        taken: set[int] = set()
        size = 0
        while queues:
            for origin, queue in list(queues.items()):
                next_size = self._entries[queue[0]].size()
                if taken and size + next_size > BATCH_BYTES_MAX:
                    # What is behind it must not overtake it.
                    del queues[origin]
                    continue
                taken.add(queue.popleft())
                size += next_size
                if not queue:
                    del queues[origin]
        entries, origins = self._entries, self._origins
        self._entries = [one for at, one in enumerate(entries) if at not in taken]
        self._origins = [one for at, one in enumerate(origins) if at not in taken]
        self._size -= size
        in_order = sorted(taken)
        return [entries[at] for at in in_order], [origins[at] for at in in_order]

    def _report(self, index: int, durability: Durability, reason: str) -> None:
        # The log's own thread calls this. The time is that of the sync: the loop may be late.
        now = self._loop.time()
        self._loop.call_soon_threadsafe(self._told, index, durability, reason, now)

    def _told(self, index: int, durability: Durability, reason: str, synced: float) -> None:
        flying = self._flying
        assert flying is not None
        self._flying = None
        if synced - flying.begun > self.slow_sync:
            self._tell_slow(flying, synced)
        self._telling = True
        if durability is Durability.DURABLE:
            if self._full:
                self._full = False
                logger.warning("there is room again, writes are accepted")
            # The next batch syncs while we apply this one.
            self._look()
            for entry, origin in zip(flying.entries, flying.origins, strict=True):
                self._apply(entry, origin)
            self.applied = index
            self.applied_entries += len(flying.entries)
            self.applied_bytes += flying.size
            now = self._loop.time()
            self.statistics.batch(len(flying.entries), flying.begun, synced, now)
            if self.on_applied is not None:
                self.on_applied()
        elif durability is Durability.NOT_WRITTEN:
            if not self._full:
                self._full = True
                logger.error("writes are refused: %s", reason)
            for entry, origin in zip(flying.entries, flying.origins, strict=True):
                origin.refuse(entry, SYSTEM_ERROR)
            self._look()
        else:
            self._halted = True
            assert self.on_unknown is not None
            self.on_unknown(reason)
        self._telling = False
        self._flush_dirty()
        if self.on_room is not None:
            self.on_room()
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def _tell_slow(self, flying: Proposal, synced: float) -> None:
        count, seconds = len(flying.entries), synced - flying.begun
        logger.warning(
            "a slow disk: the sync of %d entries took %.2f s",
            count,
            seconds,
            extra={"entries": count, "seconds": seconds},
        )

    def _apply(self, entry: Entry, origin: Origin | None) -> None:
        outcome = self.machine.apply(entry)
        if self.on_entry is not None:
            self.on_entry(entry, outcome)
        if outcome.notice is not None:
            self._notices.tell(entry.session, outcome.notice)
        try:
            if outcome.changes:
                self.watches.publish(outcome.changes)
            if origin is not None:
                origin.deliver(entry, outcome)
        except Exception:
            # Whatever one answer runs into, the rest of the batch is durable and must be applied.
            logger.exception("session 0x%x: the outcome could not be told", entry.session)
            if origin is not None:
                origin.abort()

    def _flush_dirty(self) -> None:
        dirty, self._dirty = self._dirty, []
        for origin in dirty:
            origin.is_dirty = False
            origin.flush()
