"""Write the blocking twin, `paddock.sync`, from the public signatures of the asyncio classes.

    python tools/twin.py            write the modules
    python tools/twin.py --check    tell which are not as they would be written

Only signatures and docstrings are written; what they do is done once, by the asyncio classes. The
rules, by which a class is read:

* What returns a future, or is a coroutine, waits for the result.
* A plain method is called on the loop's thread; but that of a builder, which only gathers what is
  to be done, in the caller's thread.
* A property, or a public attribute that `__init__` annotates, is read in the caller's thread: it
  has to be a single read of an attribute.
* An async iterator becomes a `Stream`, an async context manager a `Scope`.
* An argument that may be called is a callback, and is called on the client's thread for callbacks.
* An object that has a twin is wrapped when it is returned, and unwrapped when it is an argument. A
  class whose constructor takes one has a constructor of its own.

* Docstrings are kept, without `await`. What in them still speaks of asyncio is refused.

What fits no rule is refused, so nothing is ever passed on wrongly.
"""

from __future__ import annotations

import ast
import builtins
import collections.abc
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_SOURCE: Final = Path(__file__).parents[1] / "src"


@dataclass(frozen=True)
class Pair:
    """An asyncio module, its blocking twin, and what of it has a twin."""

    source: str
    target: str
    names: tuple[str, ...]


PAIRS: Final = (
    Pair("paddock.client.transaction", "paddock.sync.transaction", ("Transaction",)),
    Pair("paddock.client.multiread", "paddock.sync.multiread", ("MultiRead",)),
    Pair("paddock.client.client", "paddock.sync.client", ("Client",)),
    Pair("paddock.api", "paddock.sync.api", ("connect",)),
)

# From what everything else comes, and what keeps the loop running until it is closed.
OWNERS: Final = frozenset({"Client"})

# Those whose plain methods touch nothing but themselves.
BUILDERS: Final = frozenset({"Transaction", "MultiRead"})

# What makes sense with asyncio only.
ASYNCIO_ONLY: Final = frozenset({"Client.start_task"})

_WAITED: Final = {"asyncio.Future", "asyncio.Task", "Awaitable", "Coroutine"}
_STREAMS: Final = {"AsyncIterator", "AsyncGenerator"}
_SCOPES: Final = {"AbstractAsyncContextManager"}
# The methods of an owner that begin and end its life.
_LIFE: Final = {"start": "self._open(self._inner.start)", "close": "self._close()"}
_BRIDGE: Final = "paddock.sync.bridge"


class RefusedError(Exception):
    """Something fits no rule; the message says what and where."""


Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Outcome:
    """What a call gives: its type for blocking code, and how it is made from what asyncio gives."""

    text: str
    # Whether there is something to wait for.
    is_waited: bool = False
    # How the result is wrapped, with {} for the result.
    wrap: str = "{}"


@dataclass
class Writer:
    """Writes the twin of one module."""

    pair: Pair
    pairs: tuple[Pair, ...]
    owners: frozenset[str]
    builders: frozenset[str]
    imports: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.module = importlib.import_module(self.pair.source)
        file = self.module.__file__
        assert file is not None, "it is a module with a source"
        self.lines = Path(file).read_text(encoding="utf-8").splitlines()
        self.tree = ast.parse("\n".join(self.lines))
        # Where each class with a twin is, by its name.
        self.twins = {name: pair for pair in self.pairs for name in pair.names if name[0].isupper()}

    def write(self) -> str:
        found = {
            node.name: node
            for node in self.tree.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        }
        parts = []
        for name in self.pair.names:
            node = found[name]
            if isinstance(node, ast.ClassDef):
                parts.append(self._class(node))
            else:
                parts.append(self._maker(node))
        header = (
            f'"""The blocking twin of `{self.pair.source}`.\n\n'
            'Written by tools/twin.py from the signatures there; not to be edited.\n"""\n\n'
            "from __future__ import annotations\n\n"
        )
        return header + "\n".join(sorted(self.imports)) + "\n\n\n" + "\n\n\n".join(parts) + "\n"

    # Classes and functions.

    def _class(self, node: ast.ClassDef) -> str:
        inner = f"Async{node.name}"
        self.imports.add(f"from {self.pair.source} import {node.name} as {inner}")
        base = "Owner" if node.name in self.owners else "Twin"
        self.imports.add(f"from {_BRIDGE} import {base}")
        parts = [f"class {node.name}({base}[{inner}]):\n{self._docstring(node, 4)}"]
        methods = [one for one in node.body if isinstance(one, Function)]
        for method in methods:
            if method.name == "__init__":
                parts += self._constructor(node.name, method)
                parts += self._attributes(method)
        for method in methods:
            if method.name == "__aenter__":
                parts.append(self._enter(node.name, method))
            elif method.name == "__aexit__":
                parts.append(self._exit(node.name, method))
            elif f"{node.name}.{method.name}" in ASYNCIO_ONLY:
                continue
            elif not method.name.startswith("_"):
                parts.append(self._method(node.name, method))
            elif method.name.startswith("__") and method.name not in ("__init__", "__repr__"):
                raise self._refused(method, f"{node.name}.{method.name} has no rule")
        return "\n\n".join(parts)

    def _maker(self, node: Function) -> str:
        """Write a function that makes an owner, such as `connect`."""
        result = node.returns
        if not isinstance(result, ast.Name) or result.id not in self.owners:
            raise self._refused(node, f"{node.name} does not return an owner")
        self._name(result.id)
        self.imports.add(f"from {_BRIDGE} import Bridge")
        self.imports.add(f"from {self.pair.source} import {node.name} as async_{node.name}")
        arguments = self._passed(node, skip=0, bridge="bridge")
        made = ", ".join([f"async_{node.name}", *arguments])
        return (
            f"def {node.name}({self._parameters(node)}) -> {result.id}:\n"
            f"{self._docstring(node, 4)}"
            "    bridge = Bridge()\n"
            f"    return {result.id}(bridge, bridge.own({made}))"
        )

    def _constructor(self, name: str, method: Function) -> list[str]:
        taken = [one for one in _all_arguments(method)[1:] if self._twin_of(one.annotation)]
        if not taken:
            # It is made by others only.
            return []
        bridge = f"{taken[0].arg}._bridge"
        made = ", ".join([f"Async{name}", *self._passed(method, skip=1, bridge=bridge)])
        head = f"    def __init__({self._parameters(method)}) -> None:\n"
        documented = self._docstring(method, 8, required=False)
        return [f"{head}{documented}        super().__init__({bridge}, {bridge}.run({made}))"]

    def _attributes(self, method: Function) -> list[str]:
        """Write a property for each public attribute that a constructor annotates."""
        parts = []
        for node in ast.walk(method):
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Attribute)
                and not node.target.attr.startswith("_")
            ):
                name, outcome = node.target.attr, self._outcome(node.annotation, node)
                comment = self._comment_above(node)
                documented = f'        """{comment}"""\n' if comment else ""
                parts.append(
                    f"    @property\n    def {name}(self) -> {outcome.text}:\n{documented}"
                    f"        return {outcome.wrap.format(f'self._inner.{name}')}"
                )
        return parts

    def _method(self, owner: str, method: Function) -> str:
        decorators = [ast.unparse(one) for one in method.decorator_list]
        if decorators not in ([], ["property"], ["asynccontextmanager"]):
            raise self._refused(method, f"the decorators {decorators} have no rule")
        outcome = self._outcome(
            method.returns, method, is_scope=decorators == ["asynccontextmanager"]
        )
        made = getattr(getattr(self.module, owner), method.name)
        # Not so a generator, which is an `async def` too.
        if inspect.iscoroutinefunction(made):
            outcome.is_waited = True
        head = (
            f"    def {method.name}({self._parameters(method)}) -> {outcome.text}:\n"
            f"{self._docstring(method, 8, required=False)}"
        )
        inner = f"self._inner.{method.name}"
        if decorators == ["property"]:
            return f"    @property\n{head}        return {outcome.wrap.format(inner)}"
        if owner in self.owners and method.name in _LIFE:
            return f"{head}        {_LIFE[method.name]}"
        passed = self._passed(method, skip=1, bridge="self._bridge")
        if outcome.is_waited:
            call = f"self._bridge.call({', '.join([inner, *passed])})"
        elif owner in self.builders:
            call = f"{inner}({', '.join(passed)})"
        else:
            call = f"self._bridge.run({', '.join([inner, *passed])})"
        if outcome.text == "Self":
            return f"{head}        {call}\n        return self"
        returns = "" if outcome.text == "None" else "return "
        return f"{head}        {returns}{outcome.wrap.format(call)}"

    def _enter(self, owner: str, method: Function) -> str:
        outcome = self._outcome(method.returns, method)
        head = f"    def __enter__(self) -> {outcome.text}:\n"
        if owner in self.owners:
            return f"{head}        return self._open(self._inner.__aenter__)"
        entered = "self._enter_scope(self._inner)"
        if outcome.text == "Self":
            return f"{head}        {entered}\n        return self"
        returns = "" if outcome.text == "None" else "return "
        return f"{head}        {returns}{outcome.wrap.format(entered)}"

    def _exit(self, owner: str, method: Function) -> str:
        outcome = self._outcome(method.returns, method)
        head = f"    def __exit__({self._parameters(method)}) -> {outcome.text}:\n"
        if owner in self.owners:
            return f"{head}        self._close()"
        returns = "" if outcome.text == "None" else "return "
        names = ", ".join(one.arg for one in _all_arguments(method)[1:])
        return f"{head}        {returns}self._leave_scope({names})"

    # Signatures.

    def _parameters(self, node: Function) -> str:
        """Give the parameters as they are, with every name that they need imported."""
        for one in _all_arguments(node):
            if one.annotation is not None:
                self._type(one.annotation)
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self._type(default)
        return ast.unparse(node.args)

    def _passed(self, node: Function, *, skip: int, bridge: str) -> list[str]:
        """Give the arguments as they are passed on."""
        if node.args.vararg or node.args.kwarg:
            raise self._refused(node, "arguments with stars have no rule")
        positional = [*node.args.posonlyargs, *node.args.args][skip:]
        passed = [self._converted(one, bridge) for one in positional]
        passed += [f"{one.arg}={self._converted(one, bridge)}" for one in node.args.kwonlyargs]
        return passed

    def _converted(self, argument: ast.arg, bridge: str) -> str:
        twin = self._twin_of(argument.annotation)
        if twin is not None:
            return f"{argument.arg}._inner"
        assert argument.annotation is not None, "everything is annotated"
        hint = self._hint(argument.annotation)
        callbacks = [one for one in _alternatives(hint) if _is_callable(one)]
        for one in callbacks:
            told, result = typing.get_args(one)
            if result not in (None, types.NoneType, object):
                raise self._refused(argument, f"the callback {argument.arg} gives something back")
            if any(getattr(kind, "__name__", "") in self.twins for kind in told):
                raise self._refused(argument, f"the callback {argument.arg} is told of a twin")
        return f"{bridge}.callbacks.relay({argument.arg})" if callbacks else argument.arg

    def _outcome(
        self, annotation: ast.expr | None, where: ast.AST, *, is_scope: bool = False
    ) -> Outcome:
        if annotation is None:
            raise self._refused(where, "no return type")
        generic, inside = _generic(annotation)
        if generic in _WAITED:
            outcome = self._outcome(inside[-1], where)
            outcome.is_waited = True
            return outcome
        if is_scope or generic in _SCOPES:
            self._plain(inside[0], where)
            self.imports.add("from paddock.sync.scopes import Scope")
            wrap = "Scope(self._bridge.portal, {})"
            return Outcome(f"Scope[{self._type(inside[0])}]", wrap=wrap)
        if generic in _STREAMS:
            self._plain(inside[0], where)
            self.imports.add("from paddock.sync.streams import Stream")
            wrap = "Stream(self._bridge.portal, {})"
            return Outcome(f"Stream[{self._type(inside[0])}]", wrap=wrap)
        twin = self._twin_of(annotation)
        if twin is not None:
            return Outcome(self._type(annotation), wrap=f"{twin}._of(self._bridge, {{}})")
        self._plain(annotation, where)
        if any(_is_callable(one) for one in _alternatives(self._hint(annotation))):
            raise self._refused(where, "a function that is returned has no rule")
        return Outcome(self._type(annotation))

    def _plain(self, annotation: ast.expr, where: ast.AST) -> None:
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name) and node.id in self.twins:
                raise self._refused(where, f"{node.id} within {ast.unparse(annotation)}")

    def _twin_of(self, annotation: ast.expr | None) -> str | None:
        if isinstance(annotation, ast.Name) and annotation.id in self.twins:
            return annotation.id
        return None

    def _hint(self, annotation: ast.expr) -> Any:
        """Give what an annotation means."""
        if ast.unparse(annotation) == "Self":
            return typing.Self
        return eval(ast.unparse(annotation), dict(vars(self.module)))  # our own source

    def _type(self, expression: ast.expr) -> str:
        """Give an expression as it is written, with every name in it imported."""
        for node in ast.walk(expression):
            if isinstance(node, ast.Name):
                self._name(node.id)
        return ast.unparse(expression)

    def _name(self, name: str) -> None:
        """Import a name from where its module has it, or its twin."""
        if hasattr(builtins, name):
            return
        if name in self.twins:
            home = self.twins[name].target
            if home != self.pair.target:
                self.imports.add(f"from {home} import {name}")
            return
        for node in self.tree.body:
            for one in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
                if name == (one.asname or one.name):
                    written = ast.unparse(ast.alias(one.name, one.asname))
                    if isinstance(node, ast.ImportFrom):
                        self.imports.add(f"from {node.module} import {written}")
                    else:
                        self.imports.add(f"import {written}")
                    return
        if name.startswith("_") or not hasattr(self.module, name):
            raise RefusedError(f"{self.pair.source}: the name {name} is not public")
        self.imports.add(f"from {self.pair.source} import {name}")

    # Words.

    def _docstring(
        self, node: ast.ClassDef | Function, indent: int, *, required: bool = True
    ) -> str:
        text = ast.get_docstring(node)
        if text is None:
            if required:
                raise self._refused(node, f"{node.name} has no docstring")
            return ""
        lines = self._adapted(text, node).splitlines()
        closing = '"""' if len(lines) == 1 else '\n"""'
        written = '"""' + "\n".join(lines) + closing
        space = " " * indent
        return "".join(f"{space}{one}\n" if one else "\n" for one in written.splitlines())

    def _comment_above(self, node: ast.AnnAssign) -> str:
        comment: list[str] = []
        line = node.lineno - 2
        while self.lines[line].lstrip().startswith("#"):
            comment.insert(0, self.lines[line].lstrip(" #"))
            line -= 1
        return self._adapted("\n        ".join(comment), node)

    def _adapted(self, text: str, where: ast.AST) -> str:
        text = adapted(text)
        found = _ASYNCIO.search(text)
        if found is not None:
            raise self._refused(where, f"words about {found.group()!r}, where there is none")
        return text

    def _refused(self, node: ast.AST, reason: str) -> RefusedError:
        return RefusedError(f"{self.pair.source}:{getattr(node, 'lineno', 0)}: {reason}")


# How words about asyncio code become words about blocking code, and what none may be left of.
_WORDS: Final = (
    (r"\basync (with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\basyncio\.timeout\b", "timeout"),
    (r"\bpaddock\.connect\b", "paddock.sync.connect"),
    (r"\bis cancelled\b", "is given up"),
    (r"\bthe event loop's clock\b", "`time.monotonic()`"),
    (
        r"It must not block\. What it raises goes to the event loop's exception handler\.",
        "It may make calls. What it raises is logged.",
    ),
)
_ASYNCIO: Final = re.compile(r"\basync\b|\bawait\b|\basyncio\b|\bevent loop\b|\bcoroutine\b")


def adapted(text: str) -> str:
    """Give words about asyncio code as words about blocking code."""
    for pattern, replacement in _WORDS:
        text = re.sub(pattern, replacement, text)
    return text


def _all_arguments(node: Function) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _generic(annotation: ast.expr) -> tuple[str, list[ast.expr]]:
    """Take `a.B[c, d]` apart."""
    if not isinstance(annotation, ast.Subscript):
        return "", []
    inside = annotation.slice
    parts = list(inside.elts) if isinstance(inside, ast.Tuple) else [inside]
    return ast.unparse(annotation.value), parts


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _is_callable(hint: Any) -> bool:
    return typing.get_origin(hint) is collections.abc.Callable


def twin_of(
    pair: Pair,
    pairs: tuple[Pair, ...] = PAIRS,
    owners: frozenset[str] = OWNERS,
    builders: frozenset[str] = BUILDERS,
) -> str:
    """Give the source of a twin, formatted."""
    text = Writer(pair, pairs, owners, builders).write()
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
    for command in (["check", "--quiet", "--fix", "--select", "I"], ["format", "--quiet"]):
        target = f"{pair.target.replace('.', '/')}.py"
        done = subprocess.run(
            [ruff, *command, "--stdin-filename", f"src/{target}", "-"],
            input=text,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            cwd=_SOURCE.parent,
        )
        text = done.stdout
    return text


def path_of(pair: Pair) -> Path:
    return _SOURCE / f"{pair.target.replace('.', '/')}.py"


def main() -> int:
    stale = [pair for pair in PAIRS if _present(pair) != twin_of(pair)]
    for pair in stale:
        if "--check" in sys.argv[1:]:
            print(f"{path_of(pair)}: not as tools/twin.py would write it")
        else:
            path_of(pair).write_text(twin_of(pair), encoding="utf-8")
    return 1 if stale and "--check" in sys.argv[1:] else 0


def _present(pair: Pair) -> str:
    path = path_of(pair)
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
