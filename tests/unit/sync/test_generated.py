"""The blocking twin is what its tool would write today."""

from __future__ import annotations

import pytest

from tools import twin


@pytest.mark.parametrize("written", twin.everything(), ids=lambda one: str(one.target))
def test_the_twin_is_current(written: twin.Pair | twin.Package) -> None:
    present = twin.path_of(written).read_text(encoding="utf-8")
    assert present == twin.text_of(written), "run `make generated`"


def test_no_twin_is_left_of_a_recipe_that_is_no_more() -> None:
    assert twin.orphans() == [], "run `make generated`"
