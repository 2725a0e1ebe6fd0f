"""Who may import whom: the layering of the package, read from the source and not from what runs.

    errors ← protocol ← state ← log ← storage ← server
    errors ← protocol ← client ← recipes ← sync

`api` stands on client and hands it what it takes from outside, such as randomness.
`upgrade` stands beside server: it makes the data folder that a server starts on. `cli` sits on top
of all. Client and server never import each other, and nothing imports `testing`.
An import counts wherever it stands: inside a function, under TYPE_CHECKING, or spelled as a call
of `import_module`. The pure packages touch no clock, randomness, IO or logging.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

# What each package may import of ours, besides itself. The root modules are packages of their own
# here: `paddock/__init__.py` is "", `paddock/errors.py` is "errors".
_BELOW_SERVER = {"errors", "protocol", "state", "log", "storage"}
_BELOW_SYNC = {"errors", "protocol", "client", "recipes"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    # How the root and `testing` have their names.
    "_first_use": set(),
    # Which event loop there is.
    "_loops": {"errors"},
    "protocol": {"errors"},
    "state": {"errors", "protocol"},
    "log": {"errors"},
    "storage": {"errors", "protocol", "state", "log"},
    "server": _BELOW_SERVER,
    "upgrade": _BELOW_SERVER,
    "client": {"errors", "protocol"},
    "recipes": {"errors", "protocol", "client"},
    # What makes a client, with the randomness that it is given.
    "api": {"errors", "protocol", "client"},
    "sync": _BELOW_SYNC | {"api", "_loops"},
    "cli": _BELOW_SERVER | _BELOW_SYNC | {"server", "upgrade", "sync", "api", "_loops"},
    "testing": _BELOW_SERVER
    | _BELOW_SYNC
    | {"server", "upgrade", "sync", "api", "cli", "_first_use"},
    "__main__": {"cli"},
    "": _BELOW_SYNC | {"sync", "api", "_first_use", "_loops"},
}

_IMPURE = {
    *("asyncio", "socket", "time", "random", "secrets", "logging", "threading", "os"),
    # The same by other doors.
    *("_socket", "_thread", "_random", "posix", "selectors", "select", "subprocess", "uuid"),
    *("concurrent", "multiprocessing", "uvloop", "tempfile", "shutil"),
}
MAY_NOT_IMPORT: dict[str, set[str]] = {
    "errors": _IMPURE,
    "protocol": _IMPURE,
    "state": _IMPURE,
    "server": {"time", "random"},
    "client": {"time", "random"},
    "recipes": {"time", "random"},
}


def imported_names(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Yield line and full dotted name of each import in a module that lives in `package`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield node.lineno, alias.name
            case ast.ImportFrom():
                base = node.module or ""
                if node.level:
                    parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                    base = ".".join([*parents, base] if base else parents)
                # The name itself may be a module: `from paddock import server`.
                for alias in node.names:
                    yield node.lineno, f"{base}.{alias.name}"
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def violations(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Return one line for each import that `module`, with this source, may not make."""
    parts = module.split(".")
    layer = parts[1] if len(parts) > 1 else ""
    if layer not in MAY_IMPORT:
        return [f"{module}: the package {layer!r} has no rule; add it to MAY_IMPORT"]
    found = []
    package = module if is_package else module.rpartition(".")[0]
    for line, name in imported_names(ast.parse(source), package):
        top, *rest = name.split(".")
        if top == "paddock":
            # `from paddock import __version__` names no package of ours.
            target = rest[0] if rest and rest[0] in MAY_IMPORT else ""
            refused = target not in (MAY_IMPORT[layer] | {layer, ""})
        else:
            refused = top in MAY_NOT_IMPORT.get(layer, ())
        if refused:
            found.append(f"{module}:{line}: {layer or 'the root'} may not import {name}")
    return found


def all_modules() -> list[Path]:
    return sorted((SOURCE / "paddock").rglob("*.py"))


@pytest.mark.parametrize("path", all_modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_imports_only_what_its_layer_may(path: Path) -> None:
    is_package = path.name == "__init__.py"
    parts = path.relative_to(SOURCE).with_suffix("").parts
    module = ".".join(parts[:-1] if is_package else parts)
    assert violations(module, path.read_text(encoding="utf-8"), is_package=is_package) == []


def test_the_source_is_found() -> None:
    assert SOURCE / "paddock" / "__init__.py" in all_modules()


@pytest.mark.parametrize(
    ("module", "source"),
    [
        # Upwards along the first chain.
        ("paddock.errors", "import paddock.protocol"),
        ("paddock.protocol.jute", "from paddock.state import tree"),
        ("paddock.state.tree", "from paddock.log.file.file_log import FileLog"),
        ("paddock.log.file.file_log", "from paddock import server"),
        ("paddock.server.server", "import paddock.cli.main"),
        # Upwards along the second.
        ("paddock.protocol.jute", "import paddock.client"),
        ("paddock.client.client", "from paddock.recipes.locks.lock import Lock"),
        ("paddock.client.client", "from paddock.api import connect"),
        ("paddock.recipes.locks.lock", "import paddock.sync"),
        ("paddock.sync.portal", "import paddock.cli"),
        # Across.
        ("paddock.client.client", "from paddock.server.config.config import ServerConfig"),
        ("paddock.server.server", "from paddock.client import client"),
        ("paddock.client.client", "import paddock.state.machine"),
        ("paddock.recipes.locks.lock", "import paddock.log"),
        ("paddock.server.server", "import paddock.upgrade.source"),
        ("paddock.upgrade.source", "from paddock.server.config.config import ServerConfig"),
        # Nothing imports testing, not even the top.
        ("paddock.cli.main", "import paddock.testing"),
        ("paddock.server.server", "from paddock.testing.clock import VirtualClock"),
        ("paddock", "from paddock import testing"),
        ("paddock", "from paddock.server import server"),
        # However it is spelled.
        ("paddock.state.tree", "from ..log import file"),
        ("paddock.state.tree", "from .. import server"),
        ("paddock.state.tree", "def f():\n    import paddock.server"),
        ("paddock.state.tree", "if TYPE_CHECKING:\n    from paddock.log import Log"),
        ("paddock.state.tree", "importlib.import_module('paddock.server')"),
        ("paddock.state.tree", "x = import_module('time')"),
        ("paddock.state.tree", "try:\n    import time\nexcept ImportError:\n    pass"),
        # A package that nobody has given a rule.
        ("paddock.novelty.thing", "x = 1"),
        *[
            (f"paddock.{layer}.module", f"import {name}")
            for layer in ("protocol", "state")
            for name in sorted(_IMPURE)
        ],
        *[("paddock.errors", f"import {name}") for name in sorted(_IMPURE)],
        ("paddock.state.tree", "import os.path"),
        ("paddock.state.tree", "from os import path"),
        ("paddock.state.tree", "import asyncio.events as e"),
        *[
            (f"paddock.{layer}.module", f"from {name} import *")
            for layer in ("server", "client", "recipes")
            for name in ("time", "random")
        ],
    ],
)
def test_a_forbidden_import_is_noticed(module: str, source: str) -> None:
    assert violations(module, source)


def test_a_relative_import_in_a_package_itself_is_resolved_from_the_package() -> None:
    assert violations("paddock.state", "from ..server import config", is_package=True)
    assert not violations("paddock.state", "from .tree import Tree", is_package=True)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("paddock.protocol.jute", "import struct\nfrom paddock.errors import ProtocolError"),
        ("paddock.protocol.jute", "from paddock.protocol import records"),
        ("paddock.state.tree", "from .sessions import Session\nfrom ..protocol import paths"),
        ("paddock.storage.replay", "import os, time\nfrom paddock.state.entry import Entry"),
        ("paddock.server.server", "import asyncio, logging, os\nimport paddock.log.file.file_log"),
        ("paddock.recipes.locks.lock", "from paddock.client.client import Client"),
        ("paddock.upgrade.source", "from paddock.state.tree import Tree"),
        ("paddock.cli.commands.serve", "import time\nfrom paddock.server.server import Server"),
        ("paddock.testing.embedded", "from paddock.server.server import Server"),
        ("paddock.cli.main", "from paddock import __version__"),
        ("paddock.api", "import random\nfrom paddock.client.client import Client"),
        ("paddock.__main__", "from paddock.cli.main import main"),
    ],
)
def test_an_allowed_import_passes(module: str, source: str) -> None:
    assert violations(module, source) == []
