"""What a tally makes of what it is told: percentiles, and what counts."""

from __future__ import annotations

import pytest

from paddock.cli.bench.plan import Cell
from paddock.cli.bench.tally import Measurement, Tally, percentile

CELL = Cell("get", 1)


@pytest.mark.parametrize(
    ("ordered", "percent", "expected"),
    [
        ([7.0], 50, 7.0),
        ([7.0], 99, 7.0),
        ([1.0, 2.0], 50, 1.0),
        ([1.0, 2.0, 3.0], 50, 2.0),
        ([1.0, 2.0, 3.0, 4.0], 50, 2.0),
        ([*map(float, range(1, 101))], 50, 50.0),
        ([*map(float, range(1, 101))], 99, 99.0),
        ([*map(float, range(1, 102))], 99, 100.0),
        ([*map(float, range(1, 1001))], 99, 990.0),
        ([*map(float, range(1, 101))], 100, 100.0),
    ],
)
def test_a_percentile_is_the_smallest_that_so_many_do_not_exceed(
    ordered: list[float], percent: int, expected: float
) -> None:
    assert percentile(ordered, percent) == expected


def test_of_nothing_there_is_no_percentile() -> None:
    assert percentile([], 50) is None


def test_the_warm_up_does_not_count() -> None:
    tally = Tally()
    tally.note(9.0)
    tally.begin()
    tally.note(0.001)
    tally.end()
    result = tally.result(CELL)
    assert (result.operations, result.p50_ms, result.max_ms) == (1, 1.0, 1.0)


def test_what_is_answered_too_late_is_among_the_slowest_and_does_not_count() -> None:
    tally = Tally()
    tally.begin()
    tally.note(0.001)
    tally.end()
    tally.note(0.5)
    result = tally.result(CELL)
    assert (result.operations, result.max_ms) == (1, 500.0)


def test_refusals_are_counted_with_the_first_reason_and_are_no_operations() -> None:
    tally = Tally()
    tally.refuse("/a: quota exceeded")
    tally.begin()
    tally.refuse("/b: something else")
    tally.end()
    result = tally.result(CELL)
    assert (result.refusals, result.problem) == (2, "/a: quota exceeded")
    assert (result.operations, result.p50_ms, result.p99_ms, result.max_ms) == (0, None, None, None)


@pytest.mark.parametrize(("share", "is_busy"), [(0.5, False), (0.9, True), (1.02, True)])
def test_a_client_that_has_a_processor_to_itself_is_busy(share: float, is_busy: bool) -> None:
    measured = Measurement(CELL, 2.0, 100, 0, None, 1.0, 2.0, 3.0, share)
    assert measured.rate == 50
    assert measured.is_client_busy is is_busy
