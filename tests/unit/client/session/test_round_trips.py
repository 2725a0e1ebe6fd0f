"""Into which bucket a round trip goes."""

from __future__ import annotations

import pytest

from paddock.client.session.round_trips import BOUNDS, RoundTripHistogram


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, 0), (0.0002, 0), (0.00026, 1), (0.0009, 2), (0.0011, 3), (1.0, 12), (1e6, 20)],
)
def test_a_round_trip_is_counted_once_below_the_bound_of_its_bucket(
    seconds: float, bucket: int
) -> None:
    histogram = RoundTripHistogram()
    histogram.add(seconds)
    assert histogram.counts == [int(one == bucket) for one in range(21)]
    assert (histogram.total, histogram.longest) == (seconds, seconds)
    assert seconds <= [*BOUNDS, float("inf")][bucket]
    assert bucket == 0 or seconds >= BOUNDS[bucket - 1]


def test_the_longest_stays_and_all_are_added_up() -> None:
    histogram = RoundTripHistogram()
    for seconds in (0.5, 2.0, 0.25):
        histogram.add(seconds)
    assert (histogram.total, histogram.longest, sum(histogram.counts)) == (2.75, 2.0, 3)
