"""The log that forgets."""

import pytest

from paddock.log.interface import Log, LogCorruptError, Record
from paddock.log.memory import MemoryLog
from tests.support.logs import Durability, Reports


def started(*, keep: bool, after: int = 0) -> tuple[MemoryLog, list[tuple[int, Durability, str]]]:
    log = MemoryLog(keep=keep)
    reports: list[tuple[int, Durability, str]] = []
    log.start(Reports(log, lambda *report: reports.append(report)), after)
    return log, reports


def test_memory_log_is_a_log() -> None:
    log: Log = MemoryLog(keep=True)
    assert log.last_index == 0


def test_proposal_is_durable_when_propose_returns() -> None:
    log, reports = started(keep=True)
    log.propose(0, b"a")
    assert reports == [(1, Durability.DURABLE, "")]
    assert log.last_index == 1


def test_kept_records_are_read_after_an_index() -> None:
    log, _ = started(keep=True)
    for number, payload in enumerate((b"a", b"b", b"c")):
        log.propose(number, payload)
    assert list(log.records(0)) == [Record(1, b"a"), Record(2, b"b"), Record(3, b"c")]
    assert list(log.records(2)) == [Record(3, b"c")]
    assert list(log.records(3)) == []


def test_purged_records_are_reported_missing() -> None:
    log, _ = started(keep=True)
    for number, payload in enumerate((b"a", b"b", b"c")):
        log.propose(number, payload)
    log.purge(2)
    log.purge(1)
    assert list(log.records(2)) == [Record(3, b"c")]
    with pytest.raises(LogCorruptError, match="record 2"):
        log.records(1)
    log.purge(100)
    assert log.last_index == 3


def test_records_that_are_not_kept_take_no_memory() -> None:
    log, _ = started(keep=False)
    log.propose(0, b"a")
    assert log.last_index == 1
    assert list(log.records(1)) == []
    with pytest.raises(LogCorruptError):
        log.records(0)


def test_log_goes_on_behind_a_snapshot() -> None:
    log, _ = started(keep=True, after=10)
    log.propose(0, b"k")
    assert log.last_index == 11
    assert list(log.records(10)) == [Record(11, b"k")]


def test_log_can_be_started_again_after_it_is_closed() -> None:
    log, first = started(keep=True)
    log.propose(0, b"a")
    log.close()
    with pytest.raises(AssertionError):
        log.propose(1, b"b")
    second: list[int] = []
    listener = Reports(log, lambda index, _outcome, _reason: second.append(index))
    log.start(listener)
    log.propose(2, b"b")
    assert (len(first), second) == (1, [2])
    log.recover()
    # What was there is told first, and is nobody's proposal any more.
    assert listener.records == [Record(1, b"a"), Record(2, b"b", b"", 2)]
