"""The proposer: gathers entries into batches, and hands them to the log.

While one batch syncs the next one gathers, so a sync is shared by all who wait (group commit). The
rules:

* Where so much is under way on a log of our own that it takes longer to apply than to sync, a batch
  is half of it, and syncs while the other half is applied. If it were all of it, loop and disk
  would wait for each other: that is an eighth fewer sets.
* A batch is sealed with the time, its number, and the digest of the state between two batches. It
  is kept by its number until the log is done with it; the replica finds it there.
* As many batches are in flight as the log allows.
* What the log surely did not write is refused. What it may have written is not answered at all:
  all clients are disconnected, and the log is recovered before anything else is proposed.
* While a shared log has little room, what makes the state larger is declined at once; so is every
  write of a client while it is in doubt whose state is right.
* To a shared log a batch goes when `paddock.server.replication.pacing` lets it, and an empty one
  renews our lease there. Each boot counts its batches from 0, and the first one is a JOIN alone.
* Backpressure: a batch is no longer than the state can apply in `_BATCH_SECONDS`, by its latest
  pace. What does not fit waits, fairly (`paddock.server.replication.fair_queue`). `is_congested`
  says when connections should not be read from.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import inf
from typing import Final

from paddock.errors import SYSTEM_ERROR
from paddock.log.interface import Log, SharedLog
from paddock.server.replication.fair_queue import FairQueue
from paddock.server.replication.growth import is_refused
from paddock.server.replication.pacing import Pacing
from paddock.server.replication.proposals import PendingBatch, Proposals, Submitter
from paddock.server.replication.replica import Replica
from paddock.state.entry import BATCH_BYTES_MAX, Batch, Entry
from paddock.state.machine import MACHINE_ERRORS
from paddock.storage.events import SLOW_SYNC, WRITES_ACCEPTED, WRITES_REFUSED

logger: Final = logging.getLogger(__name__)

# How long a batch should take to be applied, as far as that can be foreseen, if more waits.
_BATCH_SECONDS: Final = 0.05
_BATCH_ENTRIES_MAX: Final = 1_000
# The cost of an entry is not known before it is applied. So a batch has no more entries than this,
# or than twice those of the last ones.
_BATCH_ENTRIES_START: Final = 32
# Less than this is not divided: a second sync would cost more than it gains.
_DIVIDED_MIN: Final = 512
# While a batch with more bytes is applied, none is proposed.
_AHEAD_BYTES_MAX: Final = 256 << 10
# A pace is never taken to be faster than this, in seconds.
_PACE_MIN: Final = 0.000000001


def _slower(pace: float, seen: float) -> float:
    """Return the pace to expect: at once what was seen if it is slower, else only some of it."""
    return max(_PACE_MIN, seen, pace + (seen - pace) / 4)


class Proposer(Proposals):
    """Takes entries, and has them committed."""

    def __init__(
        self,
        replica: Replica,
        log: Log | SharedLog,
        wall_clock_ms: Callable[[], int],
        entries_max: int = 0,
        bytes_max: int = 0,
    ) -> None:
        # Called when it is not known whether a batch was written.
        self.on_unknown: Callable[[str], None] | None = None
        # Called when a batch is through, and there may be room for more.
        self.on_room: Callable[[], None] | None = None
        # Bytes of the reads that wait for writes, of all connections.
        self.waiting_bytes = 0
        # A sync that takes more seconds than this gets a line.
        self.slow_sync = 1.0
        # When batches go to a shared log; None for a log of our own.
        self.pacing: Pacing | None = None
        # How many entries should gather at most, and how many bytes of them; 0 is no limit.
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._replica = replica
        self._log = log
        self._in_flight_max = log.in_flight_max
        self._wall_clock_ms = wall_clock_ms
        # The time of the last batch. Invariant: it never goes back, whatever the clock does.
        self._stamp_ms = 0
        self._loop = asyncio.get_running_loop()
        self._time: Callable[[], float] = self._loop.time
        self._gathered = FairQueue(_BATCH_ENTRIES_START)
        # What the log has, by number, and the next number.
        self.in_flight: dict[int, PendingBatch] = {}
        self._number = 0
        # How many seconds an entry takes to be applied, and a byte of one, lately.
        self._pace = 0.00001
        self._byte_pace = _PACE_MIN
        # How many seconds a sync of our own log takes, lately.
        self._sync_seconds = 0.0
        # How many entries may be tried in one batch.
        self._tried = _BATCH_ENTRIES_START
        # Whether a look at what has gathered is on its way.
        self._scheduled = False
        # Whether the log has not been recovered since an unknown outcome.
        self._is_in_doubt = False
        # Whether nothing is proposed: the log is being recovered, or the server stops.
        self._halted = False
        # Waits for the batches under way, when the server stops.
        self._drained: asyncio.Future[None] | None = None
        # Whether the last batch was refused for want of room, so that it is said once; and when.
        self._full = False
        self._refused_at = 0.0
        replica.proposals = self

    def submit(self, entry: Entry, submitter: Submitter) -> None:
        """Take an entry into the batch that gathers."""
        if self.pacing is not None:
            if self.pacing.restraint and is_refused(entry, self.pacing.restraint):
                submitter.decline(entry, SYSTEM_ERROR)
                return
            self.pacing.gathered()
        self._gathered.put(entry, submitter)
        if not self._scheduled and len(self.in_flight) < self._in_flight_max:
            self._scheduled = True
            self._loop.call_soon(self._look)

    def outstanding(self) -> int:
        """Count the entries that are not answered yet."""
        in_flight = sum([len(batch.entries) for batch in self.in_flight.values()])
        return self._gathered.length + self._replica.outstanding() + in_flight

    def busy_seconds(self) -> float:
        """Return for how long the log has been at the first batch that it has."""
        for batch in self.in_flight.values():
            return self._replica.clock() - batch.begun
        return 0.0

    def refused_within(self, seconds: float) -> bool:
        """Return whether the last batch was refused for want of room, and lately."""
        return self._full and self._time() - self._refused_at < seconds

    def is_congested(self, share: int) -> bool:
        """Return whether more has gathered than this share of the limit: 1 all of it, 2 half."""
        return (
            0 < self._entries_max // share < self._gathered.length
            or 0 < self._bytes_max // share < self._gathered.size + self.waiting_bytes
        )

    def drain(self) -> asyncio.Future[None] | None:
        """Halt and return None, if everything that was submitted has been told.

        Otherwise return a future that is done when that may be so.
        """
        if not self._halted and (
            self.in_flight or self._replica.is_behind() or self._gathered.length
        ):
            self._drained = self._loop.create_future()
            return self._drained
        self._halted = True
        return None

    def drop(self) -> None:
        """Forget what has gathered; those who wait for it have been disconnected."""
        self._gathered = FairQueue(_BATCH_ENTRIES_START)
        self._gathered.bytes_max = self._full_bytes()

    def _full_bytes(self) -> int:
        return BATCH_BYTES_MAX if self.pacing is None else self.pacing.full_bytes

    def join(self, entry: Entry) -> None:
        """Propose the first batch of a new boot, the entry alone. Nothing else goes until `resume`.

        What was in flight is not ours any more; those who wait for it have been disconnected.
        """
        assert self.pacing is not None
        self.abandon()
        self._number = 0
        self.pacing.joining = entry
        self._look()

    def renew(self) -> None:
        """Propose an empty batch soon, unless something is in flight that renews the lease too."""
        assert self.pacing is not None
        self.pacing.is_renewing = True
        self._look()

    def idle_seconds(self) -> float:
        """Return for how long nothing was proposed."""
        return 0.0 if self.pacing is None else self.pacing.idle_seconds()

    def abandon(self) -> None:
        """Propose nothing, and wait for nothing: our boot is over, and its clients are gone."""
        self._halted = True
        self.in_flight = {}
        if self.pacing is not None:
            self.pacing.joining = None
        self.drop()
        self._wake()

    def resume(self) -> None:
        """Propose again: the log was recovered, and what it committed has been applied."""
        self._is_in_doubt = False
        self._halted = False
        self._look()

    # What the replica calls.

    def claim(self, number: int, now: float) -> PendingBatch | None:
        batch = self.in_flight.pop(number, None)
        if batch is not None:
            batch.synced = now
            seconds = now - batch.begun
            if self.pacing is not None:
                self.pacing.committed(seconds)
            else:
                self._sync_seconds += (seconds - self._sync_seconds) / 4
            if seconds > self.slow_sync:
                logger.warning(
                    "a slow disk: the sync of %d entries took %.2f s"
                    if self.pacing is None
                    else "a slow log: the commit of %d entries took %.2f s",
                    len(batch.entries),
                    seconds,
                    extra={"entries": len(batch.entries), "seconds": seconds},
                )
                self._replica.journal.add(SLOW_SYNC, seconds=seconds, entries=len(batch.entries))
        return batch

    def doubt(self, now: float) -> None:
        self._is_in_doubt = True
        for number in list(self.in_flight):
            self.claim(number, now)

    def begin(self, batch: PendingBatch) -> None:
        if self._full and batch.is_ours:
            self._full = False
            logger.warning("there is room again, writes are accepted")
            self._replica.journal.add(WRITES_ACCEPTED)
        # What gathers now may sync while this batch is applied; unless that takes long, for then a
        # small write that comes meanwhile had to wait for both.
        if self._pace * len(batch.entries) <= _BATCH_SECONDS and batch.size <= _AHEAD_BYTES_MAX:
            self._propose(len(batch.submitters))

    def refuse(self, batch: PendingBatch, reason: str) -> None:
        self._refused_at = self._time()
        if not self._full:
            self._full = True
            logger.error("writes are refused: %s", reason)
            self._replica.journal.add(WRITES_REFUSED, text=reason)
        for entry, submitter in zip(batch.entries, batch.submitters, strict=True):
            submitter.refuse(entry, SYSTEM_ERROR)
        self._propose()

    def halt(self, reason: str) -> None:
        self._halted = True
        assert self.on_unknown is not None
        self.on_unknown(reason)

    def learn(self, batch: PendingBatch, seconds: float) -> None:
        """Note how long entries take to be applied, and limit batches by that.

        So a client that writes little does not wait for long behind one with expensive writes.
        """
        count = len(batch.entries)
        if not count:
            return
        self._pace = _slower(self._pace, seconds / count)
        self._byte_pace = _slower(self._byte_pace, seconds / batch.size)
        self._tried = max(_BATCH_ENTRIES_START, 2 * count, self._tried * 3 // 4)
        fitting = int(_BATCH_SECONDS / self._pace)
        self._gathered.entries_max = max(1, min(fitting, self._tried, _BATCH_ENTRIES_MAX))
        self._gathered.bytes_max = min(int(_BATCH_SECONDS / self._byte_pace), self._full_bytes())

    def go_on(self, is_behind: bool) -> None:
        if self.on_room is not None:
            self.on_room()
        if not is_behind and not self._scheduled and self._gathered.length:
            # What could not be proposed in the middle of a batch.
            self._scheduled = True
            self._loop.call_soon(self._look)
        if self.pacing is not None and self.pacing.is_urgent():
            # However far we are behind, and though nothing else may wake us: there is no lease
            # without it.
            self._propose()
        self._wake()

    def stop(self) -> None:
        self._halted = True
        self.drop()
        self._wake()

    def _wake(self) -> None:
        # Who waited may have been cancelled.
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _look(self) -> None:
        """Propose what has gathered, unless the replica has work that comes first."""
        self._scheduled = False
        if not self._replica.is_behind():
            self._propose()

    def _propose(self, beginning: int = 0) -> None:
        """Propose what has gathered, as far as the log allows. No batch is half applied now.

        `beginning` counts the entries of ours that are about to be applied.
        """
        if self.pacing is not None and self.pacing.joining is not None:
            joining, self.pacing.joining = self.pacing.joining, None
            self._send([joining], [Submitter()])
        while (
            self._gathered.length
            and len(self.in_flight) < self._in_flight_max
            and not self._halted
            and not self._is_in_doubt
        ):
            if self.pacing is not None and not self._may_go(self.pacing):
                return
            try:
                entries, submitters = self._gathered.take(self._wanted(beginning))
                self._send(entries, submitters)
            except MACHINE_ERRORS as error:
                self._replica.fail(error)
                return
        if self.pacing is not None and self.pacing.is_renewing and not self._halted:
            self.pacing.is_renewing = False
            if not self.in_flight:
                self._send([], [])

    def _wanted(self, beginning: int) -> int:
        """Return how many entries the next batch should have, if more fit into it."""
        count = self.outstanding() + beginning
        if (
            self.pacing is not None
            or count < _DIVIDED_MIN
            or self._pace * count < self._sync_seconds
            # Such a half would be applied before the other is proposed.
            or self._gathered.size > 2 * _AHEAD_BYTES_MAX
        ):
            return _BATCH_ENTRIES_MAX
        return (count + 1) // 2

    def _may_go(self, pacing: Pacing) -> bool:
        """Return whether the next batch may go; if not, look again when it may."""
        pause = pacing.pause(len(self.in_flight), self._gathered.size)
        if pause <= 0:
            return True
        look_at = self._time() + pause
        if look_at < pacing.look_at:
            pacing.look_at = look_at
            self._loop.call_at(look_at, self._end_pause, pacing)
        return False

    def _end_pause(self, pacing: Pacing) -> None:
        pacing.look_at = inf
        self._look()

    def _send(self, entries: list[Entry], submitters: list[Submitter]) -> None:
        """Hand a batch to the log. No batch is half applied now."""
        replica = self._replica
        self._stamp_ms = max(self._wall_clock_ms(), self._stamp_ms, replica.machine.time_ms)
        for entry in entries:
            entry.time_ms = self._stamp_ms
        if replica.sharing is not None:
            # Newer rules count when all servers know them.
            rules = replica.sharing.rules()
            for entry in entries:
                entry.rules = rules
        payload = Batch(entries, replica.applied, replica.digest()).encode()
        batch = PendingBatch(entries, submitters, len(payload))
        batch.begun = replica.clock()
        number = self._number
        self._number = number + 1
        self.in_flight[number] = batch
        if self.pacing is not None:
            assert replica.sharing is not None
            replica.sharing.sending(number)
            self.pacing.proposed(self._gathered.length > 0)
        self._log.propose(number, payload)
