"""The counters of a server: buckets, operations, and the queries that a sample stands for."""

from __future__ import annotations

from paddock.protocol import opcodes, operations
from paddock.server.statistics import OPERATION_BITS, Histogram, OperationCounts, Statistics


def test_a_number_on_a_bound_is_in_the_bucket_below_it() -> None:
    histogram = Histogram([1.0, 2.0, 5.0])
    for number in (0.5, 1.0, 1.5, 5.0, 5.1):
        histogram.add(number)
    histogram.add(2.0, 3)
    assert histogram.buckets == [2, 4, 1, 1]
    assert (histogram.count, histogram.total) == (8, 19.1)
    assert (histogram.min, histogram.max) == (0.5, 5.1)


def test_every_operation_is_counted_apart_from_the_others() -> None:
    counts = OperationCounts()
    for times, number in enumerate(operations.BY_NUMBER, 1):
        for _ in range(times):
            count(counts, number)
    numbers = list(operations.BY_NUMBER)
    assert [counts.of(number) for number in numbers] == [*range(1, len(numbers) + 1)]
    for number in numbers:
        counts.take_back(number)
    assert [counts.of(number) for number in numbers] == [*range(len(numbers))]
    counts.reset()
    assert {counts.of(number) for number in numbers} == {0}


def count(counts: OperationCounts, number: int) -> None:
    match number:
        case opcodes.GET_DATA:
            counts.get_data += 1
        case opcodes.EXISTS:
            counts.exists += 1
        case opcodes.GET_CHILDREN:
            counts.get_children += 1
        case opcodes.GET_CHILDREN2:
            counts.get_children2 += 1
        case _:
            counts.others[number & OPERATION_BITS] += 1


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
