"""The replica: follows the log, applies each committed record, tells what came of it.

A restart, a recovery after an unknown outcome, our own writes and those of other servers take this
one way. Everything happens on the event loop, except the log's own work. The rules:

* An entry is applied when, and only when, the log has committed it, in the order of the log.
* A record that names a proposal of ours in flight is not decoded: the proposer still has its
  entries and their submitters. Any other record is decoded, its digest is compared with
  that of our own state (`paddock.storage.replay`), and it has no submitters here.
* After an entry is applied, watchers are told of its changes, then the sessions are, then its
  submitter is, and only then is the next one applied. So an event comes before any reply that shows
  the change, and a submitter sees the state right after its entry.
* A batch is applied in slices of `SLICE_SECONDS`, between which the loop serves others. They may
  read the state in the middle of a batch. A snapshot and a digest are only taken between two.
* What the log says of proposals that were not committed waits for the batches before it.
* If this machine cannot apply a batch, for want of memory above all, or if the state is not the one
  that the batch's proposer had, nothing is answered any more: the batch is durable, and the state
  is not what the log says. The server ends, and the next start reads the log.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import _get_running_loop as running_loop
from collections import deque
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from paddock.log.interface import Log, Record
from paddock.server.journal.journal import Journal
from paddock.server.replication.notices import Notices
from paddock.server.replication.proposals import PendingBatch, Proposals, Submitter
from paddock.server.replication.sharing import Sharing
from paddock.server.statistics import Statistics
from paddock.state.entry import Entry
from paddock.state.machine import Outcome
from paddock.state.operations import Change
from paddock.state.watches import Watches
from paddock.storage.replay import Replay

logger: Final = logging.getLogger(__name__)

SLICE_SECONDS: Final = 0.01
_RESERVE_BYTES: Final = 4 << 20
# How often a slice looks at the clock: after so many small entries, or answers to reads that waited
# for them, and after each large entry.
_ENTRIES_A_LOOK: Final = 8
_ANSWERS_A_LOOK: Final = 64
_LARGE_BYTES: Final = 1 << 12


class MachineFailure(Exception):  # noqa: N818
    """The machine has failed while an entry was applied."""


class SessionListener:
    """What follows the sessions of the log. This one does nothing."""

    def changed(
        self, entry: Entry, outcome: Outcome, submitter: Submitter | None, is_ours: bool
    ) -> None:
        """Take what an applied entry made of a session, before its submitter is told.

        `is_ours` says whether this server proposed the entry; the submitter may be gone all the
        same.
        """


class Replica:
    """The state of this server, and its place in the log."""

    def __init__(
        self,
        replay: Replay,
        watches: Watches,
        statistics: Statistics,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        # Applies the records before `follow` returns, and checks those that are not ours.
        self.replay = replay
        # The index of the last batch that was applied as a whole.
        self.applied = replay.index
        # Entries applied since the snapshot that we started with, and their bytes in the log.
        self.applied_entries = 0
        self.applied_bytes = 0
        self.machine = replay.machine
        self.watches = watches
        self.statistics = statistics
        self.proposals = Proposals()
        self.sessions = SessionListener()
        # Where all parts of the server tell what happens to it.
        self.journal = Journal()
        # Called after a batch was applied.
        self.on_applied: Callable[[], None] | None = None
        # Called when a batch cannot be applied here: the state must not be used any more.
        self.on_fatal: Callable[[str], None] | None = None
        # Called with each entry of ours that was applied, and with what came of it.
        self.on_entry: Callable[[Entry, Outcome], None] | None = None
        # Called with the changes of each entry, right after it was applied; None if nobody asks.
        self.on_changes: Callable[[list[Change]], None] | None = None
        # Changes told and reads answered since the slice last looked at the clock.
        self.work: i64 = 0
        self._loop = asyncio.get_running_loop()
        # What slices and syncs are measured by: the loop's own time may stand still within a pass.
        self.clock: Callable[[], float] = self._loop.time if monotonic is None else monotonic
        self._notices = Notices(self._loop.time)
        # The name of this server in its own log.
        self._server = b""
        # What there is to know if several servers share the log; None for a log of our own.
        self.sharing: Sharing | None = None
        # Whether `follow` has returned; before, records are applied as they come.
        self._is_live = False
        # The batch of which some entries are applied and others not yet.
        self._applying: PendingBatch | None = None
        # What the log has said meanwhile, in its order; see `_take`.
        self._told: deque[tuple[PendingBatch | None, str]] = deque()
        # What waits for the end of the batch that is being applied.
        self._between: list[Callable[[], None]] = []
        # Why the state was given up, because it is not what the log says; None if it was not.
        self.failure: BaseException | None = None
        # Given up when there is no memory left, so that the end can be told.
        self._reserve = bytes(_RESERVE_BYTES)
        self._dirty: list[Submitter] = []
        # Whether a batch is being applied, at whose end the dirty ones are flushed.
        self._telling = False
        self._caught_up: asyncio.Future[None] | None = None

    def follow(self, log: Log) -> None:
        """Apply what the log holds behind the state, at once, then what it commits from now on.

        Raises LogError, as `Log.start` and `Replay.apply` do.
        """
        self._server = log.server
        replay = self.replay
        log.start(self, replay.index)
        self.applied = replay.index
        self.applied_entries, self.applied_bytes = replay.entries, replay.size_bytes
        self._is_live = True

    # What the log calls.

    def committed(self, record: Record) -> None:
        if not self._is_live:
            self.replay.apply(record)
            return
        # The time is that of the sync: the loop may be late.
        self._call_soon(self._hear_committed, record, self.clock() - record.late)

    def refused(self, number: int, reason: str) -> None:
        self._call_soon(self._hear_refused, number, reason, self.clock())

    def unknown(self, reason: str) -> None:
        self._call_soon(self._hear_unknown, reason, self.clock())

    def _call_soon(self, callback: Callable[..., None], *arguments: object) -> None:
        """Call back on the event loop, whichever thread this is."""
        if running_loop() is self._loop:
            # Without two system calls, by which another thread wakes the loop.
            self._loop.call_soon(callback, *arguments)
        else:
            self._loop.call_soon_threadsafe(callback, *arguments)

    # What the rest of the server calls.

    def hear_shared(self, record: Record) -> None:
        """Take the next record of a shared log, on the event loop."""
        if self.failure is None:
            batch = PendingBatch([], [], len(record.payload))
            batch.record = record
            batch.index = record.index
            self._hear(batch, "")

    def digest(self) -> int:
        """Return the digest that a proposal names; only between two batches."""
        return self.machine.digest() if self.sharing is None else self.sharing.digest()

    def mark_dirty(self, submitter: Submitter) -> None:
        """Have a submitter flushed once, when the slice being applied is through, or else soon."""
        if not submitter.is_dirty:
            submitter.is_dirty = True
            if not self._dirty and not self._telling:
                self._loop.call_soon(self.flush_dirty)
            self._dirty.append(submitter)

    def outstanding(self) -> int:
        """Count the entries of ours that are committed or refused and not answered yet."""
        count = 0
        if self._applying is not None:
            count = len(self._applying.submitters)
            count -= min(count, self._applying.applied)
        for batch, _ in self._told:
            if batch is not None:
                count += len(batch.submitters)
        return count

    def is_dead(self) -> bool:
        """Return whether the state was given up."""
        return self.failure is not None

    def is_behind(self) -> bool:
        """Return whether something that the log has said is still to be done."""
        return self._applying is not None or len(self._told) > 0

    def is_between_batches(self) -> bool:
        """Return whether no batch is half applied, and none is held behind another."""
        return self._applying is None and (self.sharing is None or self.sharing.is_settled())

    def between_batches(self, callback: Callable[[], None]) -> None:
        """Call back when no batch is half applied or held: now, or right after the one that is."""
        if self.is_between_batches():
            callback()
        else:
            self._between.append(callback)

    def catch_up(self) -> asyncio.Future[None] | None:
        """Return None if nothing is left to do of what the log has said.

        Otherwise return a future that is done when that may be so.
        """
        if self.is_behind() and self.failure is None:
            self._caught_up = self._loop.create_future()
            return self._caught_up
        return None

    def fail(self, error: BaseException) -> None:
        """Stop for good: what the log holds cannot be applied here, for want of memory, say."""
        self._reserve = b""
        self.failure = error
        self._applying = None
        self._told.clear()
        self._between = []
        self.proposals.stop()
        if self.sharing is not None:
            self.sharing.given_up()
        self._wake()
        assert self.on_fatal is not None
        self.on_fatal(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)

    def _hear_committed(self, record: Record, now: float) -> None:
        if self.failure is not None:
            return
        is_ours = record.server == self._server
        batch = self.proposals.claim(record.number, now) if is_ours else None
        if batch is None:
            batch = PendingBatch([], [], len(record.payload))
            batch.record = record
        batch.is_ours = is_ours
        batch.index = record.index
        self._hear(batch, "")

    def _hear_refused(self, number: int, reason: str, now: float) -> None:
        batch = None if self.failure is not None else self.proposals.claim(number, now)
        if batch is not None:
            self._hear(batch, reason)

    def _hear_unknown(self, reason: str, now: float) -> None:
        if self.failure is None:
            self.proposals.doubt(now)
            self._hear(None, reason)

    def _hear(self, batch: PendingBatch | None, reason: str) -> None:
        if self.is_behind():
            self._told.append((batch, reason))
        else:
            self._take(batch, reason)

    def _take(self, batch: PendingBatch | None, reason: str) -> None:
        """Apply a batch; with a reason, refuse it; without a batch, the outcome is unknown."""
        if batch is None or reason:
            self._telling = True
            if batch is None:
                self.proposals.halt(reason)
            else:
                self.proposals.refuse(batch, reason)
            self._finish()
        else:
            if self.sharing is not None:
                # Before the record changes the roster, which is part of what a proposal names.
                self.proposals.begin(batch)
            try:
                if self.sharing is not None:
                    self.sharing.open(batch, self.proposals, self.clock())
                elif batch.record is not None:
                    self.replay.index = self.applied
                    batch.entries = self.replay.open(batch.record)
                    batch.record = None
            except Exception as error:
                # Whatever it is: nothing behind it could be applied.
                self.fail(error)
                return
            if self.sharing is None:
                # The next batch syncs while we apply this one.
                self.proposals.begin(batch)
            if self.failure is None:
                self._applying = batch
                self._apply_slice()

    def _apply_slice(self) -> None:
        """Apply the batch until it is through, or the loop should look at its sockets."""
        batch = self._applying
        if batch is None:
            return
        try:
            self._apply_some(batch)
        except Exception as error:
            # A defect of ours, too: the rest of the batch would wait for ever, and all behind it.
            self.fail(error)

    def _apply_some(self, batch: PendingBatch) -> None:
        self._telling = True
        entries, submitters = batch.entries, batch.submitters
        is_ours, is_awaited = batch.is_ours, len(submitters) > 0
        begun = self.clock()
        end = begun + SLICE_SECONDS
        while batch.applied < len(entries):
            at = batch.applied
            entry = entries[at]
            self._apply(entry, submitters[at] if is_awaited else None, is_ours)
            batch.applied = at + 1
            if (
                batch.applied % _ENTRIES_A_LOOK == 0
                or self.work > _ANSWERS_A_LOOK
                or len(entry.body) > _LARGE_BYTES
            ):
                self.work = 0
                if self.clock() >= end:
                    break
        if batch.applied < len(entries):
            # In parts, too: of a large batch it takes as long as a slice.
            self.machine.digest()
            batch.seconds += self.clock() - begun
            self._loop.call_soon(self._apply_slice)
            self._telling = False
            self.flush_dirty()
            return
        self._applying = None
        self.applied = batch.index
        self.applied_entries += len(entries)
        self.applied_bytes += batch.size
        if self.sharing is not None:
            self.sharing.applied(batch.index)
        self.proposals.learn(batch, batch.seconds + self.clock() - begun)
        if is_awaited:
            self.statistics.batch(
                len(entries),
                self.clock() - batch.begun,
                batch.synced - batch.begun,
                self._loop.time(),
            )
        if self.on_applied is not None:
            self.on_applied()
        if self._between and self.is_between_batches():
            between, self._between = self._between, []
            for callback in between:
                callback()
        self._finish()

    def _finish(self) -> None:
        """End the work on a batch, and begin that on the next, if the log has said something."""
        self._telling = False
        self.flush_dirty()
        if self._told:
            self._loop.call_soon(self._take_next)
        else:
            self._wake()
        self.proposals.go_on(len(self._told) > 0)

    def _take_next(self) -> None:
        if self._told:
            batch, reason = self._told.popleft()
            self._take(batch, reason)

    def _wake(self) -> None:
        # Who waited may have been cancelled.
        if self._caught_up is not None and not self._caught_up.done():
            self._caught_up.set_result(None)

    def _apply(self, entry: Entry, submitter: Submitter | None, is_ours: bool) -> None:
        try:
            outcome = self.machine.apply(entry)
        except OSError as error:
            raise MachineFailure(str(error)) from error
        self.work += len(outcome.changes)
        if self.sharing is not None:
            self.sharing.entry_applied()
        if self.on_entry is not None and is_ours:
            self.on_entry(entry, outcome)
        if outcome.notice is not None:
            self._notices.tell(entry.session, outcome.notice)
        try:
            if outcome.changes:
                if self.on_changes is not None:
                    self.on_changes(outcome.changes)
                self.watches.publish(outcome.changes)
            if outcome.session is not None:
                self.sessions.changed(entry, outcome, submitter, is_ours)
            if submitter is not None:
                submitter.deliver(entry, outcome)
        except (MemoryError, RecursionError):
            # Some watchers may not have been told, so no other reply may go out.
            raise
        except Exception:
            # The rest of the batch is durable and must be applied, whatever one reply runs into.
            logger.exception("session 0x%x: the outcome could not be told", entry.session)
            if submitter is not None:
                submitter.abort()

    def flush_dirty(self) -> None:
        """Flush the submitters that are to be flushed soon."""
        dirty, self._dirty = self._dirty, []
        for submitter in dirty:
            submitter.is_dirty = False
            try:
                submitter.flush()
            except Exception:
                # It must not keep the others from theirs.
                logger.exception("what has gathered could not be sent")
                submitter.abort()
