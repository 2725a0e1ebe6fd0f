"""JSON to and from a type: dataclasses, lists and dictionaries, with every field checked.

A misfit raises ValueError, which says where: `limits.size: expected int, not 'large'`.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from contextlib import suppress
from typing import Any, Literal, Union


def from_json(kind: Any, data: bytes) -> Any:
    """Return the value of a type that JSON describes."""
    try:
        value = json.loads(data)
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from None
    return _fit(kind, value, "")


def to_json(value: Any) -> bytes:
    """Return a value as indented JSON."""
    return json.dumps(value, default=_plain, indent=2).encode()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    raise TypeError(f"{value!r} cannot be written as JSON")


def _fit(kind: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _fit_one_of(typing.get_args(kind), value, where)
    if origin is Literal and value in typing.get_args(kind):
        return value
    if origin in (list, tuple) or kind in (list, tuple):
        _check_misfit(list, kind, value, where)
        inner, *_ = typing.get_args(kind) or (Any,)
        return (origin or kind)(
            _fit(inner, one, f"{where}[{place}]") for place, one in enumerate(value)
        )
    if origin is dict or kind is dict:
        _check_misfit(dict, kind, value, where)
        *_, inner = typing.get_args(kind) or (Any,)
        return {name: _fit(inner, one, _below(where, name)) for name, one in value.items()}
    if dataclasses.is_dataclass(kind):
        _check_misfit(dict, kind, value, where)
        return _fit_dataclass(kind, value, where)
    return _fit_plain(kind, value, where)


def _fit_plain(kind: Any, value: Any, where: str) -> Any:
    if kind is float and type(value) is int:
        return float(value)
    is_none = kind in (None, types.NoneType) and value is None
    if is_none or (kind in (bool, int, float, str) and type(value) is kind):
        return value
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        with suppress(ValueError):
            return kind(value)
    raise _misfit(where, kind, value)


def _fit_one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    problems = []
    for kind in kinds:
        try:
            return _fit(kind, value, where)
        except ValueError as problem:
            problems.append(str(problem))
    raise ValueError("; or ".join(problems))


def _check_misfit(expected: type, kind: Any, value: Any, where: str) -> None:
    if not isinstance(value, expected):
        raise _misfit(where, kind, value)


def _fit_dataclass(kind: Any, value: Any, where: str) -> Any:
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    for name in value:
        if name not in fields:
            raise ValueError(f"{_below(where, name)}: there is no such field")
    for name, field in fields.items():
        is_needed = field.default is field.default_factory is dataclasses.MISSING
        if is_needed and name not in value:
            raise ValueError(f"{_below(where, name)}: it is missing")
    return kind(
        **{name: _fit(hints[name], one, _below(where, name)) for name, one in value.items()}
    )


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _misfit(where: str, kind: Any, value: Any) -> ValueError:
    name = getattr(kind, "__name__", str(kind)) if not typing.get_args(kind) else str(kind)
    return ValueError(f"{where or 'all of it'}: expected {name}, not {value!r}")
