"""Some storms, always the same ones; `make storm` plays others, for as long as one likes."""

from __future__ import annotations

import inspect

import pytest

import paddock.recipes
from tests.fault.stage import storm_acts
from tests.fault.stage.recipe_storm import play_world


def test_every_recipe_is_played() -> None:
    """Whatever is made for a client has an act; the names of these say which."""
    kinds = {name: getattr(paddock.recipes, name) for name in paddock.recipes.__all__}
    made = {
        name
        for name, kind in kinds.items()
        if inspect.isclass(kind) and "client" in [*inspect.signature(kind).parameters][:1]
    }
    # What only recipes make.
    made -= {"LogChannel", "MultiGrant"}
    assert made <= set(vars(storm_acts))


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
