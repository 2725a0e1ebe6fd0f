"""JSON as what a type says."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from paddock.recipes.values.typed import from_json, to_json


class Color(enum.Enum):
    BLUE = "blue"
    RED = "red"


@dataclass
class Inner:
    ratio: float = 0.5
    pair: tuple[int, ...] = ()


@dataclass
class Outer:
    name: str
    is_on: bool
    color: Color
    level: Literal["low", "high"]
    inner: Inner
    several: list[Inner] = field(default_factory=list)
    by_name: dict[str, int | None] = field(default_factory=dict)
    anything: Any = None


WHOLE = Outer(
    "n", True, Color.RED, "low", Inner(1.0, (1, 2)), [Inner()], {"a": 1, "b": None}, [1, "x"]
)


def test_what_is_written_is_read_again() -> None:
    assert from_json(Outer, to_json(WHOLE)) == WHOLE


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (float, "1", 1.0),
        (dict, '{"a": [1]}', {"a": [1]}),
        (list, "[1, true]", [1, True]),
        (int | None, "null", None),
        (Inner, "{}", Inner()),
    ],
)
def test_what_fits_is_taken(kind: Any, text: str, value: Any) -> None:
    found = from_json(kind, text.encode())
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        (int, "true", "all of it: expected int, not True"),
        (int, "1.5", "all of it: expected int, not 1.5"),
        (str, "null", "all of it: expected str, not None"),
        (bool, "1", "expected bool"),
        (Color, '"green"', "expected Color, not 'green'"),
        (Literal["low"], '"high"', "'high'"),
        (Inner, "[]", "expected Inner"),
        (Inner, '{"pair": [1, "2"]}', r"pair\[1\]: expected int, not '2'"),
        (Inner, '{"pair": 1}', "pair: expected tuple"),
        (Inner, '{"size": 1}', "size: there is no such field"),
        (dict[str, Inner], '{"a": {"ratio": "x"}}', "a.ratio: expected float"),
        (dict[str, int], "[]", "expected dict"),
        (int | None, '"x"', "expected int, not 'x'; or all of it: expected NoneType"),
        (Outer, "{}", "name: it is missing"),
        (int, "{", "it is no JSON"),
        (int, "\xff", "it is no JSON"),
    ],
)
def test_what_does_not_fit_is_named(kind: Any, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        from_json(kind, text.encode("latin-1"))


def test_what_json_cannot_say_is_not_written() -> None:
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        to_json(object())
