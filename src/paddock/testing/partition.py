"""A client that cannot reach its server, for as long as a test wants it.

with server.partition(client):
    ...  # It is cut off here, and may come back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self


class Partition:
    """Lasts until it is healed, or until the end of its `with`."""

    def __init__(self, heal: Callable[[], None]) -> None:
        self._heal = heal

    def heal(self) -> None:
        """Let the client reach the server again; twice is fine."""
        self._heal()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.heal()
