"""What becomes of the records of a shared log before the replica applies them."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from paddock.log.interface import Record
from paddock.log.waits import until_none
from paddock.server.replication.lease import Lease
from paddock.server.replication.proposals import PendingBatch, Proposals
from paddock.server.replication.replica import Replica
from paddock.server.replication.shared_records import (
    RECORD_BYTES,
    WAITING_BYTES_MAX,
    SharedRecords,
)
from paddock.server.statistics import Statistics
from paddock.state.machine import StateMachine
from paddock.state.roster_bodies import JoinRequest
from paddock.state.watches import Watches
from paddock.storage.replay import Replay, UnreadableBatchError
from paddock.testing.virtual import in_virtual_time
from tests.unit.state.shared_state import SERVICE, A, join_entry, payload_of


class Case:
    """A server that has one other member, and has taken its JOIN."""

    def __init__(self) -> None:
        machine = StateMachine()
        machine.share(SERVICE)
        roster = machine.roster
        assert roster is not None
        roster.take(1, 1, A, 0, payload_of(join_entry()))
        roster.admit(A, JoinRequest(0, 3, "", "", "", b"", 0))
        self.replica = replica = Replica(Replay(machine, 0), Watches(), Statistics())
        self.records = replica.sharing = SharedRecords(replica, roster, Lease(lambda: 0.0, 4.0))

    def take(self, index: int, number: int, payload: bytes) -> PendingBatch:
        batch = PendingBatch([], [], 0)
        batch.record = Record(index, payload, A, number, 2 * index)
        self.records.open(batch, Proposals(), 0.0)
        return batch


@in_virtual_time
async def test_a_held_batch_that_cannot_be_read_is_named_by_its_own_index() -> None:
    case = Case()
    assert case.take(2, 3, b"no batch").entries == []
    assert case.take(3, 2, payload_of()).entries == []
    with pytest.raises(UnreadableBatchError, match=r"batch 2 of .*: paddock cluster skip 2$"):
        case.take(4, 1, payload_of())


@in_virtual_time
async def test_a_batch_that_cannot_be_read_is_named() -> None:
    with pytest.raises(UnreadableBatchError, match=r"batch 2 of .*: paddock cluster skip 2$"):
        Case().take(2, 1, b"no batch")


@in_virtual_time
async def test_each_record_is_told_when_it_is_applied_also_if_it_is_void() -> None:
    case = Case()
    told: list[Record] = []
    case.records.on_record = told.append
    for index, number in ((2, 2), (3, 1), (4, 99)):
        record = Record(index, payload_of(), A, number, 2 * index)
        case.take(index, number, payload_of())
        assert record not in told
        case.records.applied(index)
        assert told[-1] == record


@in_virtual_time
async def test_who_waits_for_room_is_woken_when_the_state_is_given_up() -> None:
    case = Case()
    failures: list[str] = []
    case.replica.on_fatal = failures.append
    # A batch is half applied, and a large one comes behind it.
    case.replica._applying = PendingBatch([], [], 0)
    case.records.committed(Record(2, bytes(WAITING_BYTES_MAX + 1), A, 1, 4))
    waiting = asyncio.ensure_future(until_none(case.records.room))
    await asyncio.sleep(1)
    assert not waiting.done()
    case.replica.fail(ValueError("cannot be applied"))
    async with asyncio.timeout(1):
        await waiting
    assert failures == ["ValueError: cannot be applied"]


@pytest.mark.source
@in_virtual_time
async def test_small_records_wait_in_bounded_memory() -> None:
    """Each takes much more than its payload."""
    case = Case()
    count = 2_000
    # Nothing is applied meanwhile.
    case.replica.hear_shared = lambda record: None  # type: ignore[method-assign]
    for index in range(2, 2 + WAITING_BYTES_MAX // (RECORD_BYTES + 40)):
        case.records.committed(Record(index, bytes(40), A, index, index))
    await until_none(case.records.room)
    case.records.committed(Record(index + 1, bytes(40), A, index, index))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await until_none(case.records.room)
    tracemalloc.start()
    try:
        kept = []
        for number in range(count):
            batch = PendingBatch([], [], 40)
            batch.record = Record(10**6 + number, bytes([number % 256]) * 40, A, 10**6, 10**6)
            kept.append((batch, ""))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / count < RECORD_BYTES + 40
