"""A package whose exported names all have a twin, or are shared by both APIs.

Its `__init__` decides which names of which modules have a twin. The `__init__` of the twin exports
the same names.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass, replace
from typing import Any

from tools.blocking.rules import Pair, RefusedError, Rules
from tools.blocking.shared import check_shared, is_shared
from tools.blocking.source import Function, Source, read


@dataclass(frozen=True)
class Package:
    """A package of asyncio classes, and its blocking twin."""

    source: str
    target: str

    @property
    def exists(self) -> bool:
        return importlib.util.find_spec(self.source) is not None

    def pairs(self, rules: Rules) -> tuple[Pair, ...]:
        """Return the pairs of this package; those of `rules` exist already."""
        source = read(self.source)
        homes = self._homes(source)
        # Classes first: a function has a twin if it uses one of them.
        twins = [
            name
            for name in homes
            if isinstance(getattr(source.module, name), type)
            and not is_shared(getattr(source.module, name))
        ]
        known = {*rules.twins, *twins}
        for name, home in homes.items():
            thing = getattr(source.module, name)
            if not isinstance(thing, type) and not is_shared(thing):
                node = read(home).found(name)
                assert isinstance(node, Function)
                names = {one.id for one in ast.walk(node.args) if isinstance(one, ast.Name)}
                if names & known:
                    twins.append(name)
                elif isinstance(node, ast.AsyncFunctionDef):
                    raise RefusedError(f"{home}: {name} takes nothing that has a twin")
        found: dict[str, list[str]] = {}
        for name in homes:
            if name in twins:
                found.setdefault(homes[name], []).append(name)
        for base in shared_bases([getattr(source.module, name) for name in twins], self.source):
            found.setdefault(base.__module__, []).insert(0, base.__name__)
        pairs = tuple(
            # All modules of a folder have one twin together.
            Pair(home, f"{self.target}.{self._part(home)}", tuple(names), self.source)
            for home, names in sorted(found.items())
        )
        for name in homes:
            if name not in twins:
                check_shared(name, getattr(source.module, name), with_pairs(rules, pairs))
        return pairs

    def _part(self, home: str) -> str:
        """Return the folder of a module, or its own name if it is in none."""
        return home.removeprefix(f"{self.source}.").partition(".")[0]

    def write(self, rules: Rules) -> str:
        """Return the `__init__` of the twin."""
        targets = {name: pair.target for pair in self.pairs(rules) for name in pair.names}
        homes = self._homes(read(self.source))
        lines = [f"from {targets.get(name, self.source)} import {name}" for name in homes]
        names = "".join(f"    {name!r},\n" for name in homes)
        return (
            f'"""The blocking twin of `{self.source}`, with the same names.\n\n'
            'Written by tools/twin.py from the names there; not to be edited.\n"""\n\n'
            f"{chr(10).join(lines)}\n\n__all__ = [\n{names}]\n"
        )

    def _homes(self, source: Source) -> dict[str, str]:
        """Return every exported name with its module."""
        found = {
            alias.asname or alias.name: node.module or ""
            for node, alias in source.imports()
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(self.source)
        }
        exported: list[str] = list(source.module.__all__)
        missing = {*exported} ^ {*found}
        if missing:
            raise RefusedError(f"{self.source}: imported or in __all__, not both: {missing}")
        return {name: found[name] for name in exported}


def with_pairs(rules: Rules, pairs: tuple[Pair, ...]) -> Rules:
    return replace(rules, pairs=rules.pairs + pairs)


def shared_bases(things: list[Any], root: str) -> list[type[Any]]:
    """Return the bases that several classes share and that are not among them, most basic last.

    They have a twin, too, so that inherited members are written once.
    """
    kinds = [one for one in things if isinstance(one, type)]
    below: dict[type[Any], set[type[Any]]] = {}
    for kind in kinds:
        for base in kind.__mro__[1:]:
            is_ours = base.__module__.startswith(root) and not base.__name__.startswith("_")
            if sum(not name.startswith("_") for name in vars(base)) < 2:
                # One method is written where it is inherited.
                continue
            if is_ours and base not in kinds and not is_shared(base):
                below.setdefault(base, set()).add(kind)
    # If two bases have the same subclasses, the nearer one is enough.
    return sorted(
        (
            base
            for base, those in below.items()
            if len(those) > 1
            and not any(
                issubclass(one, base) and one is not base and below[one] == those for one in below
            )
        ),
        key=lambda base: -len(base.__mro__),
    )
