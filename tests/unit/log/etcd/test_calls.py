"""Calls of the store that are lost, repeated and paced."""

import asyncio
from collections.abc import Sequence

import pytest

from paddock.log.etcd.calls import ATTEMPTS_MAX, PAUSE_S_MAX, Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.pace import Pace
from paddock.log.etcd.statuses import UntrustedError
from paddock.log.etcd.store import CompactedError, Guard, StoreError, StoreFullError
from tests.support.memory_store import Fault, MemoryEtcd, MemoryStore

KEYS = Keys("test")


class Time:
    """A clock that only sleeping moves, and each call of `work`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def read(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def work(self, seconds: float, errors: list[Exception]) -> str:
        self.now += seconds
        if errors:
            raise errors.pop(0)
        return "done"


def stores(*faults: Fault) -> tuple[MemoryEtcd, MemoryStore]:
    etcd = MemoryEtcd(KEYS)
    store = MemoryStore(etcd)
    store.faults = iter(faults)
    return etcd, store


def test_a_paced_call_rests_four_times_as_long_as_it_took() -> None:
    time = Time()
    calls = Calls(time.read, time.sleep)
    assert asyncio.run(calls.paced(time.work, 0.5, [])) == "done"
    assert time.slept == [2.0]


def test_a_paced_call_that_is_late_rests_less() -> None:
    time = Time()
    log_bytes = [125, 500]
    pace = Pace()
    pace.begin(1, 1_000, lambda: log_bytes.pop(0))
    calls = Calls(time.read, time.sleep, pace=pace)
    for _ in range(2):
        asyncio.run(calls.paced(time.work, 0.5, []))
    assert time.slept == [1.0]


def test_time_without_an_answer_is_not_rested_after() -> None:
    time = Time()
    calls = Calls(time.read, time.sleep)
    assert asyncio.run(calls.paced(time.work, 0.5, [StoreError("lost")])) == "done"
    assert time.slept == pytest.approx([0.1, 2.0])


def test_a_call_without_an_answer_is_repeated_ever_more_slowly_and_then_raised() -> None:
    time = Time()
    calls = Calls(time.read, time.sleep)
    errors: list[Exception] = [StoreError(f"lost {n}") for n in range(ATTEMPTS_MAX)]
    with pytest.raises(StoreError, match=f"lost {ATTEMPTS_MAX - 1}"):
        asyncio.run(calls.repeat(time.work, 0.0, errors))
    assert len(time.slept) == ATTEMPTS_MAX - 1
    assert time.slept == sorted(time.slept)
    assert time.slept[-1] == PAUSE_S_MAX


@pytest.mark.parametrize(
    "error", [StoreFullError("full"), CompactedError(3), UntrustedError("another authority")]
)
def test_what_does_not_pass_is_raised_at_once(error: StoreError) -> None:
    time = Time()
    calls = Calls(time.read, time.sleep)
    with pytest.raises(type(error)):
        asyncio.run(calls.repeat(time.work, 0.0, [error]))
    assert time.slept == []


@pytest.mark.parametrize(
    "faults",
    [
        [],
        [Fault.BEFORE],
        [Fault.AFTER],
        [Fault.LATE],
        [Fault.AFTER, Fault.AFTER, Fault.BEFORE],
        [Fault.BEFORE, Fault.AFTER, Fault.NONE, Fault.AFTER],
    ],
)
def test_a_swap_is_carried_out_once_whatever_is_lost(faults: Sequence[Fault]) -> None:
    etcd, store = stores(*faults)
    time = Time()
    revision = asyncio.run(Calls(time.read, time.sleep).swap(store, b"k", b"v", 0))
    etcd.run_late()
    assert etcd.items[b"k"].mod_revision == revision
    assert etcd.items[b"k"].version == 1


def test_a_swap_that_somebody_else_won_is_not_ours() -> None:
    etcd, store = stores(Fault.BEFORE)
    etcd.put((b"k", b"theirs"))
    time = Time()
    calls = Calls(time.read, time.sleep)
    assert asyncio.run(calls.swap(store, b"k", b"ours", 0)) == 0
    assert etcd.items[b"k"].value == b"theirs"


def test_a_swap_whose_guard_does_not_hold_is_not_taken_for_carried_out() -> None:
    etcd, store = stores()
    revision = etcd.put((b"k", b"same"))
    time = Time()
    calls = Calls(time.read, time.sleep)
    assert asyncio.run(calls.swap(store, b"k", b"same", revision, Guard(b"other", 7))) == 0
