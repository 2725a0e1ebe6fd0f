"""Names that both APIs share: records, enums, errors and others that never wait."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
from typing import Any

from tools.blocking.rules import RefusedError, Rules
from tools.blocking.source import read


def is_shared(thing: Any) -> bool:
    """Return whether both APIs share this object, so it has no twin."""
    if inspect.isfunction(thing):
        return False
    if not inspect.isclass(thing):
        return True
    return (
        dataclasses.is_dataclass(thing)
        or issubclass(thing, enum.Enum | BaseException | tuple)
        or bool(getattr(thing, "_is_protocol", False))
    )


def waits_for_something(thing: Any) -> bool:
    """Return whether this is a class that needs a blocking twin."""
    return inspect.isclass(thing) and any(
        inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value)
        for kind in thing.__mro__
        for value in vars(kind).values()
    )


def check_shared(name: str, thing: Any, rules: Rules) -> None:
    """Raise RefusedError for a record that would bring asyncio into blocking code."""
    if not inspect.isclass(thing):
        return
    source = read(thing.__module__)
    if waits_for_something(thing):
        raise RefusedError(f"{source.name}: {name} waits for something, so it is no plain record")
    for field, kind in inspect.get_annotations(thing).items():
        for node in ast.walk(ast.parse(kind if isinstance(kind, str) else repr(kind))):
            if not isinstance(node, ast.Name):
                continue
            found = source.alias(node.id)
            names = {node.id} | (
                {one.id for one in ast.walk(found[1]) if isinstance(one, ast.Name)}
                if found
                else set()
            )
            if names & {*rules.twins, "Callable", "Awaitable"}:
                raise RefusedError(
                    f"{source.name}: {name}.{field} is {ast.unparse(node)}, which the two APIs"
                    f" have each in their own way, so {name} is no plain record"
                )
