"""The blocking twin is what its tool would write today."""

from __future__ import annotations

import importlib

import pytest

from tools import twin


@pytest.mark.parametrize("written", twin.everything(), ids=lambda one: str(one.target))
def test_the_twin_is_current(written: twin.Pair | twin.Package) -> None:
    present = twin.path_of(written).read_text(encoding="utf-8")
    assert present == twin.text_of(written), "run `make generated`"


def test_no_twin_is_left_of_a_recipe_that_is_no_more() -> None:
    assert twin.orphans() == [], "run `make generated`"


def test_the_recipes_of_a_folder_have_one_module() -> None:
    targets = {
        pair.target
        for pair in twin.rules().pairs
        if pair.source.startswith("paddock.recipes.locks.")
    }
    assert targets == {"paddock.sync.recipes.locks"}


def test_the_exceptions_are_of_something_that_is_there() -> None:
    rules = twin.rules()
    classes = {
        name: getattr(importlib.import_module(pair.source), name)
        for name, pair in rules.twins.items()
    }
    methods = [one.split(".") for one in rules.asyncio_only]
    assert [method for kind, method in methods if not hasattr(classes[kind], method)] == []
    assert rules.owners | rules.builders | rules.made_inside <= set(classes)
