"""The way of a write: gathered into a batch, made durable by the log, applied, answered.

While one batch syncs the next one gathers, so a sync is shared by all who wait (group commit).
Everything happens on the event loop, except the log's own work. The rules:

* An entry is applied when, and only when, the log has said that it is durable.
* After an entry is applied, watchers are told of its changes, then its submitter is, and only then
  is the next one applied. So an event comes before any reply that shows the change, and who waits
  for an entry sees the state right after it.
* A batch is applied in slices of `SLICE_SECONDS`, between which the loop serves others. They may
  read the state in the middle of a batch. A snapshot and a digest are only taken between two.
* What the log surely did not write is refused. What it may have written is not answered at all:
  all clients are disconnected, and the log is read again before anything else is written.
* If this machine cannot encode or apply a batch, for want of memory above all, nothing is answered
  any more: the batch may be durable, and the state is not what the log says. The server ends, and
  the next start reads the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from paddock.errors import SYSTEM_ERROR
from paddock.log.interface import Durability, Log, Record
from paddock.server.replication.fair_queue import FairQueue
from paddock.server.replication.notices import Notices
from paddock.server.replication.submitter import Submitter
from paddock.server.statistics import Statistics
from paddock.state.entry import BATCH_BYTES_MAX, Batch, Entry
from paddock.state.machine import MACHINE_ERRORS, Outcome, StateMachine
from paddock.state.watches import Watches

logger: Final = logging.getLogger(__name__)

SLICE_SECONDS: Final = 0.01
# How long a batch should take to be applied, as far as that can be foreseen, if more waits.
_BATCH_SECONDS: Final = 0.05
_BATCH_ENTRIES_MAX: Final = 1_000
# Nobody knows what an entry costs before it is applied. So a batch has no more entries than this,
# or than twice those of the last ones.
_BATCH_ENTRIES_START: Final = 32
# While a batch with more bytes is applied, none is proposed.
_AHEAD_BYTES_MAX: Final = 256 << 10
# A pace is never taken to be faster than this, in seconds.
_PACE_MIN: Final = 0.000000001
_RESERVE_BYTES: Final = 4 << 20
# How often a slice looks at the clock: after so many small entries, or answers to reads that waited
# for them, and after each large entry.
_ENTRIES_A_LOOK: Final = 8
_ANSWERS_A_LOOK: Final = 64
_LARGE_BYTES: Final = 1 << 12


class MachineFailure(Exception):  # noqa: N818
    """The machine has failed while an entry was applied."""


class Proposal:
    """A batch under way."""

    __slots__ = ("applied", "begun", "entries", "index", "seconds", "size", "submitters", "synced")

    def __init__(self, entries: list[Entry], submitters: list[Submitter], begun: float) -> None:
        self.entries = entries
        self.submitters = submitters
        self.begun = begun
        # Bytes of the batch in the log.
        self.size = 0
        # Its index, when the log was done with it, and how many of its entries are applied.
        self.index = 0
        self.synced = 0.0
        self.applied = 0
        # How long earlier slices of it took.
        self.seconds = 0.0


class Report:
    """What the log has said about a proposal."""

    __slots__ = ("durability", "proposal", "reason")

    def __init__(self, proposal: Proposal, durability: Durability, reason: str) -> None:
        self.proposal = proposal
        self.durability = durability
        self.reason = reason


def _slower(pace: float, seen: float) -> float:
    """Return the pace to expect: at once what was seen if it is slower, else only some of it."""
    return max(_PACE_MIN, seen, pace + (seen - pace) / 4)


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
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self.machine = machine
        self.watches = watches
        # The index of the last batch that was applied.
        self.applied = index
        # Entries applied since the server started, and their bytes in the log; snapshots are taken
        # by both.
        self.applied_entries = 0
        self.applied_bytes = 0
        # Called after a batch was applied.
        self.on_applied: Callable[[], None] | None = None
        # Called when it is not known whether a batch was written.
        self.on_unknown: Callable[[str], None] | None = None
        # Called when this machine is not enough for a batch: the state must not be used any more.
        self.on_fatal: Callable[[str], None] | None = None
        # Called with each entry that was applied, and with what came of it.
        self.on_entry: Callable[[Entry, Outcome], None] | None = None
        # Bytes of the reads that wait for writes, of all connections.
        self.waiting_bytes = 0
        # Changes told and reads answered since the slice last looked at the clock.
        self.work = 0
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
        self._time: Callable[[], float] = self._loop.time
        # What slices are measured by: the loop's own time may stand still within a pass.
        self._clock: Callable[[], float] = self._time if monotonic is None else monotonic
        self._notices = Notices(self._loop.time)
        self._gathered = FairQueue(_BATCH_ENTRIES_START)
        self._flying: Proposal | None = None
        # The batch of which some entries are applied and others not yet.
        self._applying: Proposal | None = None
        # What the log has said while a batch was being applied: of the one proposal behind it.
        self._report: Report | None = None
        # What waits for the end of the batch that is being applied.
        self._between: list[Callable[[], None]] = []
        # Whether the state is not what the log says.
        self._is_dead = False
        # Given up when there is no memory left, so that the end can be told.
        self._reserve = bytes(_RESERVE_BYTES)
        # How many seconds an entry takes to be applied, and a byte of one, lately.
        self._pace = 0.00001
        self._byte_pace = _PACE_MIN
        # How many entries may be tried in one batch.
        self._tried = _BATCH_ENTRIES_START
        # Whether a look at what has gathered is on its way.
        self._scheduled = False
        # Whether the log is not to be written to: it is broken, or we are stopping.
        self._halted = False
        self._dirty: list[Submitter] = []
        # Whether a batch is being applied, at whose end the dirty ones are flushed.
        self._telling = False
        # Waits for the batch under way, when the server stops.
        self._drained: asyncio.Future[None] | None = None
        # Whether the last batch was refused for want of room, so that it is said once.
        self._full = False
        log.start(self._hear, index)

    def submit(self, entry: Entry, submitter: Submitter) -> None:
        """Take an entry into the batch that gathers."""
        self._gathered.put(entry, submitter)
        if not self._scheduled and self._flying is None:
            self._scheduled = True
            self._loop.call_soon(self._look)

    def mark_dirty(self, submitter: Submitter) -> None:
        """Have a submitter flushed once, when the slice being applied is through, or else soon."""
        if not submitter.is_dirty:
            submitter.is_dirty = True
            if not self._dirty and not self._telling:
                self._loop.call_soon(self._flush_dirty)
            self._dirty.append(submitter)

    def outstanding(self) -> int:
        """Count the entries that are not answered yet."""
        count = self._gathered.length
        if self._flying is not None:
            count += len(self._flying.entries)
        if self._applying is not None:
            count += len(self._applying.entries) - self._applying.applied
        if self._report is not None:
            count += len(self._report.proposal.entries)
        return count

    def is_dead(self) -> bool:
        """Tell whether the state was given up."""
        return self._is_dead

    def is_between_batches(self) -> bool:
        """Tell whether no batch is half applied."""
        return self._applying is None

    def between_batches(self, callback: Callable[[], None]) -> None:
        """Call back when no batch is half applied: now, or right after the one that is."""
        if self._applying is None:
            callback()
        else:
            self._between.append(callback)

    def is_syncing(self) -> bool:
        """Tell whether the log has something to do, in a thread of its own."""
        return self._flying is not None

    def is_congested(self, share: int) -> bool:
        """Tell whether more has gathered than this share of the limit: 1 all of it, 2 half."""
        return (
            0 < self._entries_max // share < self._gathered.length
            or 0 < self._bytes_max // share < self._gathered.size + self.waiting_bytes
        )

    async def drain(self) -> None:
        """Wait until everything that was submitted has been told."""
        while not self._halted and not self._is_idle():
            self._drained = self._loop.create_future()
            await self._drained
        self._halted = True

    def drop(self) -> None:
        """Forget what has gathered; those who wait for it have been disconnected."""
        self._gathered.clear()

    def resume(self, survivors: list[Record]) -> bool:
        """Go on after the log was read again, with what turned out to be written after all.

        Tells whether that could be applied; if not, the server has ended.
        """
        assert self._applying is None
        try:
            for record in survivors:
                for entry in Batch.decode(record.payload).entries:
                    self._apply(entry, None)
                self.applied = record.index
        except (MemoryError, RecursionError, MachineFailure) as error:
            self._fail(error)
            return False
        self._flush_dirty()
        self._halted = False
        self._look()
        return True

    def _is_idle(self) -> bool:
        return (
            self._flying is None
            and self._applying is None
            and self._report is None
            and not self._gathered.length
        )

    def _look(self) -> None:
        """Propose what has gathered, unless the log is busy or a batch is half applied."""
        self._scheduled = False
        if (
            self._flying is not None
            or self._applying is not None
            or self._report is not None
            or self._halted
            or not self._gathered.length
        ):
            return
        try:
            entries, submitters = self._gathered.take()
            self._stamp_ms = max(self._wall_clock_ms(), self._stamp_ms)
            for entry in entries:
                entry.time_ms = self._stamp_ms
            payload = Batch(entries, self.applied, self.machine.digest()).encode()
            self._flying = Proposal(entries, submitters, self._time())
            self._flying.size = len(payload)
            self._log.propose(payload)
        except MACHINE_ERRORS as error:
            self._fail(error)

    def _hear(self, index: int, durability: Durability, reason: str) -> None:
        # The log's own thread calls this. The time is that of the sync: the loop may be late.
        now = self._loop.time()
        self._loop.call_soon_threadsafe(self._told, index, durability, reason, now)

    def _told(self, index: int, durability: Durability, reason: str, synced: float) -> None:
        flying = self._flying
        assert flying is not None
        self._flying = None
        if self._is_dead:
            return
        flying.index, flying.synced = index, synced
        if self._applying is None:
            self._take_report(flying, durability, reason)
        else:
            assert self._report is None
            self._report = Report(flying, durability, reason)

    def _take_report(self, proposal: Proposal, durability: Durability, reason: str) -> None:
        """Do what the log's word about a proposal asks for."""
        if proposal.synced - proposal.begun > self.slow_sync:
            self._tell_slow(proposal, proposal.synced)
        if durability is Durability.DURABLE:
            if self._full:
                self._full = False
                logger.warning("there is room again, writes are accepted")
            # The next batch syncs while we apply this one; unless that takes long, for then a
            # small write that comes meanwhile had to wait for both.
            seconds = self._pace * len(proposal.entries)
            if seconds <= _BATCH_SECONDS and proposal.size <= _AHEAD_BYTES_MAX:
                self._look()
            if not self._is_dead:
                self._applying = proposal
                self._apply_slice()
        elif durability is Durability.NOT_WRITTEN:
            if not self._full:
                self._full = True
                logger.error("writes are refused: %s", reason)
            self._telling = True
            for entry, submitter in zip(proposal.entries, proposal.submitters, strict=True):
                submitter.refuse(entry, SYSTEM_ERROR)
            self._look()
            self._finish()
        else:
            self._halted = True
            self._telling = True
            assert self.on_unknown is not None
            self.on_unknown(reason)
            self._finish()

    def _apply_slice(self) -> None:
        """Apply the batch until it is through, or the loop should look at its sockets."""
        proposal = self._applying
        if proposal is None:
            return
        try:
            self._apply_some(proposal)
        except (MemoryError, RecursionError, MachineFailure) as error:
            self._fail(error)

    def _apply_some(self, proposal: Proposal) -> None:
        self._telling = True
        entries, submitters = proposal.entries, proposal.submitters
        begun = self._clock()
        end = begun + SLICE_SECONDS
        while proposal.applied < len(entries):
            at = proposal.applied
            entry = entries[at]
            self._apply(entry, submitters[at])
            proposal.applied = at + 1
            if (
                proposal.applied % _ENTRIES_A_LOOK == 0
                or self.work > _ANSWERS_A_LOOK
                or len(entry.body) > _LARGE_BYTES
            ):
                self.work = 0
                if self._clock() >= end:
                    break
        if proposal.applied < len(entries):
            # In parts, too: of a large batch it takes as long as a slice.
            self.machine.digest()
            proposal.seconds += self._clock() - begun
            self._loop.call_soon(self._apply_slice)
            self._telling = False
            self._flush_dirty()
            return
        self._applying = None
        self.applied = proposal.index
        self.applied_entries += len(entries)
        self.applied_bytes += proposal.size
        self._learn_pace(len(entries), proposal.size, proposal.seconds + self._clock() - begun)
        self.statistics.batch(len(entries), proposal.begun, proposal.synced, self._time())
        if self.on_applied is not None:
            self.on_applied()
        if self._between:
            between, self._between = self._between, []
            for callback in between:
                callback()
        self._finish()

    def _learn_pace(self, count: int, size: int, seconds: float) -> None:
        """Take note of how long entries take to be applied, and make batches no longer than that
        allows: who writes little should not wait for long behind who makes every write expensive.
        """
        self._pace = _slower(self._pace, seconds / count)
        self._byte_pace = _slower(self._byte_pace, seconds / size)
        self._tried = max(_BATCH_ENTRIES_START, 2 * count, self._tried * 3 // 4)
        fitting = int(_BATCH_SECONDS / self._pace)
        self._gathered.entries_max = max(1, min(fitting, self._tried, _BATCH_ENTRIES_MAX))
        self._gathered.bytes_max = min(int(_BATCH_SECONDS / self._byte_pace), BATCH_BYTES_MAX)

    def _finish(self) -> None:
        """End the work on a batch, and begin that on the next, if the log has said something."""
        self._telling = False
        self._flush_dirty()
        if self.on_room is not None:
            self.on_room()
        if self._report is not None:
            self._loop.call_soon(self._take_next_report)
        elif not self._scheduled and self._gathered.length:
            # What could not be proposed in the middle of a batch.
            self._scheduled = True
            self._loop.call_soon(self._look)
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def _take_next_report(self) -> None:
        report, self._report = self._report, None
        if report is not None:
            self._take_report(report.proposal, report.durability, report.reason)

    def _fail(self, error: BaseException) -> None:
        """Stop for good: this machine is not enough for what the log holds."""
        self._reserve = b""
        self._is_dead = True
        self._halted = True
        self._applying = None
        self._report = None
        self._between = []
        self._gathered.clear()
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        assert self.on_fatal is not None
        self.on_fatal(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)

    def _tell_slow(self, flying: Proposal, synced: float) -> None:
        count, seconds = len(flying.entries), synced - flying.begun
        logger.warning(
            "a slow disk: the sync of %d entries took %.2f s",
            count,
            seconds,
            extra={"entries": count, "seconds": seconds},
        )

    def _apply(self, entry: Entry, submitter: Submitter | None) -> None:
        try:
            outcome = self.machine.apply(entry)
        except OSError as error:
            raise MachineFailure(str(error)) from error
        self.work += len(outcome.changes)
        if self.on_entry is not None:
            self.on_entry(entry, outcome)
        if outcome.notice is not None:
            self._notices.tell(entry.session, outcome.notice)
        try:
            if outcome.changes:
                self.watches.publish(outcome.changes)
            if submitter is not None:
                submitter.deliver(entry, outcome)
        except (MemoryError, RecursionError):
            # Others may not have been told: better nobody is than only some.
            raise
        except Exception:
            # Whatever one answer runs into, the rest of the batch is durable and must be applied.
            logger.exception("session 0x%x: the outcome could not be told", entry.session)
            if submitter is not None:
                submitter.abort()

    def _flush_dirty(self) -> None:
        dirty, self._dirty = self._dirty, []
        for submitter in dirty:
            submitter.is_dirty = False
            try:
                submitter.flush()
            except Exception:
                # It must not keep the others from theirs.
                logger.exception("what has gathered could not be sent")
                submitter.abort()
