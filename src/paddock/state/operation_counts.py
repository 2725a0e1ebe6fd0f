"""How many requests of each operation a server has served.

Each request is counted once, where the code knows its operation anyway: a query when it is
answered, a write when it is proposed. The frequent operations have a field each: a number in a list
is an object, and to make a new one takes longer than all the rest of counting.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i32, i64

from paddock.protocol import opcodes

# The numbers of all operations differ in these bits.
_BITS: Final = 0x7FF


class OperationCounts:
    """The counters, by operation."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin to count anew."""
        self.get_data: i64 = 0
        self.exists: i64 = 0
        self.get_children: i64 = 0
        self.get_children2: i64 = 0
        self.set_data: i64 = 0
        self.create: i64 = 0
        # Of all others, by their numbers.
        self._others = [0] * (_BITS + 1)

    def add(self, operation: i32) -> None:
        """Count a request that is none of the frequent ones; these are counted in place."""
        self._others[operation & _BITS] += 1

    def queries(self) -> int:
        """Return the number of the frequent queries."""
        return self.get_data + self.exists + self.get_children + self.get_children2

    def of(self, operation: int) -> int:
        """Return the number of requests of an operation, which must be a known one."""
        fields: dict[int, int] = {
            opcodes.GET_DATA: self.get_data,
            opcodes.EXISTS: self.exists,
            opcodes.GET_CHILDREN: self.get_children,
            opcodes.GET_CHILDREN2: self.get_children2,
            opcodes.SET_DATA: self.set_data,
            opcodes.CREATE: self.create,
        }
        return fields[operation] if operation in fields else self._others[operation & _BITS]
