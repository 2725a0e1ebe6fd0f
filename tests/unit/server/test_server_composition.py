"""The server is composed of parts: no class has more than one class of ours above it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import pytest

import paddock.server
from paddock.errors import PaddockError

DEPTH_MAX = 2


def depth(one: type[Any]) -> int:
    """Return the levels of our own classes from this one up.

    A Protocol is not a level, nor is PaddockError, which is to our errors what Exception is to all.
    """
    above = max((depth(base) for base in one.__bases__), default=0)
    is_ours = one.__module__.startswith(("paddock.", "tests.")) and one is not PaddockError
    return above + (is_ours and not getattr(one, "_is_protocol", False))


def classes() -> list[type[Any]]:
    """List every class that a module of the server defines."""
    found = []
    for module in pkgutil.walk_packages(paddock.server.__path__, "paddock.server."):
        members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        found += [one for _, one in members if one.__module__ == module.name]
    return found


@pytest.mark.parametrize("one", classes(), ids=lambda one: f"{one.__module__}.{one.__name__}")
def test_no_class_of_the_server_inherits_deeper(one: type[Any]) -> None:
    assert depth(one) <= DEPTH_MAX


def test_a_third_level_is_seen() -> None:
    class Level:
        pass

    class Below(Level):
        pass

    class TooDeep(Below):
        pass

    assert [depth(one) for one in (Level, Below, TooDeep)] == [1, 2, 3]
