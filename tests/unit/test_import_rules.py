"""The import rules: which package, and which folder of a package, may import which.

    errors ← protocol ← state ← log ← storage ← server
    errors ← protocol ← client ← recipes ← sync

`api` stands on client and passes it what comes from outside, such as randomness.
`layouts`, the names that recipes give their nodes, stands beside errors.
`upgrade` stands beside server: it writes the data folder that a server starts on. `history` reads
what servers and Apache's have written. `otel` observes clients, `monitor` asks servers for their
metrics, and `dashboard` is a client that a page asks. `cli` is on top of all. Client and server
never import each other, and nothing imports `testing` or `otel`.
Inside a package the folders have directions as well (FOLDERS), and no modules import each other
in a circle. An import counts wherever it stands: inside a function, under TYPE_CHECKING, or spelled
as a call of `import_module`. The pure packages use no clock, randomness, IO or logging.
"""

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

# Which of our packages each package may import, besides itself. A root module counts as a package:
# `paddock/__init__.py` is "", `paddock/errors.py` is "errors".
_BELOW_SERVER = {"errors", "protocol", "state", "log", "storage"}
_BELOW_SYNC = {"errors", "layouts", "protocol", "client", "recipes"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    # How recipes name their nodes.
    "layouts": set(),
    # Lazy imports of the root and of `testing`.
    "_first_use": set(),
    # The choice of an event loop, and of what computes checksums.
    "_loops": {"errors"},
    "_checksums": set(),
    "protocol": {"errors"},
    "state": {"errors", "protocol", "_checksums"},
    "log": {"errors", "_checksums"},
    "storage": {"errors", "protocol", "state", "log", "_checksums"},
    "server": _BELOW_SERVER,
    "upgrade": _BELOW_SERVER,
    "history": _BELOW_SERVER | {"upgrade", "layouts"},
    "client": {"errors", "protocol"},
    "recipes": {"errors", "layouts", "protocol", "client"},
    # Creates a client, with the randomness that it is given.
    "api": {"errors", "protocol", "client"},
    "sync": _BELOW_SYNC | {"api", "_loops"},
    # Spans and metrics of clients.
    "otel": {"errors", "client"},
    # Four-letter words, asked.
    "monitor": {"errors", "protocol", "client"},
    # A client of the service, in a process of its own, with a page.
    "dashboard": _BELOW_SERVER | _BELOW_SYNC | {"server", "upgrade", "history", "api", "monitor"},
    "cli": _BELOW_SERVER
    | _BELOW_SYNC
    | {"server", "upgrade", "history", "sync", "api", "monitor", "dashboard", "_loops"},
    "testing": _BELOW_SERVER
    | _BELOW_SYNC
    | {"server", "upgrade", "sync", "api", "cli", "_first_use"},
    "__main__": {"cli"},
    "": _BELOW_SYNC | {"sync", "api", "_first_use", "_loops"},
}

_IMPURE = {
    *("asyncio", "socket", "time", "random", "secrets", "logging", "threading", "os"),
    # Other ways to the same.
    *("_socket", "_thread", "_random", "posix", "selectors", "select", "subprocess", "uuid"),
    *("concurrent", "multiprocessing", "uvloop", "tempfile", "shutil"),
}
MAY_NOT_IMPORT: dict[str, set[str]] = {
    "errors": _IMPURE,
    "layouts": _IMPURE,
    "protocol": _IMPURE,
    "state": _IMPURE,
    "server": {"time", "random"},
    "client": {"time", "random"},
    "recipes": {"time", "random"},
}

# Which folders of its own package each folder may import.
FOLDERS: dict[str, dict[str, set[str]]] = {
    "log": {"etcd": set(), "file": set()},
    "storage": {"cluster": set(), "maintenance": {"cluster"}},
    "history": {"stories": set()},
    "server": {
        "config": set(),
        "journal": set(),
        "replication": {"journal"},
        "sessions": {"config", "replication"},
        "sasl": {"config"},
        "connections": {"config", "replication", "sasl", "sessions"},
        "tls": {"config", "connections"},
        "durability": {"config", "connections", "replication"},
        "cluster": {
            *("config", "connections", "durability", "journal", "replication", "sessions"),
        },
        "admin": {"config", "connections", "durability", "replication", "sessions"},
    },
    "client": {
        "requests": set(),
        "watches": set(),
        "session": {"requests", "watches"},
        "operations": {"requests", "session", "watches"},
    },
    "recipes": {
        "common": set(),
        "cache": {"common"},
        "values": {"common"},
        "locks": {"common"},
        "groups": {"common", "locks"},
        "queue": {"common", "locks"},
        "tasks": {"common", "locks"},
        "log_room": {"common", "locks"},
        "discovery": {"cache", "common"},
    },
    "sync": {"recipes": set()},
    "dashboard": {"coordination": set()},
    "testing": {"model": set(), "simulation": {"model"}},
    "cli": {
        "bench": set(),
        "cluster": {"run_under"},
        "demo": {"cluster"},
        "run_under": set(),
        "shell": set(),
        "transfer": set(),
        "past": set(),
        "commands": {"bench", "cluster", "demo", "past", "run_under", "shell", "transfer"},
    },
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


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def import_graph() -> dict[str, set[str]]:
    """Return the modules of ours that each module of ours imports."""
    files = {name_of(path): path for path in all_modules()}
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found = imported_names(ast.parse(path.read_text(encoding="utf-8")), package)
        # `paddock.state.tree` may be a module; `paddock.state.tree.Tree` is a name of one.
        modules = (one if one in files else one.rpartition(".")[0] for _, one in found)
        graph[name] = {one for one in modules if one in files and one not in (name, "paddock")}
    return graph


def part_of(module: str) -> str:
    """Return the folder, or the module, directly below a package that `module` belongs to."""
    return ".".join(module.split(".")[:3])


def between_parts(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the import graph of folders, and of modules beside them, inside each package."""
    parts: dict[str, set[str]] = {}
    for module, imported in graph.items():
        part = part_of(module)
        inside = {part_of(one) for one in imported if one.split(".")[1:2] == part.split(".")[1:2]}
        # A name of two components is a package itself.
        parts.setdefault(part, set()).update(
            one for one in inside if one != part and one.count(".") == 2
        )
    return parts


def circles(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Return the groups of nodes that reach each other (strongly connected components)."""
    remaining = {node: set(targets) for node, targets in graph.items()}
    found: set[frozenset[str]] = set()
    while True:
        try:
            TopologicalSorter(remaining).prepare()
        except CycleError as error:
            start = error.args[1][0]
            forwards, backwards = reach(remaining, start), reach(reverse(remaining), start)
            circle = frozenset(forwards & backwards)
            found.add(circle)
            for node in circle:
                remaining[node] -= circle
        else:
            return found


def reach(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Return all nodes that can be reached from `start`, and `start` itself."""
    seen, todo = {start}, [start]
    while todo:
        new = graph.get(todo.pop(), set()) - seen
        seen |= new
        todo.extend(new)
    return seen


def reverse(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    result: dict[str, set[str]] = {}
    for node, targets in graph.items():
        for target in targets:
            result.setdefault(target, set()).add(node)
    return result


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(import_graph()) == set()


def test_no_parts_of_a_package_import_each_other_in_a_circle() -> None:
    assert circles(between_parts(import_graph())) == set()


def test_folders_import_only_the_folders_that_they_may() -> None:
    wrong: set[frozenset[str]] = set()
    for part, imported in between_parts(import_graph()).items():
        package, *rest = part.removeprefix("paddock").lstrip(".").split(".")
        allowed = FOLDERS.get(package, {})
        if rest and rest[0] in allowed:
            others = {one for one in imported if one.rpartition(".")[2] in allowed}
            may = {f"paddock.{package}.{one}" for one in allowed[rest[0]]}
            wrong |= {frozenset({part, one}) for one in others - may}
    assert wrong == set()


def test_every_folder_has_a_rule() -> None:
    folders = {
        (one.parent.name, one.name)
        for one in (SOURCE / "paddock").glob("*/*")
        if (one / "__init__.py").exists()
    }
    assert folders == {(package, one) for package, ruled in FOLDERS.items() for one in ruled}


def test_the_architecture_page_has_every_folder_of_the_layered_packages() -> None:
    page = (SOURCE.parent / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"`(\w+/\w+)`", page))
    ruled = {f"{package}/{one}" for package, folders in FOLDERS.items() for one in folders}
    # A twin of `recipes`, and what only tests use.
    assert shown - {"src/paddock"} == ruled - {
        "sync/recipes",
        "testing/model",
        "testing/simulation",
    }


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(graph) == {frozenset("bc"), frozenset("de")}
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == set()
    imports = {"paddock.server.server": {"paddock.server.tls.ports"}, "paddock": set()}
    assert between_parts(imports) == {
        "paddock.server.server": {"paddock.server.tls"},
        "paddock": set(),
    }


@pytest.mark.parametrize("path", all_modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_imports_only_what_its_layer_may(path: Path) -> None:
    is_package = path.name == "__init__.py"
    source = path.read_text(encoding="utf-8")
    assert violations(name_of(path), source, is_package=is_package) == []


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
        # A package without a rule.
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
