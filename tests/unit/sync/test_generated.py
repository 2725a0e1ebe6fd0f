"""The blocking twin is what its tool would write today."""

from __future__ import annotations

import pytest

from tools import twin


@pytest.mark.parametrize("pair", twin.PAIRS, ids=lambda pair: str(pair.target))
def test_the_twin_is_current(pair: twin.Pair) -> None:
    present = twin.path_of(pair).read_text(encoding="utf-8")
    assert present == twin.twin_of(pair), "run `make generated`"
