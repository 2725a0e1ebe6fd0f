"""What `import paddock` gives: every public name, typed, and nothing before it is used."""

from __future__ import annotations

import ast
import asyncio
import inspect
import random
import subprocess
import sys
from pathlib import Path

import pytest

import paddock
from paddock import errors

SOURCE = Path(inspect.getfile(paddock))


@pytest.mark.parametrize("name", paddock.__all__)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(paddock, name) is not None
    assert name in dir(paddock)


def test_every_error_is_public() -> None:
    classes = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert classes <= {*paddock.__all__}


def test_what_type_checkers_see_is_what_there_is() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {*seen, "__version__"} == {*paddock.__all__}
    for name, module in seen.items():
        __import__(str(module))
        assert getattr(sys.modules[str(module)], name) is getattr(paddock, name)
    assert (SOURCE.parent / "py.typed").exists()


def test_the_blocking_client_needs_no_import_of_its_own() -> None:
    check = "import paddock; print(paddock.sync.connect.__module__)"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert run.stdout == "paddock.sync.api\n", run.stderr


def test_what_the_package_imports_for_itself_is_not_offered() -> None:
    offered = {name for name in dir(paddock) if not name.startswith("__")}
    assert offered == {*paddock.__all__} - {"__version__"}


def test_what_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'paddock' has no attribute 'Connect'"):
        _ = paddock.Connect  # type: ignore[attr-defined]


def test_importing_the_package_loads_neither_asyncio_nor_the_client() -> None:
    check = (
        "import sys, paddock; print(*sorted(sys.modules));"
        "paddock.NoNodeError; assert 'asyncio' not in sys.modules, 'errors are light'"
    )
    run = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = run.stdout.split()
    assert "paddock" in loaded
    assert not {"asyncio", "random", "ssl"} & {*loaded}
    assert [one for one in loaded if one.startswith("paddock.")] == ["paddock._first_use"]


def test_a_client_has_the_systems_randomness_unless_it_is_given_another() -> None:
    async def main() -> None:
        seeded = random.Random(1)
        assert paddock.connect("localhost", random=seeded)._random is seeded
        assert isinstance(paddock.connect("localhost")._random, random.SystemRandom)

    asyncio.run(main())
