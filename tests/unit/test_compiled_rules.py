"""What the modules that mypyc compiles may not do, because it does not work there.

A compiled coroutine that is thrown into while it awaits, as one that is cancelled is, may lose
count of the exception that it handles, and the interpreter with it. So no coroutine of theirs
awaits in a place that handles exceptions: a `try`, or a `with`.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tools.compiled import ROOT, compiled_modules

_WAITS = (ast.Await, ast.AsyncFor, ast.AsyncWith)
_HANDLES = (ast.Try, ast.TryStar, ast.With, ast.AsyncWith)


def waits_where_exceptions_are_handled(tree: ast.AST) -> Iterator[int]:
    """Yield the line of each."""
    for node in ast.walk(tree):
        if isinstance(node, _HANDLES):
            yield from (one.lineno for one in ast.walk(node) if isinstance(one, _WAITS))


@pytest.mark.parametrize("module", compiled_modules())
def test_no_compiled_coroutine_waits_where_it_handles_exceptions(module: str) -> None:
    source = Path(ROOT, "src", *module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    assert not list(waits_where_exceptions_are_handled(ast.parse(source)))


@pytest.mark.parametrize(
    "body",
    [
        "try:\n  await it\n except OSError:\n  pass",
        "try:\n  pass\n finally:\n  await it",
        "with it:\n  await it",
        "async with it:\n  pass",
    ],
)
def test_each_of_them_is_seen(body: str) -> None:
    assert list(waits_where_exceptions_are_handled(ast.parse(f"async def it():\n {body}")))


ATTRIBUTES_MAX = 29
"""From the thirtieth on, CPython 3.11 keeps the attributes of an object in a dict of its own.

On plain Python each access then takes half as long again.
"""


def attributes_of(found: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> set[str]:
    """Return the attributes that the methods of a class, and of those above it, give to objects."""
    stored = {
        node.attr
        for node in ast.walk(found)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    for base in found.bases:
        if isinstance(base, ast.Name) and base.id in classes and base.id != found.name:
            stored |= attributes_of(classes[base.id], classes)
    return stored


def test_no_object_has_so_many_attributes_that_they_become_slow() -> None:
    classes = {
        found.name: found
        for path in Path(ROOT, "src", "paddock").rglob("*.py")
        for found in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(found, ast.ClassDef)
    }
    counted = {name: len(attributes_of(found, classes)) for name, found in classes.items()}
    assert {name: count for name, count in counted.items() if count > ATTRIBUTES_MAX} == {}
