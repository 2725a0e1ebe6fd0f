"""What a tally makes of what it is told: what counts, and how long it took."""

from __future__ import annotations

import pytest

from paddock.cli.bench.plan import Cell
from paddock.cli.bench.tally import Measurement, Tally

CELL = Cell("get", 1)


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
    assert result.operations == 0
    assert {result.p50_ms, result.p99_ms, result.p999_ms, result.max_ms} == {None}


def test_the_slowest_of_a_thousand_are_told_from_the_slowest_of_a_hundred() -> None:
    tally = Tally()
    tally.begin()
    for _ in range(10):
        for milliseconds in (*[1] * 98, 20):
            tally.note(milliseconds / 1000)
    for milliseconds in (*[1] * 8, 300, 4000):
        tally.note(milliseconds / 1000)
    tally.end()
    fields = tally.result(CELL).fields()
    found = [fields[name] for name in ("p50_ms", "p99_ms", "p999_ms", "max_ms")]
    assert found == pytest.approx([1, 20, 300, 4000], rel=0.008)


@pytest.mark.parametrize(("share", "is_busy"), [(0.5, False), (0.9, True), (1.02, True)])
def test_a_client_that_has_a_processor_to_itself_is_busy(share: float, is_busy: bool) -> None:
    measured = Measurement(CELL, 2.0, 100, 0, None, 1.0, 2.0, 3.0, 4.0, share)
    assert measured.rate == 50
    assert measured.is_client_busy is is_busy
