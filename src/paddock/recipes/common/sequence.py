"""The numbers that the service gives to sequential nodes, as text in names and in their order."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

# As it stands in a pattern; the service counts in 32 bits, so some are negative.
NUMBER: Final = r"-\d{9,10}|\d{10}"

_NUMBERS: Final = 2**32


class Order:
    """The order in which some numbers were given."""

    def __init__(self, numbers: Collection[int]) -> None:
        # After the largest number the service goes on with the least: then some were counted
        # before that, and the negative ones after it.
        self._is_wrapped = bool(numbers) and max(numbers) - min(numbers) >= _NUMBERS // 2

    def rank(self, number: int) -> int:
        """Give what is larger for a number that was given later."""
        return number % _NUMBERS if self._is_wrapped else number
