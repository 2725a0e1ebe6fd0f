"""What the tool is told: which modules have a twin, and what of them is an exception."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Pair:
    """An asyncio module, its blocking twin, and what of it has a twin."""

    source: str
    target: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Rules:
    """All pairs, and the classes and methods that are not as the others."""

    pairs: tuple[Pair, ...]
    # From what everything else comes, and what keeps the loop running until it is closed.
    owners: frozenset[str] = frozenset()
    # Those whose plain methods touch nothing but themselves.
    builders: frozenset[str] = frozenset()
    # Those that users never make, whatever their constructor takes.
    made_inside: frozenset[str] = frozenset()
    # Methods, as `Class.method`, that make sense in asyncio only.
    asyncio_only: frozenset[str] = frozenset()

    @property
    def twins(self) -> dict[str, Pair]:
        """Where each class with a twin is, by its name."""
        return {name: pair for pair in self.pairs for name in pair.names if name[0].isupper()}


class RefusedError(Exception):
    """Something fits no rule; the message says what and where."""


#: The methods of an owner that begin and end its life.
LIFE: Final = {"start": "self._open(self._inner.start)", "close": "self._close()"}
