"""Every operation is counted apart from the others."""

from __future__ import annotations

from paddock.protocol import opcodes, operations
from paddock.state.operation_counts import OperationCounts

_IN_PLACE = (
    *(opcodes.GET_DATA, opcodes.EXISTS, opcodes.GET_CHILDREN, opcodes.GET_CHILDREN2),
    *(opcodes.SET_DATA, opcodes.CREATE),
)


def test_every_operation_is_counted_apart_from_the_others() -> None:
    counts = OperationCounts()
    counts.get_data, counts.exists, counts.get_children, counts.get_children2 = 1, 2, 3, 4
    counts.set_data, counts.create = 5, 6
    added = [number for number in operations.BY_NUMBER if number not in _IN_PLACE]
    for times, number in enumerate(added, 7):
        for _ in range(times):
            counts.add(number)
    numbers = [*_IN_PLACE, *added]
    assert [counts.of(number) for number in numbers] == [*range(1, len(numbers) + 1)]
    assert counts.queries() == 1 + 2 + 3 + 4
    counts.reset()
    assert {counts.of(number) for number in numbers} == {0}
    assert counts.queries() == 0
