"""The plan of a world of recipes: that of its seed, with clients that play recipes instead."""

from __future__ import annotations

import dataclasses
import random
from typing import Final

from paddock.testing.simulation.plan import (
    PART,
    PAUSE_CLIENT,
    Burst,
    ClientPlan,
    Fault,
    Plan,
    Wish,
    make_plan,
)
from paddock.testing.simulation.recipe_client import ACTS

RECIPES: Final = "recipes"
_TIMEOUTS: Final = (2.0, 4.0, 8.0)
_RATES: Final = (1.0, 1.0, 0.9, 1.1)
_LOCKS: Final = 0.3
_THIEVES: Final = 0.2
_LONELY: Final = (1.0, 5.0, 12.0)
_LONELY_MAX: Final = 4
# A few recipes in a world, so that clients meet.
_ACTS_MAX: Final = 3


def make_recipe_plan(seed: int, servers: int = 1) -> Plan:
    """Return the plan of a seed."""
    plan = make_plan(seed, servers)
    draw = random.Random(f"{seed} recipes")
    others = sorted({*ACTS} - {"lock", "thief"})
    acts = draw.sample(others, draw.randint(1, _ACTS_MAX))
    if draw.random() < _LOCKS:
        # The most used one.
        acts[0] = "lock"
    clients = tuple(
        _client(one, acts, random.Random(f"{seed} recipes {one.name}"), plan.end)
        for one in plan.clients
    )
    # Holders that do not know that their session is over are what fencing is for.
    lonely = [
        Fault(
            round(draw.uniform(1, plan.end), 4),
            draw.choice((PAUSE_CLIENT, PART)),
            draw.randint(1, len(clients)),
            round(draw.choice(_LONELY) * draw.uniform(0.5, 1.5), 4),
        )
        for _ in range(draw.randint(0, _LONELY_MAX))
    ]
    faults = sorted((*plan.faults, *lonely), key=lambda one: one.at)
    return dataclasses.replace(plan, clients=clients, faults=tuple(faults))


def _client(one: ClientPlan, acts: list[str], draw: random.Random, end: float) -> ClientPlan:
    bursts: list[Burst] = []
    at, count = 0.0, 0
    pace = draw.choice((0.2, 1.0, 3.0))
    while at < end and len(bursts) < 20:
        pause = draw.expovariate(1 / pace)
        at += pause
        wishes = []
        for _ in range(draw.choice((1, 1, 1, 2))):
            count += 1
            # Now and then somebody deletes the node of a holder by hand.
            name = draw.choice(acts)
            if name == "lock" and draw.random() < _THIEVES:
                name = "thief"
            wishes.append(Wish(name, data=f"{one.name}-{count}"))
        bursts.append(Burst(round(pause, 4), tuple(wishes)))
    timeout = max(one.timeout, draw.choice(_TIMEOUTS))
    return ClientPlan(one.name, RECIPES, timeout, tuple(bursts), draw.choice(_RATES))
