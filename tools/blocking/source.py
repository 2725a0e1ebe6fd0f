"""The source of a module: its classes and functions, and the origin of its names."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, eq=False)
class Source:
    """The parsed source of a module."""

    name: str
    module: ModuleType
    lines: list[str]
    tree: ast.Module

    def found(self, name: str) -> ast.ClassDef | Function:
        """Return a class or a function by its name."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef | Function) and node.name == name:
                return node
        raise LookupError(f"{self.name} has no {name}")

    def imports(self) -> Iterator[tuple[ast.Import | ast.ImportFrom, ast.alias]]:
        """Return every imported name, also those that only a type checker imports."""
        for node in self.tree.body:
            for one in node.body if isinstance(node, ast.If) else [node]:
                if isinstance(one, ast.Import | ast.ImportFrom):
                    for alias in one.names:
                        yield one, alias

    def imported(self, name: str) -> tuple[ast.Import | ast.ImportFrom, ast.alias] | None:
        """Return the import that brings a name."""
        for node, alias in self.imports():
            if name == (alias.asname or alias.name):
                return node, alias
        return None

    def alias(self, name: str) -> tuple[Source, ast.expr] | None:
        """Return the expression of a type alias and the module that defines it, if it is one."""
        for node in self.tree.body:
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and node.target.id == name
                and ast.unparse(node.annotation).endswith("TypeAlias")
                and node.value is not None
            ):
                return self, node.value
        found = self.imported(name)
        if found is not None and isinstance(found[0], ast.ImportFrom):
            module = found[0].module or ""
            if module.partition(".")[0] == self.name.partition(".")[0]:
                return read(module).alias(found[1].name)
        return None


@functools.cache
def read(name: str) -> Source:
    """Read a module."""
    module = importlib.import_module(name)
    file = module.__file__
    assert file is not None, "it is a module with a source"
    # The source of a compiled module is beside it.
    path = Path(file)
    text = path.with_name(f"{path.name.partition('.')[0]}.py").read_text(encoding="utf-8")
    return Source(name, module, text.splitlines(), ast.parse(text))
