"""Some storms, always the same ones; `make storm` plays others, for as long as one likes."""

from __future__ import annotations

import pytest

from tests.fault.recipe_storm import play_world


@pytest.mark.parametrize("seed", range(10))
def test_every_recipe_survives_a_storm(seed: int) -> None:
    assert play_world(seed).grants > 0


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(5))
def test_every_recipe_survives_many_storms(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        assert play_world(seed).grants > 0


def test_the_same_seed_is_the_same_storm() -> None:
    """Or none could be replayed."""
    first, second, other = play_world(7), play_world(7), play_world(8)
    assert first.digest() == second.digest() != other.digest()
