"""What the modules that mypyc compiles may not do, because it does not work there.

They have no coroutine, and no generator that delegates to another one. What mypyc makes of `await`
and `yield from` passes an exception on by `throw(type, value, traceback)`, which Python deprecates
from 3.12 on: where warnings are errors, a cancelled wait raises DeprecationWarning in place of
CancelledError. One that is thrown into where it handles an exception may lose count of that
exception, and the interpreter with it. A method of theirs that is waited for returns a future.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.compiled import ROOT, compiled_modules

# Whatever else waits stands in a coroutine.
_WAITS = (ast.AsyncFunctionDef, ast.YieldFrom)


def waits_in(tree: ast.AST) -> Iterator[int]:
    """Yield the line of each coroutine and of each delegation."""
    return (node.lineno for node in ast.walk(tree) if isinstance(node, _WAITS))


@pytest.mark.parametrize("module", compiled_modules())
def test_no_compiled_module_has_a_coroutine(module: str) -> None:
    source = Path(ROOT, "src", *module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    assert not list(waits_in(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "async def it(): pass",
        "def it():\n  yield from others",
    ],
)
def test_each_of_them_is_seen(source: str) -> None:
    assert list(waits_in(ast.parse(source)))


ATTRIBUTES_MAX = 29
"""From the thirtieth on, CPython 3.11 keeps the attributes of an object in a dict of its own.

On plain Python each access then takes half as long again.
"""


class Classes:
    """The classes of the package, by module and name: two modules may have one of the same name."""

    def __init__(self) -> None:
        self._classes: dict[tuple[str, str], ast.ClassDef] = {}
        # Where a name of a module was imported from.
        self._imports: dict[tuple[str, str], tuple[str, str]] = {}
        for path in Path(ROOT, "src", "paddock").rglob("*.py"):
            module = ".".join(path.relative_to(Path(ROOT, "src")).with_suffix("").parts)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    self._classes[module, node.name] = node
                elif isinstance(node, ast.ImportFrom):
                    for one in node.names:
                        origin = (node.module or "", one.name)
                        self._imports[module, one.asname or one.name] = origin

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._classes)

    def attributes_of(self, module: str, name: str) -> set[str]:
        """Return what the methods of a class, and of those above it, give to its objects."""
        module, name = self._imports.get((module, name), (module, name))
        found = self._classes.get((module, name))
        if found is None:
            return set()
        stored = {
            node.attr
            for node in ast.walk(found)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        }
        for base in found.bases:
            if isinstance(base, ast.Name) and base.id != name:
                stored |= self.attributes_of(module, base.id)
        return stored


def test_no_object_has_so_many_attributes_that_they_become_slow() -> None:
    classes = Classes()
    counted = {one: len(classes.attributes_of(*one)) for one in classes}
    assert {one: count for one, count in counted.items() if count > ATTRIBUTES_MAX} == {}


def test_the_attributes_of_a_class_are_counted_with_those_of_its_own_base() -> None:
    """`log.etcd.proposals` has a class of the same name as the base of `Proposer`."""
    classes = Classes()
    of_another = classes.attributes_of("paddock.log.etcd.proposals", "Proposals")
    proposer = classes.attributes_of("paddock.server.replication.proposer", "Proposer")
    assert "in_flight" in proposer
    assert not of_another & proposer - {"_loop", "_log", "_number"}
    batch = classes.attributes_of("paddock.server.replication.proposals", "AwaitedOutcome")
    assert {"_outcome", "is_dirty"} <= batch
