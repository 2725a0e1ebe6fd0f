"""The numbers of sequential nodes: as text in names, and their order."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

# A pattern; the service counts in 32 bits, so some are negative.
NUMBER: Final = r"-\d{9,10}|\d{10}"

_NUMBERS: Final = 2**32


class Order:
    """The order in which the service gave some numbers."""

    def __init__(self, numbers: Collection[int]) -> None:
        # After the largest number the service goes on with the least, which is negative.
        self._is_wrapped = bool(numbers) and max(numbers) - min(numbers) >= _NUMBERS // 2

    def rank(self, number: int) -> int:
        """Return a number that is larger for a later one."""
        return number % _NUMBERS if self._is_wrapped else number
