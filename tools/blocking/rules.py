"""The input of the tool: the modules that have a twin, and the exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Pair:
    """An asyncio module, its blocking twin, and the names that have a twin."""

    source: str
    target: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Rules:
    """All pairs, and the classes and methods with rules of their own."""

    pairs: tuple[Pair, ...]
    # Classes that own the loop: they keep it running until they are closed.
    owners: frozenset[str] = frozenset()
    # Classes whose plain methods touch only the object itself.
    builders: frozenset[str] = frozenset()
    # Classes that users never construct.
    made_inside: frozenset[str] = frozenset()
    # Methods, as `Class.method`, that exist in asyncio only.
    asyncio_only: frozenset[str] = frozenset()

    @property
    def twins(self) -> dict[str, Pair]:
        """The pair of each class with a twin, by its name."""
        return {name: pair for pair in self.pairs for name in pair.names if name[0].isupper()}


class RefusedError(Exception):
    """A signature fits no rule; the message names it."""


#: The methods of an owner that begin and end its life.
LIFE: Final = {"start": "self._open(self._inner.start)", "close": "self._close()"}
