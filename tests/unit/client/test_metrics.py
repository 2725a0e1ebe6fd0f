"""The figures that follow from others."""

from __future__ import annotations

import math

import pytest

from paddock.client.metrics import RoundTrips


def trips(*counts: int, longest: float = 10.0) -> RoundTrips:
    """Return round trips of buckets up to 1 s, 2 s, 4 s, and without a bound."""
    bounds = (1.0, 2.0, 4.0, math.inf)
    return RoundTrips(tuple(zip(bounds, counts, strict=True)), 12.0, longest)


@pytest.mark.parametrize(
    ("share", "seconds"), [(0.0, 1.0), (0.5, 1.0), (0.51, 2.0), (0.75, 2.0), (0.76, 4.0), (1, 4.0)]
)
def test_a_quantile_is_the_bound_of_its_bucket(share: float, seconds: float) -> None:
    assert trips(2, 1, 1, 0).quantile(share) == seconds


def test_a_quantile_is_never_more_than_the_longest() -> None:
    assert trips(1, 0, 0, 1).quantile(1) == 10.0
    assert trips(1, 1, 0, 0, longest=1.5).quantile(0.99) == 1.5


def test_without_a_round_trip_all_is_nothing() -> None:
    nothing = RoundTrips(((math.inf, 0),), 0.0, 0.0)
    assert (nothing.count, nothing.mean, nothing.quantile(0.99)) == (0, 0.0, 0.0)
    assert (trips(2, 1, 1, 2).count, trips(2, 1, 1, 2).mean) == (6, 2.0)
