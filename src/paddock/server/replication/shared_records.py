"""The records of a log that several servers share, on their way to the replica.

The roster decides what counts: a record of a server that is no member, or that came out of the log
before, is void; one that came out before its predecessor is held. The rules:

* Records are taken one after the other: the next one is looked at when the one before it has been
  applied as a whole. So the roster and the state never differ by half a record.
* What a record releases, it and those held behind it, is of one server, and is applied as one
  batch. Our own have their submitters; they are claimed when they are applied, so a proposal counts
  as in flight until then.
* A record without a payload was decided to be passed over (`paddock cluster skip`): it has no
  effect, and its number counts. If it is the JOIN of this server, there is no member whose number
  counts, and another JOIN is needed.
* The state between two records is remembered by its digest. A foreign batch names the one that its
  proposer had. If they differ, one of the two states is wrong, and the members vote
  (`paddock.server.cluster.disputes`).
* Nothing is half done between two records if nothing is held: only then a snapshot may begin.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from paddock.log.interface import LogError, Position, Record
from paddock.server.replication.lease import Lease
from paddock.server.replication.proposals import PendingBatch, Proposals
from paddock.server.replication.replica import Replica
from paddock.server.replication.sharing import Sharing
from paddock.state.entry import RULES, Entry
from paddock.state.machine import StateMachine
from paddock.state.roster import Roster, RosterChange
from paddock.storage.cluster.shared_batches import SharedBatches

logger: Final = logging.getLogger(__name__)

# How many bytes of records may wait to be applied; and what each takes besides its payload. Most
# are small if the servers idle, and there may be a million of them.
WAITING_BYTES_MAX: Final = 64 << 20
RECORD_BYTES: Final = 1 << 10


class RosterListener(Protocol):
    """What follows the members of the service."""

    def heard(self, boot: bytes, index: int) -> None:
        """Take the news that a member's batch has come out of the log, applied or held."""

    def changed(self, change: RosterChange) -> None:
        """Take what an applied entry made of the roster."""

    def differs(self, boot: bytes, index: int) -> None:
        """Take the news that a member had another state at an index than this server."""

    def passed_over(self, index: int) -> None:
        """Take the news that the JOIN of this server was to be skipped, at an index."""


class SharedRecords(Sharing):
    """Takes the records of a shared log, and hands the replica what is to be applied.

    It is a `SharedListener`.
    """

    def __init__(self, replica: Replica, roster: Roster, lease: Lease) -> None:
        self.lease = lease
        # None while this server only follows.
        self.members: RosterListener | None = None
        # Called when the log is followed no more.
        self.on_failed: Callable[[LogError], None] | None = None
        # Why that is so.
        self.failure: LogError | None = None
        # Called with each record that was applied, void or not; None if nobody wants to know.
        self.on_record: Callable[[Record], None] | None = None
        self._record: Record | None = None
        # The name under which this process proposes; empty if it does not.
        self.boot = b""
        self._replica = replica
        self._machine: StateMachine = replica.machine
        self._roster = roster
        self._batches = SharedBatches(roster.index, self._machine.shared_digest())
        # Bytes that wait to be applied, and who waits until they are fewer.
        self._waiting_bytes = 0
        self._room: asyncio.Future[None] | None = None
        # Our numbers in the batch that is being applied.
        self._numbers: list[int] = []
        # Whether it was told that another server had another state, while we only follow.
        self._has_told = False

    def position(self) -> Position:
        """Return the place of the state in the log."""
        roster = self._roster
        return Position(roster.index, roster.revision, roster.last_boot, roster.last_number)

    # What the log calls.

    def committed(self, record: Record) -> None:
        self._waiting_bytes += len(record.payload) + RECORD_BYTES
        self._replica.hear_shared(record)

    def room(self) -> asyncio.Future[None] | None:
        if self._waiting_bytes > WAITING_BYTES_MAX and not self._replica.is_dead():
            self._room = asyncio.get_running_loop().create_future()
            return self._room
        return None

    def failed(self, error: LogError) -> None:
        self.failure = error
        if self.on_failed is not None:
            self.on_failed(error)

    # What the replica calls.

    def open(self, batch: PendingBatch, proposals: Proposals, now: float) -> None:
        record = batch.record
        assert record is not None
        assert record.server is not None
        self._waiting_bytes -= len(record.payload) + RECORD_BYTES
        batch.record = None
        self._record = record
        boot = record.server
        released = self._roster.take(
            record.index, record.revision, boot, record.number, record.payload
        )
        member = self._roster.members.get(boot)
        is_heard = member is not None and member.last_index == record.index
        if is_heard and self.members is not None:
            self.members.heard(boot, record.index)
        batch.is_ours = boot == self.boot
        batch.size = sum([len(payload) for _, payload, _ in released])
        if released:
            self._machine.begin_batch(boot)
        elif batch.is_ours and not record.payload and member is None and self.members is not None:
            self.members.passed_over(record.index)
        for number, payload, index in released:
            if not batch.is_ours:
                if payload:
                    batch.entries += self._decode(index, boot, payload)
                continue
            self._numbers.append(number)
            ours = proposals.claim(number, now)
            assert ours is not None, "who proposes keeps what it proposed"
            if payload:
                batch.take_in(ours)
            else:
                for submitter in ours.submitters:
                    submitter.abort()

    def applied(self, index: int) -> None:
        self._batches.applied(index, self._machine.shared_digest())
        record, self._record = self._record, None
        if self.on_record is not None:
            assert record is not None
            self.on_record(record)
        if self._numbers:
            numbers, self._numbers = self._numbers, []
            for number in numbers:
                self.lease.applied(number)
        if self._waiting_bytes <= WAITING_BYTES_MAX:
            self._make_room()

    def given_up(self) -> None:
        # What waits is never applied. The log is read to where that is noticed.
        self._make_room()

    def _make_room(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def entry_applied(self) -> None:
        change = self._machine.take_roster_change()
        while change is not None:
            if self.members is not None:
                self.members.changed(change)
            change = self._machine.take_roster_change()

    def is_settled(self) -> bool:
        return self._roster.held_count == 0

    def digest(self) -> int:
        return self._machine.shared_digest()

    def rules(self) -> int:
        # Before the first member joins there are none. If we do not know them, we are refused.
        return min(self._roster.rules or RULES, RULES)

    def sending(self, number: int) -> None:
        self.lease.sending(number)

    def digest_at(self, index: int) -> int | None:
        """Return the digest of the state after a record; None if it is not known any more."""
        return self._batches.digest_at(index)

    def _decode(self, index: int, boot: bytes, payload: bytes) -> list[Entry]:
        """Decode a batch and compare its digest. Raises LogCorruptError."""
        batch = self._batches.decode(index, payload)
        if self._batches.differs(batch):
            self._tell_difference(index, boot, batch.digest_index)
        return batch.entries

    def _tell_difference(self, index: int, boot: bytes, digest_index: int) -> None:
        """Take note that one of two states is wrong; only the members can say which."""
        if self.members is not None:
            self.members.differs(boot, digest_index)
        elif not self._has_told:
            # It may be of a server that has been found wrong since.
            self._has_told = True
            logger.warning(
                "batch %d: its server had another state at %d than this one has",
                index,
                digest_index,
                extra={"index": index, "boot": boot.hex()},
            )
