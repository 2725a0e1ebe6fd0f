"""What a desk gives, from a module that is nobody's business."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

TicketListener: TypeAlias = Callable[["Ticket", str], None]


class Ticket:
    """One of many, with a number."""

    def __init__(self, number: int) -> None:
        # Its place.
        self.number = number

    @property
    def next(self) -> Ticket | None:
        """The one after it, up to three."""
        return Ticket(self.number + 1) if self.number < 3 else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ticket) and other.number == self.number

    def __hash__(self) -> int:
        return self.number


class Counting:
    """What several classes come from."""

    def __init__(self) -> None:
        self._given = 0

    async def give(self) -> Ticket:
        """Hand out the next ticket."""
        self._given += 1
        return Ticket(self._given)

    def given(self) -> int:
        """Tell how many there were."""
        return self._given
