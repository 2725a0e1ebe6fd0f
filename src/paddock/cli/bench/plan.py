"""The plan of a benchmark: cells, durations and limits.

Every operation is measured one at a time, then with several clients, then with many requests of
each in flight. A cell ends after its time; one that writes, also after a bounded amount of data.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# By name, what the help says of each.
OPERATIONS: Final = {
    "get": "read a node",
    "exists": "ask whether a node is there",
    "children": "list 100 children",
    "set": "write a node",
    "create": "create a node",
    "ephemeral": "create an ephemeral node and delete it",
    "mix": "nine reads for each write",
    "watch": "tell watchers of a write",
    "lock": "take a lock and release it",
}
_WRITES: Final = frozenset({"set", "create", "ephemeral", "mix"})
# What is one step after the other, so that a client cannot have several under way.
_ONE_EACH: Final = frozenset({"lock"})

# Requests under way at once, by all clients, and the bytes of data in them.
IN_FLIGHT_MAX: Final = 10_000
IN_FLIGHT_BYTES_MAX: Final = 64 * 1024**2
# What a cell writes at most, and how many nodes it makes.
CELL_BYTES_MAX: Final = 128 * 1024**2
CELL_NODES_MAX: Final = 100_000

_WARM_UP_S: Final = 0.1
_WARM_UP_SHARE: Final = 0.2


@dataclass(frozen=True, slots=True)
class Cell:
    """One operation, by so many clients, with so many requests of each under way."""

    operation: str
    clients: int
    window: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is to be measured."""

    operations: tuple[str, ...]
    # Of each cell, without its warm-up.
    seconds: float
    clients: int
    window: int
    size: int
    watchers: int

    def cells(self) -> list[Cell]:
        """Return all cells, in order."""
        return [cell for operation in self.operations for cell in self._cells_of(operation)]

    def warm_up_s(self, cell: Cell) -> float:
        """Return the duration of the warm-up."""
        # What ends when it has made enough has nothing to spare.
        if self.limit(cell) is not None:
            return 0.0
        return min(_WARM_UP_S, self.seconds * _WARM_UP_SHARE)

    def limit(self, cell: Cell) -> int | None:
        """Return the most operations of a cell; None if only its time is limited."""
        if cell.operation not in _WRITES:
            return None
        limit = CELL_BYTES_MAX // max(1, self.size)
        return min(limit, CELL_NODES_MAX) if cell.operation == "create" else limit

    def seconds_in_all(self) -> float:
        """Return the approximate duration of the whole."""
        return sum(self.seconds + self.warm_up_s(cell) for cell in self.cells())

    def problem(self) -> str | None:
        """Return which limit is exceeded, or None."""
        in_flight = self.clients * self.window
        if in_flight > IN_FLIGHT_MAX:
            return (
                f"--clients {self.clients} with --window {self.window} are {in_flight} requests"
                f" at once, and {IN_FLIGHT_MAX} is the most"
            )
        if in_flight * self.size > IN_FLIGHT_BYTES_MAX:
            return (
                f"{in_flight} requests at once with --size {self.size} are"
                f" {in_flight * self.size} bytes, and {IN_FLIGHT_BYTES_MAX} is the most:"
                " give a smaller --window"
            )
        return None

    def _cells_of(self, operation: str) -> Iterator[Cell]:
        if operation == "watch":
            yield Cell(operation, self.watchers)
            return
        yield Cell(operation, 1)
        if self.clients > 1:
            yield Cell(operation, self.clients)
        if self.window > 1 and operation not in _ONE_EACH:
            yield Cell(operation, self.clients, self.window)
