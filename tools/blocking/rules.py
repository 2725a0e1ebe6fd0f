"""The input of the tool: the modules that have a twin, and the exceptions."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Pair:
    """An asyncio module, its blocking twin, and the names that have a twin."""

    source: str
    target: str
    names: tuple[str, ...]
    # The package that exports what of it is public, if there is one.
    package: str = ""


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

    def exporter(self, module: str, name: str, thing: Any) -> str | None:
        """Return the package that exports a thing of a module below it, if there is one."""
        for package in sorted({pair.package for pair in self.pairs if pair.package}):
            exported = importlib.import_module(package)
            is_there = name in exported.__all__ and getattr(exported, name) is thing
            if module.startswith(f"{package}.") and is_there:
                return package
        return None


class RefusedError(Exception):
    """A signature fits no rule; the message names it."""


#: The methods of an owner that begin and end its life.
LIFE: Final = {"start": "self._open(self._inner.start)", "close": "self._close()"}
