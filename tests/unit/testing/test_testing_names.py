"""What `paddock.testing` gives: every public name, typed, from where it says."""

from __future__ import annotations

import ast
import inspect
import sys
from importlib import import_module
from pathlib import Path

import pytest

from paddock import testing


@pytest.mark.parametrize("name", testing.__all__)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(testing, name) is not None
    assert name in dir(testing)


def test_what_type_checkers_see_is_what_there_is() -> None:
    tree = ast.parse(Path(inspect.getfile(testing)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {*seen} == {*testing.__all__}
    for name, module in seen.items():
        import_module(module)
        assert getattr(sys.modules[module], name) is getattr(testing, name)


def test_what_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"'paddock\.testing' has no attribute 'Proxy'"):
        _ = testing.Proxy  # type: ignore[attr-defined]
