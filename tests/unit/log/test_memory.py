"""The log that forgets."""

import pytest

from paddock.log.interface import Durability, Log, LogCorruptError, Record
from paddock.log.memory import MemoryLog


def started(*, keep: bool, after: int = 0) -> tuple[MemoryLog, list[tuple[int, Durability, str]]]:
    log = MemoryLog(keep=keep)
    reports: list[tuple[int, Durability, str]] = []
    log.start(lambda *report: reports.append(report), after)
    return log, reports


def test_memory_log_is_a_log() -> None:
    log: Log = MemoryLog(keep=True)
    assert log.last_index == 0


def test_proposal_is_durable_when_propose_returns() -> None:
    log, reports = started(keep=True)
    assert log.propose(b"a") == 1
    assert reports == [(1, Durability.DURABLE, "")]
    assert log.last_index == 1


def test_kept_records_are_read_after_an_index() -> None:
    log, _ = started(keep=True)
    for payload in (b"a", b"b", b"c"):
        log.propose(payload)
    assert list(log.records(0)) == [Record(1, b"a"), Record(2, b"b"), Record(3, b"c")]
    assert list(log.records(2)) == [Record(3, b"c")]
    assert list(log.records(3)) == []


def test_purged_records_are_reported_missing() -> None:
    log, _ = started(keep=True)
    for payload in (b"a", b"b", b"c"):
        log.propose(payload)
    log.purge(2)
    log.purge(1)
    assert list(log.records(2)) == [Record(3, b"c")]
    with pytest.raises(LogCorruptError, match="record 2"):
        log.records(1)
    log.purge(100)
    assert log.last_index == 3


def test_records_that_are_not_kept_take_no_memory() -> None:
    log, _ = started(keep=False)
    log.propose(b"a")
    assert log.last_index == 1
    assert list(log.records(1)) == []
    with pytest.raises(LogCorruptError):
        log.records(0)


def test_log_goes_on_behind_a_snapshot() -> None:
    log, _ = started(keep=True, after=10)
    assert log.propose(b"k") == 11
    assert list(log.records(10)) == [Record(11, b"k")]


def test_log_can_be_started_again_after_it_is_closed() -> None:
    log, first = started(keep=True)
    log.propose(b"a")
    log.close()
    with pytest.raises(AssertionError):
        log.propose(b"b")
    second: list[int] = []
    log.start(lambda index, _outcome, _reason: second.append(index))
    log.propose(b"b")
    assert (len(first), second) == (1, [2])
    assert log.recover() == []
