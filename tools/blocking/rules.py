"""What the tool is told: which modules have a twin, and what of them is an exception."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Pair:
    """An asyncio module, its blocking twin, and what of it has a twin."""

    source: str
    target: str
    names: tuple[str, ...]
    # The package that exports what of it is public, if there is one.
    package: str = ""


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

    def exporter(self, module: str, name: str, thing: Any) -> str | None:
        """Return the package that exports a thing of a module below it, if there is one."""
        for package in sorted({pair.package for pair in self.pairs if pair.package}):
            exported = importlib.import_module(package)
            is_there = name in exported.__all__ and getattr(exported, name) is thing
            if module.startswith(f"{package}.") and is_there:
                return package
        return None


class RefusedError(Exception):
    """Something fits no rule; the message says what and where."""


#: The methods of an owner that begin and end its life.
LIFE: Final = {"start": "self._open(self._inner.start)", "close": "self._close()"}
