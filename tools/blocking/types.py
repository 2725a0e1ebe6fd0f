"""Types: how each is written for blocking code, and how its values are converted.

An object with a twin is wrapped when it is returned and unwrapped when it is passed. There are
three kinds of callbacks: a listener returns nothing, a handler an awaitable, a function a value.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tools.blocking.rules import RefusedError, Rules
from tools.blocking.shared import waits_for_something
from tools.blocking.source import Function, Source

# Converts an expression to one that has the value for blocking code.
Wrap: TypeAlias = Callable[[str], str]

_WAITED: Final = {"asyncio.Future", "asyncio.Task", "Awaitable", "Coroutine"}
_STREAMS: Final = {"AsyncIterator", "AsyncGenerator"}
_SCOPES: Final = {"AbstractAsyncContextManager"}
_LISTS: Final = {"list", "Sequence", "Iterable", "Collection"}
# Names that no generated signature may contain.
_ASYNC_NAMES: Final = (
    {"AsyncIterable", "AsyncContextManager", "Awaitable", "Coroutine"} | _STREAMS | _SCOPES
)


def as_it_is(value: str) -> str:
    return value


@dataclass
class Outcome:
    """The result of a call: its type for blocking code, and the conversion from asyncio's."""

    text: str
    wrap: Wrap = as_it_is
    # Whether the call waits.
    is_waited: bool = False


class Types:
    """The types of one generated module, and the imports that they need."""

    def __init__(self, rules: Rules, target: str, source: Source) -> None:
        self._rules = rules
        self._twins = rules.twins
        self._target = target
        # The module that names are looked up in; another one for inherited methods.
        self.source = source
        self.imports: set[str] = set()
        # The modules that names of expanded aliases are looked up in.
        self._homes: dict[ast.Name, Source] = {}

    # Results.

    def outcome(
        self, annotation: ast.expr | None, where: ast.AST, bridge: str, *, is_scope: bool = False
    ) -> Outcome:
        if annotation is None:
            raise self.refused(where, "no return type")
        generic, inside = taken_apart(annotation)
        if generic in _WAITED:
            outcome = self.outcome(inside[-1], where, bridge)
            outcome.is_waited = True
            return outcome
        if is_scope or generic in _SCOPES:
            self.imports.add("from paddock.sync.scopes import Scope")
            return self._carried("Scope", inside[0], where, bridge)
        if generic in _STREAMS:
            self.imports.add("from paddock.sync.streams import Stream")
            return self._carried("Stream", inside[0], where, bridge)
        if _is_self(annotation):
            return Outcome(self._text(annotation, where))
        return Outcome(*self._given(annotation, where, bridge))

    def _carried(self, carrier: str, inside: ast.expr, where: ast.AST, bridge: str) -> Outcome:
        """Return the outcome for a stream or a scope, whose items or value come later."""
        text, wrap = self._given(inside, where, bridge)
        later = "" if wrap is as_it_is else f", lambda _one: {wrap('_one')}"
        return Outcome(
            f"{carrier}[{text}]", lambda value: f"{carrier}({bridge}.portal, {value}{later})"
        )

    def _given(self, annotation: ast.expr, where: ast.AST, bridge: str) -> tuple[str, Wrap]:
        expanded = self._expanded(annotation)
        if any(_is_callable(node) for node in ast.walk(expanded)):
            raise self.refused(where, "a function that is returned has no rule")
        self._check_self(expanded, where)
        if not self._has_twin(expanded):
            return self._text(annotation, where), as_it_is
        wrap = self._wrap(expanded, where, bridge)
        return self._text(expanded, where), wrap

    def _wrap(self, kind: ast.expr, where: ast.AST, bridge: str) -> Wrap:
        twin = self.twin_of(kind)
        if twin is not None:
            return lambda value: f"{twin}._of({bridge}, {value})"
        generic, inside = taken_apart(kind)
        optional = _optional(kind)
        if optional is not None:
            wrap = self._wrap(optional, where, bridge)
            return lambda value: _unless_none(value, wrap)
        if generic == "list":
            wrap = self._wrap(inside[0], where, bridge)
            return lambda value: f"[{wrap('_one')} for _one in {value}]"
        if generic == "tuple" and ast.unparse(inside[-1]) == "...":
            wrap = self._wrap(inside[0], where, bridge)
            return lambda value: f"tuple({wrap('_one')} for _one in {value})"
        if generic == "dict" and not self._has_twin(inside[0]):
            wrap = self._wrap(inside[1], where, bridge)
            return lambda value: (
                f"{{_key: {wrap('_one')} for _key, _one in {_dotted(value)}.items()}}"
            )
        raise self.refused(where, f"a class with a twin within {ast.unparse(kind)}")

    # Parameters.

    def parameters(self, node: Function) -> str:
        """Return the parameters for blocking code, and import every name that they need."""
        taken = copy.copy(node.args)
        for field in ("posonlyargs", "args", "kwonlyargs"):
            setattr(taken, field, [self._parameter(one) for one in getattr(taken, field)])
        for field in ("vararg", "kwarg"):
            one = getattr(taken, field)
            setattr(taken, field, None if one is None else self._parameter(one))
        for default in [*taken.defaults, *taken.kw_defaults]:
            if default is not None:
                self._text(default, node)
        return ast.unparse(taken)

    def _parameter(self, argument: ast.arg) -> ast.arg:
        if argument.annotation is None:
            return argument
        expanded = self._expanded(argument.annotation)
        blocking = self._blocking(expanded, argument)
        if blocking is expanded and not self._has_twin(expanded):
            # The default as it is written, with its names imported.
            blocking = argument.annotation
        self._text(blocking, argument)
        return ast.arg(argument.arg, blocking)

    def _blocking(self, kind: ast.expr, where: ast.AST) -> ast.expr:
        """Return a type whose handlers are plain functions."""
        parts = _alternatives(kind)
        changed = [self._handler_type(one) for one in parts]
        if all(new is old for new, old in zip(changed, parts, strict=True)):
            return kind
        whole = changed[0]
        for one in changed[1:]:
            whole = ast.BinOp(whole, ast.BitOr(), one)
        return whole

    def _handler_type(self, kind: ast.expr) -> ast.expr:
        if not _is_callable(kind):
            return kind
        assert isinstance(kind, ast.Subscript)
        _, (told, result) = taken_apart(kind)
        generic, inside = taken_apart(result)
        if generic not in _WAITED:
            return kind
        return ast.Subscript(kind.value, ast.Tuple([told, inside[-1]], ast.Load()), ast.Load())

    def passed(self, node: Function, *, skip: int, bridge: str) -> list[str]:
        """Return the arguments for the asyncio method."""
        positional = [*node.args.posonlyargs, *node.args.args][skip:]
        passed = [self._converted(one, bridge) for one in positional]
        for one, stars in ((node.args.vararg, "*"), (node.args.kwarg, "**")):
            if one is not None:
                passed.append(stars + self._starred(one, stars))
        named = [f"{one.arg}={self._converted(one, bridge)}" for one in node.args.kwonlyargs]
        at = len(passed) - (node.args.kwarg is not None)
        return [*passed[:at], *named, *passed[at:]]

    def _starred(self, argument: ast.arg, stars: str) -> str:
        kind = self._annotation(argument)
        if any(_is_callable(node) for node in ast.walk(kind)):
            raise self.refused(argument, f"the callables {stars}{argument.arg} have no rule")
        if not self._has_twin(kind):
            return argument.arg
        if stars == "**":
            raise self.refused(argument, f"a class with a twin in **{argument.arg}")
        return f"[{self._unwrapped(kind, '_one', argument)} for _one in {argument.arg}]"

    def _converted(self, argument: ast.arg, bridge: str) -> str:
        kind = self._annotation(argument)
        self._check_self(kind, argument)
        parts = _alternatives(kind)
        called = [one for one in parts if _is_callable(one)]
        if not called:
            if any(_is_callable(node) for node in ast.walk(kind)):
                raise self.refused(argument, f"callables within {argument.arg} have no rule")
            if not self._has_twin(kind):
                return argument.arg
            return self._unwrapped(kind, argument.arg, argument)
        if len(called) > 1 or any(self._has_twin(one) for one in parts if one not in called):
            raise self.refused(argument, f"{argument.arg} may be too many things")
        return self._relayed(argument, called[0], bridge)

    def _relayed(self, argument: ast.arg, called: ast.expr, bridge: str) -> str:
        """Return a callback in the form that the loop may call."""
        _, (told, result) = taken_apart(called)
        generic, inside = taken_apart(result)
        name = argument.arg
        if generic in _WAITED:
            if self._has_twin(inside[-1]):
                raise self.refused(argument, f"the handler {name} gives a class with a twin")
            return f"{bridge}.handlers.relay({name}{self._told(told, argument, bridge)})"
        if ast.unparse(result) in ("None", "object"):
            return f"{bridge}.callbacks.relay({name}{self._told(told, argument, bridge)})"
        if _async_name(result) or ast.unparse(result) == "Any":
            raise self.refused(argument, f"the callback {name} may give a promise or not")
        if self._has_twin(called):
            raise self.refused(argument, f"the function {name} takes or gives a class with a twin")
        return name

    def _told(self, told: ast.expr, where: ast.AST, bridge: str) -> str:
        """Return how the arguments of a callback are wrapped, if they have to be."""
        if not isinstance(told, ast.List) or not self._has_twin(told):
            return ""
        names = [f"_{number}" for number in range(len(told.elts))]
        wrapped = [
            self._wrap(kind, where, bridge)(name) if self._has_twin(kind) else name
            for kind, name in zip(told.elts, names, strict=True)
        ]
        return f", lambda {', '.join(names)}: ({', '.join(wrapped)},)"

    def _unwrapped(self, kind: ast.expr, value: str, where: ast.AST) -> str:
        if all(self.twin_of(one) is not None for one in _alternatives(kind)):
            return f"{value}._inner"
        optional = _optional(kind)
        if optional is not None:
            return f"(None if {value} is None else {self._unwrapped(optional, value, where)})"
        generic, inside = taken_apart(kind)
        if generic in _LISTS:
            return f"[{self._unwrapped(inside[0], '_one', where)} for _one in {value}]"
        raise self.refused(where, f"a class with a twin within {ast.unparse(kind)}")

    # Parts of types.

    def twin_of(self, kind: ast.expr | None) -> str | None:
        """Return the name of a type that is a class with a twin; None for other types."""
        if isinstance(kind, ast.Subscript):
            kind = kind.value
        if isinstance(kind, ast.Name) and kind.id in self._twins:
            return kind.id
        return None

    def is_sequence_of_twins(self, argument: ast.arg) -> bool:
        """Return whether an argument is a sequence of objects that all have a twin."""
        if argument.annotation is None:
            return False
        generic, inside = taken_apart(self._expanded(argument.annotation))
        return generic in ("list", "Sequence") and all(
            self.twin_of(one) is not None for one in _alternatives(self._expanded(inside[0]))
        )

    def _has_twin(self, kind: ast.expr) -> bool:
        return any(self.twin_of(node) for node in ast.walk(kind) if isinstance(node, ast.Name))

    def _check_self(self, kind: ast.expr, where: ast.AST) -> None:
        if any(_is_self(node) for node in ast.walk(kind)):
            raise self.refused(where, f"Self in {ast.unparse(kind)} has no rule")

    def _annotation(self, argument: ast.arg) -> ast.expr:
        if argument.annotation is None:
            raise self.refused(argument, f"{argument.arg} is not annotated")
        return self._expanded(argument.annotation)

    def _expanded(self, kind: ast.expr, home: Source | None = None) -> ast.expr:
        """Return a type with its aliases expanded."""
        origin = home or self.source
        types = self

        class Expansion(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.expr:
                found = origin.alias(node.id)
                if found is not None:
                    return types._expanded(found[1], found[0])
                types._homes[node] = origin
                return node

            def visit_Constant(self, node: ast.Constant) -> ast.expr:
                # A forward reference in quotes.
                if not isinstance(node.value, str):
                    return node
                return types._expanded(ast.parse(node.value, mode="eval").body, origin)

            def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
                is_literal = ast.unparse(node.value) == "Literal"
                return node if is_literal else self.generic_visit(node)

        expanded = Expansion().visit(copy.deepcopy(kind))
        assert isinstance(expanded, ast.expr)
        return expanded

    def _text(self, expression: ast.expr, where: ast.AST) -> str:
        """Return the text of an expression, and import every name in it."""
        for node in ast.walk(expression):
            if isinstance(node, ast.Name):
                self.name(node)
        found = _async_name(expression)
        if found:
            raise self.refused(where, f"{found} has no rule here")
        return ast.unparse(expression)

    def name(self, node: ast.Name) -> None:
        """Import a name, or its twin, from the module that defines it."""
        name, home = node.id, self._homes.get(node, self.source)
        if hasattr(builtins, name):
            return
        if name in self._twins:
            target = self._twins[name].target
            if target != self._target:
                self.imports.add(f"from {target} import {name}")
            return
        thing = getattr(home.module, name, None)
        if _root(home.module) == _root(thing) and waits_for_something(thing):
            raise self.refused(node, f"{name} has no twin; what is exported has one")
        found = home.imported(name)
        if found is not None:
            statement, one = found
            written = ast.unparse(ast.alias(one.name, one.asname))
            if isinstance(statement, ast.ImportFrom):
                module = statement.module or ""
                exporter = self._rules.exporter(module, one.name, thing)
                self.imports.add(f"from {exporter or module} import {written}")
            else:
                self.imports.add(f"import {written}")
            return
        if name.startswith("_") or thing is None:
            raise RefusedError(f"{home.name}: the name {name} is not public")
        exporter = self._rules.exporter(home.name, name, thing)
        self.imports.add(f"from {exporter or home.name} import {name}")

    def original(self, name: str, alias: str) -> str:
        """Return what the asyncio class or function is called here: `recipes.Lock`, or an alias."""
        home = self.source
        exporter = self._rules.exporter(home.name, name, getattr(home.module, name))
        if exporter is None:
            self.imports.add(f"from {home.name} import {name} as {alias}")
            return alias
        above, _, package = exporter.rpartition(".")
        self.imports.add(f"from {above} import {package}")
        return f"{package}.{name}"

    def refused(self, node: ast.AST, reason: str) -> RefusedError:
        return RefusedError(f"{self.source.name}:{getattr(node, 'lineno', 0)}: {reason}")


def taken_apart(kind: ast.expr) -> tuple[str, list[ast.expr]]:
    """Split `a.B[c, d]` into its parts."""
    if not isinstance(kind, ast.Subscript):
        return "", []
    inside = kind.slice
    parts = list(inside.elts) if isinstance(inside, ast.Tuple) else [inside]
    return ast.unparse(kind.value), parts


def all_arguments(node: Function) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _alternatives(kind: ast.expr) -> list[ast.expr]:
    """Return the parts of `a | b`."""
    if isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr):
        return [*_alternatives(kind.left), *_alternatives(kind.right)]
    return [kind]


def _optional(kind: ast.expr) -> ast.expr | None:
    """Return the `a` of `a | None`."""
    parts = [one for one in _alternatives(kind) if ast.unparse(one) != "None"]
    return parts[0] if len(parts) == 1 and parts[0] is not kind else None


def _is_callable(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Callable"


def _is_self(kind: ast.AST) -> bool:
    return isinstance(kind, ast.Name) and kind.id == "Self"


def _async_name(kind: ast.expr) -> str | None:
    """Return a name that only asyncio uses, if there is one."""
    for node in ast.walk(kind):
        if isinstance(node, ast.Name) and node.id in {*_ASYNC_NAMES, "asyncio"}:
            return ast.unparse(node)
    return None


def _root(thing: Any) -> str:
    """Return the outermost package of a module or a class."""
    return str(getattr(thing, "__module__", getattr(thing, "__name__", ""))).partition(".")[0]


def _unless_none(value: str, wrap: Wrap) -> str:
    if value.isidentifier():
        return f"(None if {value} is None else {wrap(value)})"
    return f"(None if (_found := {value}) is None else {wrap('_found')})"


def _dotted(value: str) -> str:
    return value if value.isidentifier() or value.endswith(")") else f"({value})"
