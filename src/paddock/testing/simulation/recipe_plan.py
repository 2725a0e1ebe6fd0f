"""The plan of a world of recipes: that of its seed, with clients that play recipes instead."""

from __future__ import annotations

import dataclasses
import random
from typing import Final

from paddock.testing.simulation.plan import Burst, ClientPlan, Plan, Wish, make_plan
from paddock.testing.simulation.recipe_client import ACTS

RECIPES: Final = "recipes"
_TIMEOUTS: Final = (2.0, 4.0, 8.0)
# A few recipes in a world, so that clients meet.
_ACTS_MAX: Final = 3


def make_recipe_plan(seed: int, servers: int = 1) -> Plan:
    """Return the plan of a seed."""
    plan = make_plan(seed, servers)
    draw = random.Random(f"{seed} recipes")
    acts = draw.sample(sorted(ACTS), draw.randint(1, _ACTS_MAX))
    clients = tuple(
        _client(one, acts, random.Random(f"{seed} recipes {one.name}"), plan.end)
        for one in plan.clients
    )
    return dataclasses.replace(plan, clients=clients)


def _client(one: ClientPlan, acts: list[str], draw: random.Random, end: float) -> ClientPlan:
    bursts: list[Burst] = []
    at, count = 0.0, 0
    pace = draw.choice((0.2, 1.0, 3.0))
    while at < end and len(bursts) < 30:
        pause = draw.expovariate(1 / pace)
        at += pause
        wishes = []
        for _ in range(draw.choice((1, 1, 1, 2))):
            count += 1
            wishes.append(Wish(draw.choice(acts), data=f"{one.name}-{count}"))
        bursts.append(Burst(round(pause, 4), tuple(wishes)))
    return ClientPlan(one.name, RECIPES, max(one.timeout, draw.choice(_TIMEOUTS)), tuple(bursts))
