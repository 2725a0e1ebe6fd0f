"""The campaign on a mutation: the machinery of `make mutants`, on a few that every world shows."""

import pytest

from tests.mutants.run import find
from tests.mutants.table import BY_NAME

SEEDS = range(1, 3)


@pytest.mark.source
@pytest.mark.parametrize(
    ("name", "rule"),
    [("ephemerals-survive", "replies"), ("entries-swapped", "outcomes")],
)
def test_a_mutation_is_found(name: str, rule: str) -> None:
    found = find(BY_NAME[name], SEEDS)
    assert found is not None
    assert found.seed in SEEDS
    assert found.check.startswith(rule)


@pytest.mark.source
def test_the_source_as_it_is_passes() -> None:
    assert find(None, SEEDS) is None
