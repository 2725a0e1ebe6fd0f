"""How many bytes of the log lie behind a record."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from paddock.server.cluster.log_meter import MARKS_MAX, LogMeter


class Case:
    """A replica of which only its place in the log is known."""

    def __init__(self, restored: int = 0, applied: int = 0, applied_bytes: int = 0) -> None:
        replay = SimpleNamespace(index=restored)
        self.replica: Any = SimpleNamespace(
            replay=replay, applied=applied, applied_bytes=applied_bytes
        )
        self.meter = LogMeter(cast(Any, self.replica))

    def apply(self, batches: int, size: int, *, marks: bool = True) -> None:
        self.replica.applied += batches
        self.replica.applied_bytes += batches * size
        if marks:
            self.meter.mark()


def test_many_small_batches_before_do_not_make_large_ones_small() -> None:
    case = Case()
    case.apply(100_000, 60)
    case.apply(1_000, 65_536)
    assert case.meter.bytes_behind(100_000) == 1_000 * 65_536
    assert case.meter.bytes_behind(0) == 100_000 * 60 + 1_000 * 65_536


def test_what_was_read_at_the_start_counts_for_what_it_is() -> None:
    case = Case(restored=500, applied=1_500, applied_bytes=1_000_000)
    assert case.meter.bytes_behind(500) == 1_000_000
    case.apply(10, 50)
    assert case.meter.bytes_behind(1_500) == 500


def test_between_two_marks_it_is_in_proportion() -> None:
    case = Case()
    case.apply(10, 10)
    case.apply(10, 1_000)
    assert case.meter.bytes_behind(5) == 50 + 10_000
    assert case.meter.bytes_behind(15) == 5_000
    # And behind the last one as well.
    case.apply(10, 5, marks=False)
    assert case.meter.bytes_behind(24) == pytest.approx(30)


def test_before_the_first_mark_the_mean_is_assumed() -> None:
    case = Case(restored=100, applied=100)
    assert case.meter.bytes_behind(0) == 0
    case.apply(50, 10)
    assert case.meter.bytes_behind(0) == 1_500


def test_nothing_is_behind_what_is_not_applied_yet() -> None:
    case = Case()
    case.apply(10, 10)
    assert case.meter.bytes_behind(10) == case.meter.bytes_behind(11) == 0


def test_old_marks_become_coarser() -> None:
    case = Case()
    for _ in range(10 * MARKS_MAX):
        case.apply(3, 10)
    assert len(case.meter._indices) <= MARKS_MAX
    assert case.meter.bytes_behind(0) == 10 * MARKS_MAX * 30
    assert case.meter.bytes_behind(3 * 777) == 10 * MARKS_MAX * 30 - 777 * 30
