"""What our code may not use, because not every release of a Python that we support has it right.

Whoever has Python 3.11 may have 3.11.2, as on Debian 12, and gets no other. Two rules:

* No expression repeats more than one character possessively: `re` is wrong about that in all of
  3.11, up to 3.12.7 and in 3.13.0 (`tests.support.expressions`). Every expression has to be seen,
  so `re` is only called directly, with something that can be evaluated here.
* Nothing of the standard library is used that came with a later release than the first of its
  Python. The documentation of a newer Python does not say so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from paddock.server.config import parsers
from tests.support.expressions import repeats_group_possessively
from tests.unit.test_import_rules import all_modules, name_of
from tools.blocking import words

ROOT = Path(__file__).parents[2]

# What takes an expression as its first argument, and what else there is of `re`.
_TAKE_PATTERNS = {
    *("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"),
}
_OTHERS = {
    *("Pattern", "Match", "error", "escape", "purge"),
    *("ASCII", "DOTALL", "IGNORECASE", "MULTILINE", "VERBOSE", "RegexFlag"),
}
# Its parts, and other modules that do what it does.
_MODULES = {"re", "regex", "_sre", "sre_compile", "sre_parse", "sre_constants"}
# Functions of ours that pass an expression on, and where they take it.
_PASS_ON = {parsers.words: 2, parsers._matching: 0}

# Expressions of each module that cannot be seen where they are used, and why that is fine.
SEEN_ELSEWHERE = {
    ("paddock.server.config.parsers", "pattern"): "see _PASS_ON, and words without any sign",
    ("paddock.server.sasl.local_names", "pattern"): "a user's, which is refused at the start",
    ("paddock.cli.commands.find", "text"): "a user's, which is refused",
    ("paddock.cli.commands.find", "os.fsencode(text)"): "the same in bytes",
    ("paddock.recipes.locks.line", '''rf"(?P<kind>{'|'.join(map(re.escape, kinds))}){NUMBER}"'''): (
        "words without any sign"
    ),
    ("paddock.cli.shell.help", r'''rf"-{flag.name}\b"'''): "a letter",
    ("tools.blocking.words", r"""pattern.replace(" ", r"\s+")"""): "see the test of them",
    ("bench.callgrind", "f'^desc: Trigger: --dump-before={MARK}$'"): "the name of a function",
}


# The same, however they are written.
_SEEN_ELSEWHERE = {
    (module, ast.dump(ast.parse(expression, mode="eval").body))
    for module, expression in SEEN_ELSEWHERE
}


class _NoValueError(Exception):
    """An expression of Python has no value outside of its function."""


def _value_of(node: ast.expr, names: Mapping[str, Any]) -> Any:
    try:
        return eval(compile(ast.Expression(node), "", "eval"), {}, dict(names))
    except (NameError, AttributeError, TypeError) as error:
        raise _NoValueError from error


_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def _bound_in(function: ast.AST) -> set[str]:
    """Return the names that a function gives a value, as arguments or otherwise."""
    return {
        node.arg if isinstance(node, ast.arg) else node.id
        for node in ast.walk(function)
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and _is_stored(node))
    }


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _calls(tree: ast.AST, hidden: frozenset[str]) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Yield every node, with the names that have another value there than in the module."""
    for node in ast.iter_child_nodes(tree):
        inside = hidden
        if isinstance(node, _SCOPES):
            inside = hidden | _bound_in(node)
        yield node, inside
        yield from _calls(node, inside)


def wrong_expressions(module: str, source: str, names: Mapping[str, Any]) -> list[str]:
    """Return a line for each expression that is not matched rightly everywhere, or not seen."""
    tree = ast.parse(source)
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    looked_into = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found = []
    for node, hidden in _calls(tree, frozenset()):
        match node:
            case ast.Import():
                if any(_is_hidden(one) for one in node.names):
                    found.append(f"{module}:{node.lineno}: `re` has another name")
            case ast.ImportFrom(module=str(name)) if name.split(".")[0] in _MODULES:
                found.append(f"{module}:{node.lineno}: a part of `re` is imported")
            case ast.Name(id="re") if node not in looked_into:
                found.append(f"{module}:{node.lineno}: `re` is passed on")
            case ast.Attribute(value=ast.Name(id="re"), attr=attr) if attr not in _OTHERS:
                if attr not in _TAKE_PATTERNS or node not in called:
                    found.append(f"{module}:{node.lineno}: re.{attr} is not called directly")
            case ast.Call():
                known = {name: value for name, value in names.items() if name not in hidden}
                pattern = _pattern_of(node, known)
                if pattern is not None:
                    flaw = _flaw(module, pattern, node, known)
                    if flaw:
                        found.append(f"{module}:{node.lineno}: {ast.unparse(pattern)} {flaw}")
    return found


def _is_hidden(imported: ast.alias) -> bool:
    """Return whether an import gives `re` a name by which it is not found here."""
    is_plain = imported.name == "re" and imported.asname is None
    return imported.name.split(".")[0] in _MODULES and not is_plain


def _pattern_of(call: ast.Call, names: Mapping[str, Any]) -> ast.expr | None:
    """Return what a call takes as an expression, if it takes one."""
    place: int | None = None
    match call.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=attr) if attr in _TAKE_PATTERNS:
            place = 0
        case ast.Name(id=name) if callable(names.get(name)):
            place = next((at for one, at in _PASS_ON.items() if one is names[name]), None)
    if place is None:
        return None
    if place < len(call.args):
        return call.args[place]
    return next((one.value for one in call.keywords if one.arg == "pattern"), ast.Constant(None))


def _flaw(module: str, node: ast.expr, call: ast.Call, names: Mapping[str, Any]) -> str:
    if (module, ast.dump(node)) in _SEEN_ELSEWHERE:
        return ""
    if isinstance(node, ast.Starred):
        return "cannot be seen here"
    try:
        pattern = _value_of(node, names)
    except _NoValueError:
        return "cannot be seen here"
    if isinstance(pattern, re.Pattern):
        # It is seen where it is compiled.
        return ""
    if not isinstance(pattern, str | bytes):
        return "is no expression"
    try:
        is_wrong = repeats_group_possessively(pattern, _flags_of(call, node, names))
    except (re.error, _NoValueError) as error:
        return f"cannot be parsed here: {error}"
    return "repeats more than one character possessively" if is_wrong else ""


def _flags_of(call: ast.Call, pattern: ast.expr, names: Mapping[str, Any]) -> int:
    flags = 0
    named = [("", one) for one in call.args] + [(one.arg, one.value) for one in call.keywords]
    for name, node in named:
        if node is not pattern and (name == "flags" or "re." in ast.unparse(node)):
            value = _value_of(node, {**names, "re": re})
            flags |= value if isinstance(value, re.RegexFlag) else 0
    return flags


def files_of(*folders: str) -> list[Path]:
    return sorted(path for name in folders for path in (ROOT / name).rglob("*.py"))


def modules_with_expressions() -> list[Path]:
    mention = re.compile(
        rf"\b(?:{'|'.join(_MODULES)}|{'|'.join(one.__name__ for one in _PASS_ON)})\b"
    )
    return [path for path in all_modules() if mention.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", modules_with_expressions(), ids=name_of)
def test_every_expression_is_matched_alike_by_every_release(path: Path) -> None:
    module = name_of(path)
    names = vars(import_module(module))
    assert wrong_expressions(module, path.read_text(encoding="utf-8"), names) == []


def test_every_expression_of_our_tools_is_matched_alike_by_every_release() -> None:
    for path in files_of("tools", "bench"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        # They are not imported here, so that a constant cannot be seen.
        assert wrong_expressions(module, path.read_text(encoding="utf-8"), {}) == []
    assert not [pattern for pattern, _ in words._WORDS if repeats_group_possessively(pattern)]


def test_all_that_is_seen_elsewhere_is_there() -> None:
    """Nobody keeps an exception that is needed no more."""
    for module, expression in _SEEN_ELSEWHERE:
        folder = ROOT / "src" if module.startswith("paddock.") else ROOT
        source = folder.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        calls = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Call)]
        assert expression in {ast.dump(one.args[0]) for one in calls if one.args}, module


_PART = "(?:ab?c)*+"


@pytest.mark.parametrize(
    "source",
    [
        "x = re.compile('(?:ab?c)*+')",
        "x = re.compile(rb'((a)|b)++')",
        "x = re.compile('(?:ab){2}' + '+c')",
        "x = re.compile(PART)",
        "x = re.compile(f'a{PART}')",
        "x = re.compile('%s' % PART)",
        "x = re.compile(pattern='(ab)?+')",
        "x = re.compile('(ab) *+', re.VERBOSE)",
        "x = re.compile('(ab) *+', flags=re.VERBOSE | re.ASCII)",
        "def f(text): return re.sub('(ab)*+', '', text)",
        "async def f(): return [re.search('(ab)*+', one) for one in x]",
        "class A:\n x = re.compile('a(?:(b)*+|c)')",
        "x = words('some', 'NAMES', '(ab)*+')",
        # What is not seen.
        "def f(part): return re.compile(f'a{part}')",
        "def f(pattern): return re.compile(pattern)",
        "def f(PART): return re.compile(PART)",
        "def f():\n PART = g()\n return re.compile(PART)",
        "x = [re.compile(PART) for PART in y]",
        "x = re.compile(g())",
        "x = re.compile('|'.join(y))",
        "x = re.compile(*y)",
        "x = words('some', 'NAMES', g())",
        "def f(flags): return re.compile('a', flags=flags)",
        "x = map(re.compile, y)",
        "x = re.template('a')",
        "x = getattr(re, 'compile')('(ab)*+')",
        "from re import compile",
        "import re as expressions",
        "import regex",
        "import sre_compile",
    ],
)
def test_a_wrong_or_hidden_expression_is_noticed(source: str) -> None:
    names = {"re": re, "PART": _PART, "words": parsers.words}
    assert wrong_expressions("paddock.state.tree", source, names)


@pytest.mark.parametrize(
    "source",
    [
        "x = re.compile('[^/]*+(?:/[^/]*+)?')",
        "x = re.compile('(?>(?:ab?c)*)')",
        "x = re.compile('(?:a)*+ ++')",
        "x = re.compile(f'{ONE}*+')",
        "def f(text): return re.sub('a', lambda found: found[0], text, flags=re.ASCII)",
        "def f(text): return SEEN.match(text)",
        "def f(): return re.sub(SEEN, '', 'a')",
        "def f(error: re.error) -> re.Pattern[str]: raise error",
        "x = words('some', 'NAMES', 'a*+')",
        "import re",
    ],
)
def test_a_right_expression_passes(source: str) -> None:
    names = {"re": re, "ONE": "[ab]", "SEEN": re.compile("a"), "words": parsers.words}
    assert wrong_expressions("paddock.state.tree", source, names) == []


# What came with which release after the first of its Python, by the documentation and the changes
# of each. First names, then arguments, then attributes of objects.
LATE_NAMES = {
    "errno.ENOTCAPABLE": "3.11.1",
    **dict.fromkeys(
        [
            *("tarfile.data_filter", "tarfile.tar_filter", "tarfile.fully_trusted_filter"),
            *("tarfile.FilterError", "tarfile.AbsolutePathError", "tarfile.AbsoluteLinkError"),
            *("tarfile.OutsideDestinationError", "tarfile.LinkOutsideDestinationError"),
            "tarfile.SpecialFileError",
        ],
        "3.11.4",
    ),
    "enum.pickle_by_global_name": "3.11.5",
    "enum.pickle_by_enum_name": "3.11.5",
    "email.utils.supports_strict_parsing": "3.11.10",
    "email.errors.HeaderWriteError": "3.11.10",
    "tarfile.LinkFallbackError": "3.11.13",
    "os.path.ALLOW_MISSING": "3.11.13",
    "os.PIDFD_NONBLOCK": "3.12.9",
    "importlib.resources.Anchor": "3.12.10",
}
LATE_ARGUMENTS = {
    **dict.fromkeys([(name, "filter") for name in ("extract", "extractall")], "3.11.4"),
    ("unpack_archive", "filter"): "3.11.4",
    ("parseaddr", "strict"): "3.11.10",
    ("getaddresses", "strict"): "3.11.10",
    ("HTMLParser", "scripting"): "3.13.10",
}
LATE_ATTRIBUTES = {
    "extraction_filter": "3.11.4",
    "GetReparseDeferralEnabled": "3.11.9",
    "SetReparseDeferralEnabled": "3.11.9",
    "verify_generated_headers": "3.11.10",
    **dict.fromkeys(
        [
            *("SetAllocTrackerActivationThreshold", "SetAllocTrackerMaximumAmplification"),
            *("SetBillionLaughsAttackProtectionActivationThreshold",),
            *("SetBillionLaughsAttackProtectionMaximumAmplification",),
        ],
        "3.12.13",
    ),
}


# Few files have one of these words, and only those are parsed.
_LATE_WORDS = re.compile(
    "|".join(
        rf"\b{word}\b"
        for word in [
            *(name.rpartition(".")[2] for name in LATE_NAMES),
            *(called for called, _ in LATE_ARGUMENTS),
            *LATE_ATTRIBUTES,
        ]
    )
)


def late_uses(source: str) -> list[str]:
    """Return a line for each use of what came too late."""
    if not _LATE_WORDS.search(source):
        return []
    tree = ast.parse(source)
    # The full names of what is imported.
    imported: dict[str, str] = {}
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                # `import os.path` gives a name to `os`.
                for one in node.names:
                    first = one.name.partition(".")[0]
                    imported[one.asname or first] = one.name if one.asname else first
            case ast.ImportFrom(module=str(module)):
                for one in node.names:
                    imported[one.asname or one.name] = name = f"{module}.{one.name}"
                    found += _late(node, name, LATE_NAMES.get(name))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute():
                found += _late(node, node.attr, LATE_ATTRIBUTES.get(node.attr))
                name = _full_name(node, imported)
                found += _late(node, name, LATE_NAMES.get(name))
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
                for keyword in node.keywords:
                    use = (called, keyword.arg or "")
                    found += _late(node, "{}({}=…)".format(*use), LATE_ARGUMENTS.get(use))
    return found


def _full_name(node: ast.expr, imported: Mapping[str, str]) -> str:
    """Return the name that something has wherever it is imported; "" if it has none."""
    match node:
        case ast.Name(id=name):
            return imported.get(name, "")
        case ast.Attribute(value=value, attr=attr):
            above = _full_name(value, imported)
            return f"{above}.{attr}" if above else ""
    return ""


def _late(node: ast.stmt | ast.expr, name: str, release: str | None) -> list[str]:
    return [] if release is None else [f"line {node.lineno}: {name} came with {release}"]


@pytest.mark.parametrize("folder", ["src", "tools", "bench", "tests", "examples", "packaging"])
def test_nothing_is_used_that_came_with_a_later_release_of_a_python(folder: str) -> None:
    late = {
        str(path.relative_to(ROOT)): late_uses(path.read_text("utf-8")) for path in files_of(folder)
    }
    assert {path: uses for path, uses in late.items() if uses} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import tarfile\nx = tarfile.data_filter",
        "import tarfile as t\nx = t.data_filter",
        "from tarfile import data_filter",
        "from tarfile import FilterError as Refused",
        "import os\nx = os.path.realpath(y, strict=os.path.ALLOW_MISSING)",
        "from os import path\nx = path.ALLOW_MISSING",
        "import os.path\nx = os.path.ALLOW_MISSING",
        "def f():\n import errno\n return errno.ENOTCAPABLE",
        "archive.extract(member, folder, filter='data')",
        "tarfile.open(x).extractall(filter='data')",
        "from shutil import unpack_archive\nunpack_archive(x, filter='data')",
        "archive.extraction_filter = None",
        "email.utils.parseaddr(x, strict=False)",
    ],
)
def test_what_came_late_is_noticed(source: str) -> None:
    assert late_uses(source)


def test_what_was_always_there_passes() -> None:
    source = "import tarfile\ntarfile.open(x).extract(y)\nmine.data_filter(filter=z)\nfilter(f, x)"
    assert late_uses(source) == []
