"""Writes the twin of one module, class by class and method by method."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tools.blocking.rules import LIFE, Pair, RefusedError, Rules
from tools.blocking.source import Function, Source, read
from tools.blocking.types import Outcome, Types, all_arguments, taken_apart
from tools.blocking.words import adapted, left_of_asyncio

_BRIDGE: Final = "paddock.sync.bridge"
# Names that a twin inherits from its base.
_OF_EVERY_TWIN: Final = {"__init__", "__repr__", "__eq__", "__hash__"}
_WIDTH: Final = 100
_QUOTES: Final = '"""'
# Special methods that are called on the loop's thread, as plain methods are.
_PLAIN: Final = {"__len__", "__contains__", "__getitem__", "__bool__"}


class Writer:
    """Writes the twin of one module, or of the modules of a folder."""

    def __init__(self, pair: Pair, rules: Rules) -> None:
        self._pairs = [one for one in rules.pairs if one.target == pair.target]
        self._rules = rules
        self._types = Types(rules, pair.target, read(pair.source))

    def write(self) -> str:
        parts = []
        for source, name in [(read(one.source), name) for one in self._pairs for name in one.names]:
            try:
                node = source.found(name)
            except LookupError as error:
                raise RefusedError(str(error)) from None
            with self._within(source):
                if isinstance(node, ast.ClassDef):
                    parts.append(self._class(node, getattr(source.module, name)))
                else:
                    parts.append(self._function(node))
        first = self._pairs[0]
        source_name = first.source
        if first.package:
            source_name = f"{first.package}.{first.target.rpartition('.')[2]}"
        elif len(self._pairs) > 1:
            source_name = source_name.rpartition(".")[0]
        header = (
            f'"""The blocking twin of `{source_name}`.\n\n'
            'Written by tools/twin.py from the signatures there; not to be edited.\n"""\n\n'
            "from __future__ import annotations\n\n"
        )
        imports = "\n".join(sorted(self._types.imports))
        return header + imports + "\n\n\n" + "\n\n\n".join(parts) + "\n"

    # Functions.

    def _function(self, node: Function) -> str:
        original = self._types.original(node.name, f"async_{node.name}")
        result = node.returns
        if isinstance(result, ast.Name) and result.id in self._rules.owners:
            return self._maker(node, result, original)
        owner = self._owner_of(node, skip=0)
        if owner is None:
            raise self._refused(node, f"{node.name} takes nothing that has a twin")
        self._types.imports.add(f"from {_BRIDGE} import bridge_of")
        made = getattr(self._types.source.module, node.name)
        outcome = self._outcome_of(node, made, "bridge")
        call = self._asked(outcome, original, node, skip=0, bridge="bridge")
        return self._returning(
            f"def {node.name}({self._types.parameters(node)}) -> {outcome.text}:\n"
            f"{self._docstring(node, 4)}    bridge = bridge_of({owner!r}, {owner})\n    ",
            outcome,
            call,
        )

    def _maker(self, node: Function, result: ast.Name, original: str) -> str:
        """Write a function that returns an owner, such as `connect`."""
        self._types.name(result)
        self._types.imports.add(f"from {_BRIDGE} import Bridge")
        arguments = self._types.passed(node, skip=0, bridge="bridge")
        made = ", ".join([original, *arguments])
        return (
            f"def {node.name}({self._types.parameters(node)}) -> {result.id}:\n"
            f"{self._docstring(node, 4)}"
            "    bridge = Bridge()\n"
            f"    return {result.id}(bridge, bridge.own({made}))"
        )

    # Classes.

    def _class(self, node: ast.ClassDef, made: type[Any]) -> str:
        inner = self._types.original(node.name, f"Async{node.name}")
        generic = self._generic(node)
        twin = next((one for one in made.__mro__[1:] if self._has_twin(one)), None)
        if twin is None:
            if node.name in self._rules.owners:
                base = "Owner"
            else:
                is_scoped = any(_returns_itself(method) for _, method in self._inherited(made, ()))
                base = "ScopedTwin" if is_scoped else "Twin"
            self._types.imports.add(f"from {_BRIDGE} import {base}")
            bases, inner_of_its_own = f"{base}[{inner}{generic}]", ""
        else:
            # Inherited methods are in the twin of the base.
            bases, inner_of_its_own = twin.__name__, f"\n    _inner: {inner}{generic}"
            self._types.name(ast.Name(twin.__name__))
        bases += f", Generic{generic}" if generic else ""
        parts = [f"class {node.name}({bases}):\n{self._docstring(node, 4)}{inner_of_its_own}"]
        found = list(self._inherited(made, () if twin is None else twin.__mro__))
        for source, method in found:
            if method.name == "__init__":
                with self._within(source):
                    if method in node.body:
                        parts += self._constructor(node.name, method, inner)
                    parts += self._attributes(method)
        written = set()
        for source, method in found:
            if method.name in written or f"{node.name}.{method.name}" in self._rules.asyncio_only:
                continue
            written.add(method.name)
            with self._within(source):
                parts += self._member(node.name, method, made)
        return "\n\n".join(parts)

    def _has_twin(self, kind: type[Any]) -> bool:
        pair = self._rules.twins.get(kind.__name__)
        return pair is not None and pair.source == kind.__module__

    def _inherited(
        self, made: type[Any], of_its_base: tuple[type[Any], ...]
    ) -> Iterator[tuple[Source, Function]]:
        """Return the methods of a class and of its bases that are ours, nearest first."""
        root = self._pairs[0].source.partition(".")[0]
        for kind in made.__mro__:
            if kind.__module__.partition(".")[0] != root or kind in of_its_base:
                continue
            source = read(kind.__module__)
            node = source.found(kind.__name__)
            assert isinstance(node, ast.ClassDef)
            for one in node.bases:
                if kind is not made and taken_apart(one)[0] == "Generic":
                    raise self._refused(one, f"{made.__name__} comes from a generic class")
            for method in node.body:
                if isinstance(method, Function):
                    yield source, method

    def _generic(self, node: ast.ClassDef) -> str:
        """Return the type parameters of a generic class, as `[T]`."""
        for one in node.bases:
            name, inside = taken_apart(one)
            if name == "Generic":
                for part in [one, *inside]:
                    for word in ast.walk(part):
                        if isinstance(word, ast.Name):
                            self._types.name(word)
                return f"[{', '.join(map(ast.unparse, inside))}]"
        return ""

    def _constructor(self, name: str, method: Function, inner: str) -> list[str]:
        owner = None if name in self._rules.made_inside else self._owner_of(method, skip=1)
        if owner is None:
            # Users do not construct it.
            return []
        passed = self._types.passed(method, skip=1, bridge="bridge")
        head = f"    def __init__({self._types.parameters(method)}) -> None:\n"
        documented = self._docstring(method, 8, required=False)
        made = f"lambda bridge: {inner}({', '.join(passed)})"
        return [f"{head}{documented}        self._make({owner!r}, {owner}, {made})"]

    def _attributes(self, method: Function) -> list[str]:
        """Write a property for each public attribute that a constructor sets."""
        parts = []
        for node in ast.walk(method):
            if not isinstance(node, ast.AnnAssign | ast.Assign):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if (
                isinstance(target, ast.Attribute)
                and ast.unparse(target.value) == "self"
                and not target.attr.startswith("_")
            ):
                kind = self._type_of(node, method, target.attr)
                outcome = self._types.outcome(kind, node, "self._bridge")
                comment = self._comment_above(node)
                documented = f'        """{comment}"""\n' if comment else ""
                head = f"    @property\n    def {target.attr}(self) -> {outcome.text}:\n"
                value = outcome.wrap(f"self._inner.{target.attr}")
                parts.append(f"{head}{documented}        return {value}")
        return parts

    def _type_of(self, node: ast.AnnAssign | ast.Assign, method: Function, name: str) -> ast.expr:
        """Return the type of an attribute, from its own annotation or its argument's."""
        if isinstance(node, ast.AnnAssign):
            generic, inside = taken_apart(node.annotation)
            if generic == "Final":
                return inside[0]
            if ast.unparse(node.annotation) != "Final":
                return node.annotation
        for one in all_arguments(method):
            if isinstance(node.value, ast.Name) and node.value.id == one.arg and one.annotation:
                return one.annotation
        raise self._refused(node, f"the attribute {name} is public, and its type is not told")

    def _member(self, owner: str, method: Function, made: type[Any]) -> list[str]:
        match method.name:
            case "__aenter__":
                # A `ScopedTwin` has it.
                is_theirs = _returns_itself(method) and owner not in self._rules.owners
                return [] if is_theirs else [self._enter(owner, method)]
            case "__aexit__":
                # Every twin has it; the type says whether it may suppress an error.
                is_plain = ast.unparse(method.returns or ast.Constant(None)) == "None"
                return [] if is_plain else [self._exit(owner, method)]
            case "__aiter__":
                return [self._method(owner, method, made, "__iter__")]
            case name if name in _PLAIN or not name.startswith("_"):
                return [self._method(owner, method, made, name)]
            case name if name.startswith("__") and name not in _OF_EVERY_TWIN:
                raise self._refused(method, f"{owner}.{name} has no rule")
        return []

    def _method(self, owner: str, method: Function, made: type[Any], name: str) -> str:
        decorators = [ast.unparse(one) for one in method.decorator_list]
        if decorators not in ([], ["property"], ["asynccontextmanager"]):
            raise self._refused(method, f"the decorators {decorators} have no rule")
        outcome = self._outcome_of(method, getattr(made, method.name), "self._bridge")
        head = (
            f"    def {name}({self._types.parameters(method)}) -> {outcome.text}:\n"
            f"{self._docstring(method, 8, required=False)}        "
        )
        inner = f"self._inner.{method.name}"
        if decorators == ["property"]:
            return f"    @property\n{head}return {outcome.wrap(inner)}"
        if owner in self._rules.owners and name in LIFE:
            return f"{head}{LIFE[name]}"
        if owner in self._rules.owners and outcome.text in self._rules.owners:
            # A new owner has its own bridge.
            self._types.imports.add(f"from {_BRIDGE} import Bridge")
            arguments = ", ".join([inner, *self._types.passed(method, skip=1, bridge="bridge")])
            new = f"{outcome.text}(bridge, bridge.own({arguments}))"
            return f"{head}bridge = Bridge()\n        return {new}"
        if owner in self._rules.builders and not outcome.is_waited:
            passed = self._types.passed(method, skip=1, bridge="self._bridge")
            call = f"{inner}({', '.join(passed)})"
        else:
            call = self._asked(outcome, inner, method, skip=1, bridge="self._bridge")
        return self._returning(head, outcome, call)

    def _enter(self, owner: str, method: Function) -> str:
        outcome = self._types.outcome(method.returns, method, "self._bridge")
        head = f"    def __enter__(self) -> {outcome.text}:\n        "
        if owner in self._rules.owners:
            return f"{head}return self._open(self._inner.__aenter__)"
        return self._returning(head, outcome, "self._enter_scope(self._inner)")

    def _exit(self, owner: str, method: Function) -> str:
        outcome = self._types.outcome(method.returns, method, "self._bridge")
        head = f"    def __exit__({self._types.parameters(method)}) -> {outcome.text}:\n        "
        names = ", ".join(one.arg for one in all_arguments(method)[1:])
        return self._returning(head, outcome, f"super().__exit__({names})")

    # Calls.

    def _outcome_of(self, node: Function, made: Any, bridge: str) -> Outcome:
        decorators = [ast.unparse(one) for one in node.decorator_list]
        is_scope = decorators == ["asynccontextmanager"]
        outcome = self._types.outcome(node.returns, node, bridge, is_scope=is_scope)
        # An async generator is an `async def`, too, but no coroutine.
        if inspect.iscoroutinefunction(made):
            outcome.is_waited = True
        return outcome

    def _asked(
        self, outcome: Outcome, called: str, node: Function, *, skip: int, bridge: str
    ) -> str:
        passed = self._types.passed(node, skip=skip, bridge=bridge)
        way = "call" if outcome.is_waited else "run"
        return f"{bridge}.{way}({', '.join([called, *passed])})"

    def _returning(self, head: str, outcome: Outcome, call: str) -> str:
        if outcome.text == "Self":
            return f"{head}{call}\n        return self"
        returns = "" if outcome.text == "None" else "return "
        return f"{head}{returns}{outcome.wrap(call)}"

    def _owner_of(self, node: Function, *, skip: int) -> str | None:
        """Return the first argument that has a twin, or is a sequence of twins."""
        for one in all_arguments(node)[skip:]:
            is_twin = self._types.twin_of(one.annotation) is not None
            if is_twin or self._types.is_sequence_of_twins(one):
                return one.arg
        return None

    @contextmanager
    def _within(self, source: Source) -> Iterator[None]:
        """Look names up in another module."""
        before, self._types.source = self._types.source, source
        yield
        self._types.source = before

    # Docstrings.

    def _docstring(
        self, node: ast.ClassDef | Function, indent: int, *, required: bool = True
    ) -> str:
        text = ast.get_docstring(node)
        if text is None:
            if required:
                raise self._refused(node, f"{node.name} has no docstring")
            return ""
        lines = self._adapted(text, node, indent).splitlines()
        closing = _QUOTES if len(lines) == 1 else f"\n{_QUOTES}"
        written = _QUOTES + "\n".join(lines) + closing
        space = " " * indent
        return "".join(f"{space}{one}\n" if one else "\n" for one in written.splitlines())

    def _comment_above(self, node: ast.stmt) -> str:
        lines = self._types.source.lines
        comment: list[str] = []
        line = node.lineno - 2
        while lines[line].lstrip().startswith("#"):
            comment.insert(0, lines[line].lstrip(" #:"))
            line -= 1
        return "\n        ".join(self._adapted("\n".join(comment), node, 8).splitlines())

    def _adapted(self, text: str, where: ast.AST, indent: int) -> str:
        text = adapted(text, _WIDTH - indent)
        found = left_of_asyncio(text)
        if found is not None:
            raise self._refused(where, f"words about {found!r}, where there is none")
        return text

    def _refused(self, node: ast.AST, reason: str) -> RefusedError:
        return self._types.refused(node, reason)


def _returns_itself(method: Function) -> bool:
    """Return whether a method enters a scope whose value is the object itself."""
    is_self = isinstance(method.returns, ast.Name) and method.returns.id == "Self"
    return method.name == "__aenter__" and is_self
