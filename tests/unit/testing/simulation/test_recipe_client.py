"""Recipes in the worlds of the campaign: they keep their promises, and broken ones are found."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paddock.recipes.groups.presence import Presence
from paddock.recipes.locks.line import Place
from paddock.recipes.queue.delivery import Delivery
from paddock.testing.simulation.plan import Plan, Wish
from paddock.testing.simulation.recipe_client import ACTS
from paddock.testing.simulation.recipe_plan import RECIPES, make_recipe_plan
from paddock.testing.simulation.world import run_world

DIGEST = """
from paddock.testing.simulation.recipe_plan import make_recipe_plan
from paddock.testing.simulation.world import run_world
print(run_world(make_recipe_plan(3)).digest())
"""


def plan_of(act: str, seed: int = 3) -> Plan:
    """Return a plan without faults, of one act alone."""
    plan = make_recipe_plan(seed)
    clients = []
    for client in plan.clients:
        bursts = []
        for burst in client.bursts:
            wishes = tuple(Wish(act, data=wish.data) for wish in burst.wishes)
            bursts.append(type(burst)(burst.pause, wishes))
        clients.append(type(client)(client.name, RECIPES, client.timeout, tuple(bursts)))
    return plan.with_parts(tuple(clients), ())


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_world_of_recipes_keeps_their_promises(seed: int, servers: int) -> None:
    result = run_world(make_recipe_plan(seed, servers))
    assert not result.problems, result.report()


@pytest.mark.parametrize("act", ACTS)
def test_every_act_is_played_and_judged(act: str) -> None:
    result = run_world(plan_of(act))
    assert not result.problems, result.report()
    counted = [name for name in result.counts if name.startswith("recipes: ")]
    assert counted or act == "thief"


def test_a_seed_has_one_trace_in_every_process() -> None:
    there = subprocess.run(
        [sys.executable, "-c", DIGEST],
        env=dict(os.environ, PYTHONHASHSEED="4711"),
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == run_world(make_recipe_plan(3)).digest()


async def _nothing(*_: Any) -> None:
    """Do nothing, in place of what should be done."""


async def _lose(self: Delivery) -> None:
    """Acknowledge an item in place of giving it back."""
    await self._acknowledge()


@pytest.mark.parametrize(
    ("act", "broken", "name", "wrong", "rule"),
    [
        ("lock", Place, "reach", _nothing, "alone"),
        ("rw-lock", Place, "reach", _nothing, "alone"),
        ("semaphore", Place, "before", _nothing, "client"),
        ("members", Presence, "_delete", _nothing, "members"),
        ("queue", Delivery, "_give_back", _lose, "queue"),
    ],
)
def test_a_broken_recipe_is_found(
    act: str, broken: type, name: str, wrong: Any, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broken, name, wrong)
    assert rule in run_world(plan_of(act)).kinds()
