"""The histogram of latencies: its percentiles, and its size."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from paddock.cli.bench.latencies import Latencies

# The width of a bucket, as a part of what is in it.
EXACTNESS = 0.007


def counted(*seconds: float) -> Latencies:
    latencies = Latencies()
    for one in seconds:
        latencies.add(one)
    return latencies


@pytest.mark.parametrize(
    ("milliseconds", "percent", "expected"),
    [
        ([7], 50, 7),
        ([7], 99.9, 7),
        ([1, 2], 50, 1),
        ([1, 2, 3], 50, 2),
        ([4, 3, 2, 1], 50, 2),
        (range(1, 101), 99, 99),
        (range(1, 102), 99, 100),
        (range(1, 101), 100, 100),
        (range(1, 1001), 99, 990),
        (range(1, 1001), 99.9, 999),
        (range(1, 1002), 99.9, 1000),
        (range(1, 10_001), 99.9, 9990),
        # 99.9 % of 41,000, as a float, are a little more than 40,959.
        ([1] * 40_959 + [1000] * 41, 99.9, 1),
    ],
)
def test_a_percentile_is_the_smallest_that_so_many_do_not_exceed(
    milliseconds: list[int], percent: float, expected: int
) -> None:
    found = counted(*(one / 1000 for one in milliseconds)).percentile(percent)
    assert found is not None
    assert expected / 1000 <= found <= expected / 1000 * (1 + EXACTNESS)


def test_of_nothing_there_is_no_percentile() -> None:
    assert Latencies().percentile(50) is None


def test_every_latency_of_a_cell_is_found_again_and_never_as_a_shorter_one() -> None:
    random_ = random.Random(1)
    for _ in range(100):
        seconds = 10 ** random_.uniform(-9, 2)
        latencies = counted(seconds, 1000)
        found = latencies.percentile(50)
        assert found is not None
        assert seconds <= found <= seconds * (1 + EXACTNESS) + 1e-9
        assert latencies.percentile(100) == latencies.longest == 1000


def test_no_time_and_hours_are_counted() -> None:
    latencies = counted(0, 0, 10_000)
    assert latencies.percentile(50) == pytest.approx(0, abs=1e-9)
    assert latencies.percentile(100) == 10_000


def test_many_take_no_more_memory_than_few() -> None:
    latencies = Latencies()
    tracemalloc.start()
    try:
        for number in range(50_000):
            latencies.add(number / 1e6)
        more, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A number for each would be eight bytes.
    assert more < 200_000
