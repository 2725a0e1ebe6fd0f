"""Write the reference of the public API into docs/reference/api; the tests compare the two.

    python tools/reference.py            write the pages
    python tools/reference.py --check    list the pages that are not current

The text is in the docstrings and only there, as Markdown. This tool adds the order, signatures,
fields, members and codes. An indented paragraph of a docstring is an example, and the tests run
each of them. The tool is small on purpose: `inspect` knows our modules well enough.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib.util
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, ForwardRef

import paddock
from paddock import errors
from paddock.protocol.acl import OPEN
from paddock.sync.bridge import Twin

FOLDER: Final = Path(__file__).parents[1] / "docs" / "reference" / "api"

_WIDTH_MAX: Final = 88
# A paragraph of a docstring that is indented, as Markdown has code.
_EXAMPLE: Final = re.compile(r"(?<=\n\n) {4}.*\n(?:\n* {4}.*\n)*")
# Module prefixes in the representation of a type.
_MODULE: Final = re.compile(r"\b[a-z_]\w*(?:\.[a-z_]\w*)*\.(?=[A-Z])")
# What may be the name of an alias.
_ALIAS: Final = re.compile(r"\b[A-Z]\w*")
# Named defaults.
_NAMES: Final = {id(OPEN): "OPEN_ACL"}
# Modules that tools/twin.py generates.
_TWINS: Final = ("paddock.sync.client",)
# Methods for other parts of Paddock: of faults, grants and recipes.
_INNER: Final = (
    "FaultyServer.recent",
    "VirtualServer.recent",
    "Fault.takes",
    "Fault.hit",
    "Grant.deepen",
    "Grant.lost",
    "MultiGrant.lost",
    "PersistentNode.leave_soon",
    "ServiceRegistry.follow_cached",
    "ServiceRegistry.new_number",
    "ServiceRegistry.start_task",
)
# Classes with a public constructor; users get all others from a method.
_MADE_BY_USERS: Final = (
    "EmbeddedServer",
    "ServerThread",
    "ServerProcess",
    "FaultProxy",
    "FaultyServer",
    "VirtualServer",
    "VirtualTime",
    "SaslCredentials",
    "KerberosCredentials",
)


@dataclass(frozen=True, slots=True)
class Section:
    """Some names, below the docstring of a module."""

    heading: str
    names: tuple[str, ...]
    module: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The parts of a module that are on a page, section by section."""

    name: str
    title: str
    module: str
    sections: tuple[Section, ...]

    def names(self) -> list[str]:
        return [name for section in self.sections for name in section.names]

    def text(self) -> str:
        module = importlib.import_module(self.module)
        parts = [f"# {self.title}", _text(module)]
        # The members described so far: members that classes share are described once.
        seen: dict[Any, str] = {}
        for section in self.sections:
            parts.append(f"## {section.heading}")
            if section.module is not None:
                parts.append(_text(importlib.import_module(section.module)))
            for name in section.names:
                parts += [f"### {name}", *_described(name, getattr(module, name), seen)]
        return _page(parts)


def _recipes() -> Page:
    """Return the page of the recipes: one section per module, with the module's own title."""
    package = importlib.import_module("paddock.recipes")
    twins = importlib.import_module("paddock.sync.recipes")
    found: dict[str, list[str]] = {}
    for name in package.__all__:
        found.setdefault(_home(package, name), []).append(name)
    sections, records = [], []
    for home, names in sorted(found.items(), key=lambda one: _last(one[0])):
        if all(getattr(twins, name) is getattr(package, name) for name in names):
            # A class without a twin is no recipe, but a record that recipes return.
            records += names
            continue
        heading = (importlib.import_module(home).__doc__ or "").partition(":")[0]
        sections.append(Section(heading, tuple(names), home))
    sections.append(Section("What they give", tuple(records)))
    return Page("recipes", "Recipes", "paddock.recipes", tuple(sections))


def _last(home: str) -> str:
    return home.rpartition(".")[2]


def _home(package: ModuleType, name: str) -> str:
    """Return the module from which a package imports a name."""
    tree = ast.parse(inspect.getsource(package))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and name in [one.name for one in node.names]:
            return node.module or ""
    raise LookupError(f"{package.__name__} does not import {name}")


PAGES: Final = (
    Page(
        "client",
        "The client",
        "paddock",
        (
            Section("Connecting", ("connect", "run", "Randomness")),
            Section("Programs", ("run_in_sessions",), "paddock.client.sessions"),
            Section("Calls", ("Client",), "paddock.client.client"),
            Section("What calls give", ("NodeData", "Children", "Created", "Stat")),
            Section("Transactions", ("Transaction",), "paddock.client.transaction"),
            Section("Several reads at once", ("MultiRead", "Reading"), "paddock.client.multiread"),
            Section("Streams", ("Change",), "paddock.client.operations.streams"),
            Section("Change feeds", ("FeedChange", "FeedKind"), "paddock.client.operations.feeds"),
            Section("Walks", ("WalkedNode",)),
            Section("Watchers", ("Watcher", "Event", "EventType", "WatchKind")),
            Section(
                "The session",
                ("SessionState", "StateListener", "SaslCredentials", "KerberosCredentials"),
            ),
            Section(
                "Access control",
                (
                    "ACL",
                    "Identity",
                    "Permission",
                    "OPEN_ACL",
                    "READ_ONLY_ACL",
                    "CREATOR_ALL_ACL",
                    "digest_acl",
                    "ip_acl",
                    "world_acl",
                ),
                "paddock.client.access",
            ),
        ),
    ),
    Page(
        "sync",
        "The blocking client",
        "paddock.sync",
        (
            Section("Connecting", ("connect", "timeout")),
            Section("Programs", ("run_in_sessions",), "paddock.sync.sessions"),
            Section("Calls", ("Client", "Transaction", "MultiRead")),
            Section("What they give", ("Stream", "Scope")),
        ),
    ),
    Page(
        "testing",
        "Testing",
        "paddock.testing",
        (
            Section(
                "A server to be broken", ("FaultyServer", "Partition"), "paddock.testing.faulty"
            ),
            Section(
                "Servers", ("EmbeddedServer", "ServerThread", "ServerProcess", "ServerProcessError")
            ),
            Section(
                "Faults", ("FaultProxy", "Trigger", "Fault", "Direction"), "paddock.testing.proxy"
            ),
            Section("What came by", ("Seen", "SeenRequest", "SeenReply", "SeenEvent")),
            Section(
                "Every cut",
                ("at_every_cut", "at_every_cut_blocking", "cut_points", "CutPoint", "Cut"),
                "paddock.testing.cuts",
            ),
            Section(
                "The end of a session",
                ("expire_session", "expire_session_blocking", "SessionLivesError"),
                "paddock.testing.expiry",
            ),
            Section(
                "Virtual time",
                (
                    "run_virtually",
                    "in_virtual_time",
                    "VirtualServer",
                    "VirtualTime",
                    "VirtualClockLoop",
                ),
                "paddock.testing.clock",
            ),
        ),
    ),
    Page(
        "simulation",
        "Simulated worlds",
        "paddock.testing.simulation",
        (
            Section("Tests", ("simulated", "Faults", "WorldFailedError", "SimulationError")),
            Section("The world", ("SimulatedWorld", "ProcessHandle", "Write")),
        ),
    ),
    _recipes(),
)


# Names that have a heading.
_EXPORTED: Final = frozenset(name for page in PAGES for name in page.names())


def pages() -> dict[Path, str]:
    """Return the text of each file."""
    written = {FOLDER / f"{page.name}.md": page.text() for page in PAGES}
    return {**written, FOLDER / "errors.md": _errors_text()}


def _described(name: str, thing: Any, seen: dict[Any, str]) -> list[str]:
    if inspect.isfunction(thing):
        return [_code(_signature(name, thing)), _text(thing)]
    if not inspect.isclass(thing):
        return [_code(f"{name} = {_plain(thing)}".replace("'", '"'))]
    parts = [_text(thing)]
    if issubclass(thing, enum.Enum):
        values = [f"| `{name}` | {one.value} |" for name, one in thing.__members__.items()]
        parts.append("\n".join(["| | |", "|---|---|", *values]))
    elif fields := _fields(thing):
        parts.insert(0, _code("\n".join(f"{one}: {kind}" for one, kind in fields.items())))
    elif _is_made_by_users(thing):
        parts.insert(0, _code(_signature(name, thing.__init__)))
    members = {member: _member(member, value) for member, value in _members(thing).items()}
    if thing.__module__ in _TWINS:
        # The originals describe what these do.
        link = f"[{name}](client.md#{name.lower()})"
        return [
            f"As {link}, with results where that has futures.",
            _code("\n".join(members.values())),
        ]
    shared: dict[str, list[str]] = {}
    for member, line in members.items():
        described = getattr(thing, member, None) or _attributes(thing)[member]
        other = seen.setdefault(described, name)
        if other != name:
            shared.setdefault(other, []).append(line)
        else:
            parts += [f"#### {name}.{member}", _code(line), _text(described)]
    for other, lines in shared.items():
        parts += [f"And as [{other}](#{other.lower()}):", _code("\n".join(lines))]
    described_bases = [one.__name__ for one in thing.__mro__[1:] if one.__name__ in seen.values()]
    for base in described_bases[:1]:
        parts.append(f"It is a [{base}](#{base.lower()}), and has all that this has.")
    return parts


def _is_made_by_users(kind: type[Any]) -> bool:
    """Return whether users construct a class themselves, as they do every recipe.

    Then its blocking twin has a constructor, too.
    """
    twin = _twin(kind)
    return kind.__name__ in _MADE_BY_USERS or (
        twin is not None
        and kind.__module__.startswith("paddock.recipes.")
        and any(
            "__init__" in vars(one)
            for one in twin.__mro__
            if one.__module__.startswith("paddock.sync.recipes.")
        )
    )


def _twin(kind: type[Any]) -> type[Any] | None:
    """Return the blocking twin of a class, if it has one."""
    for home in ("paddock.sync", "paddock.sync.recipes"):
        twin = getattr(importlib.import_module(home), kind.__name__, None)
        if inspect.isclass(twin) and issubclass(twin, Twin) and twin is not kind:
            return twin
    return None


def _member(name: str, value: Any) -> str:
    if not isinstance(value, property):
        return _signature(name, value)
    kind = inspect.signature(value.fget).return_annotation  # type: ignore[arg-type]
    return f"{name}: {_plain(kind)}"


def _members(kind: type[Any]) -> dict[str, Any]:
    """Return the public methods and properties that a class itself defines, in their order.

    Members without a docstring are for other parts of Paddock. Members that a base class has as
    well are described there, unless the base class is hidden.
    """
    hidden = [base for base in kind.__mro__[1:] if _is_hidden(base)]
    return _attributes(kind) | {
        name: value
        for one in [kind, *hidden]
        for name, value in vars(one).items()
        if not (name.startswith("_") or f"{kind.__name__}.{name}" in _INNER)
        and (isinstance(value, property) or inspect.isfunction(value))
        and value.__doc__
        and not any(hasattr(base, name) for base in kind.__bases__ if base not in hidden)
    }


def _attributes(kind: type[Any]) -> dict[str, property]:
    """Return the public attributes of a class, which are properties in its blocking twin."""
    twin = _twin(kind)
    return {
        name: value
        for one in (() if twin is None else twin.__mro__)
        for name, value in vars(one).items()
        if isinstance(value, property) and not hasattr(kind, name)
    }


def _is_hidden(kind: type[Any]) -> bool:
    if not kind.__module__.startswith("paddock."):
        return False
    home = importlib.import_module(".".join(kind.__module__.split(".")[:2]))
    exported = {*getattr(home, "__all__", ()), *paddock.__all__}
    return kind.__name__ not in exported


def _fields(kind: type[Any]) -> dict[str, str]:
    """Return the fields of a record, each with its type and its default."""
    if dataclasses.is_dataclass(kind):
        return {
            one.name: _plain(one.type)
            + ("" if one.default is dataclasses.MISSING else f" = {_value(one.default)}")
            for one in dataclasses.fields(kind)
            if not one.name.startswith("_")
        }
    if issubclass(kind, tuple):
        return {name: _plain(of) for name, of in inspect.get_annotations(kind).items()}
    return {}


# Errors have a table.


def _errors_text() -> str:
    table = ["| error | code | it says | what it means |", "|---|---|---|---|"]
    for depth, kind in _errors(errors.PaddockError):
        own = vars(kind)
        # With a place of its own, for links from the types of signatures.
        name = f'{"&emsp;" * depth}<span id="{kind.__name__.lower()}">{kind.__name__}</span>'
        told = " ".join(_text(kind).split())
        table.append(f"| {name} | {own.get('code', '')} | {own.get('meaning', '')} | {told} |")
    return _page(["# Errors", _text(errors), "## All of them", "\n".join(table)])


def _errors(kind: type[Any], depth: int = 0) -> Iterator[tuple[int, type[Any]]]:
    """Return every error of the module, each before its subclasses."""
    yield depth, kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _errors(child, depth + 1)


# Formatting.


def _page(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _text(thing: Any) -> str:
    """Return a docstring, with its examples as code blocks."""
    text = inspect.cleandoc(thing.__doc__ or "")
    return _EXAMPLE.sub(
        lambda found: f"```python\n{textwrap.dedent(found[0])}```\n", f"\n\n{text}\n"
    ).strip()


def examples(thing: Any) -> list[str]:
    """Return the examples of a docstring."""
    text = inspect.cleandoc(thing.__doc__ or "")
    return [textwrap.dedent(found) for found in _EXAMPLE.findall(f"\n\n{text}\n")]


def _code(text: str) -> str:
    # Not "python": those blocks run in tests.
    return f"```py\n{text}\n```"


def _signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    parameters: list[str] = []
    for one in signature.parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        text = f"*{one.name}" if one.kind is one.VAR_POSITIONAL else one.name
        if one.annotation is not one.empty:
            text += f": {_expanded(_plain(one.annotation), function)}"
        if one.default is not one.empty:
            text += f" = {_NAMES.get(id(one.default)) or _value(one.default)}"
        parameters.append(text)
    start = ("async " if inspect.iscoroutinefunction(function) else "") + f"{name}("
    end = ")" if function.__name__ == "__init__" else f") -> {_result(function)}"
    line = start + ", ".join(parameters) + end
    if len(line) <= _WIDTH_MAX:
        return line
    return "\n".join([start, *(f"    {one}," for one in parameters), end])


def _expanded(annotation: str, function: Any) -> str:
    """Return a type with the aliases that users cannot import written out."""

    def written_out(found: re.Match[str]) -> str:
        meant = function.__globals__.get(found[0])
        is_alias = not inspect.isclass(meant) and hasattr(meant, "__args__")
        return _plain(meant) if is_alias and found[0] not in _EXPORTED else found[0]

    return _ALIAS.sub(written_out, annotation)


def _result(function: Any) -> str:
    result = _expanded(_plain(inspect.signature(function).return_annotation), function)
    # The decorator has changed the type of the generator.
    wrapped = getattr(function, "__wrapped__", None)
    if inspect.isasyncgenfunction(wrapped):
        return result.replace("AsyncIterator", "AbstractAsyncContextManager", 1)
    if inspect.isgeneratorfunction(wrapped):
        return result.replace("Iterator", "AbstractContextManager", 1)
    return result


def _plain(kind: Any) -> str:
    """Return a type as it is written in code that has imported it."""
    if isinstance(kind, str):
        return kind
    if isinstance(kind, ForwardRef):
        return kind.__forward_arg__
    if inspect.isclass(kind) and not hasattr(kind, "__args__"):
        return kind.__name__
    return _MODULE.sub("", str(kind)).replace("NoneType", "None")


def _value(value: object) -> str:
    """Return a default as it is written in code."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple) and value:
        return f"({', '.join(map(_value, value))})"
    if inspect.isroutine(value):
        return "..."
    text = repr(value)
    return text.replace("'", '"') if isinstance(value, str | bytes) else text


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    FOLDER.mkdir(exist_ok=True)
    stale = {path: text for path, text in pages().items() if _present(path) != text}
    for path, text in stale.items():
        if is_check:
            print(f"{path}: not as tools/reference.py would write it")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and is_check else 0


def _present(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
