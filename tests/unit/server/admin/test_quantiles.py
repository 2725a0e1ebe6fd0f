"""Quantiles of histograms, and the window that they look at."""

from __future__ import annotations

import math

import pytest

from paddock.server.admin.quantiles import Window, quantile_of


@pytest.mark.parametrize(
    ("quantile", "buckets", "expected"),
    [
        # In a bucket, values are taken to be evenly spread.
        (0.5, [10, 0, 0], 0.5),
        (0.5, [0, 10, 0], 3.0),
        (0.9, [8, 2, 0], 3.0),
        # Above the last bound nothing is known.
        (0.99, [1, 0, 99], 5.0),
    ],
)
def test_a_quantile_is_as_exact_as_the_buckets(
    quantile: float, buckets: list[int], expected: float
) -> None:
    assert quantile_of(quantile, [1.0, 5.0], buckets) == pytest.approx(expected)


def test_nothing_has_no_quantile() -> None:
    assert math.isnan(quantile_of(0.5, [1.0], [0, 0]))


def test_a_window_forgets_what_is_older_than_ten_minutes() -> None:
    window = Window()
    assert window.move([5, 0], 0.0) == [5, 0]
    for minute in range(1, 10):
        assert window.move([5, minute], 60.0 * minute) == [5, minute]
    assert window.move([5, 10], 670.0) == [0, 9]
    # The counters were reset.
    assert window.move([1, 0], 680.0) == [1, 0]
