"""The counters of a server: buckets, and the queries that a sample stands for."""

from __future__ import annotations

from paddock.server.statistics import Histogram, Statistics


def test_a_number_on_a_bound_is_in_the_bucket_below_it() -> None:
    histogram = Histogram([1.0, 2.0, 5.0])
    for number in (0.5, 1.0, 1.5, 5.0, 5.1):
        histogram.add(number)
    histogram.add(2.0, 3)
    assert histogram.buckets() == [2, 4, 1, 1]
    # To look changes nothing, and what comes behind it counts.
    histogram.add(2.0)
    histogram.add(-1.0)
    assert histogram.buckets() == histogram.buckets() == [3, 5, 1, 1]
    assert (histogram.count, histogram.total) == (10, 20.1)
    assert (histogram.min, histogram.max) == (-1.0, 5.1)


def test_a_sample_stands_for_the_queries_since_the_last_one() -> None:
    statistics = Statistics()
    statistics.operations.get_data = 60
    statistics.sampled(0.5)
    # There was no query since.
    statistics.sampled(7.0)
    statistics.operations.exists = 40
    statistics.sampled(2.0)
    assert (statistics.read_ms.count, statistics.read_ms.total) == (100, 110.0)
    statistics.reset()
    assert statistics.operations.queries() == statistics.read_ms.count == 0
    statistics.operations.get_children = 3
    statistics.sampled(1.0)
    assert statistics.read_ms.count == 3
