"""Recipes in kazoo's layout in trouble: what is different from their own layout is the names."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from paddock.client.client import Client
from paddock.recipes import Lock, Semaphore
from tests.fault import test_lock_faults
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Story, everybody_held
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

PATH: Final = "/recipe/pool"


def new_lock(client: Client) -> Lock:
    return Lock(client, "/recipe", layout="kazoo")


def contender(after_s: float, for_s: float) -> Part:
    return test_lock_faults.contender(after_s, for_s, new_lock)


LOCK: Final = Story(
    subject=contender(1.0, test_lock_faults.LONG_S),
    rivals=(contender(0.0, 2.0), contender(1.5, 2.0)),
    judge=everybody_held,
)


def lessee(after_s: float = 0.0, for_s: float = 2.0) -> Part:
    """Return a client that requests one of two leases after `after_s` seconds."""

    async def hold(me: Player) -> None:
        await asyncio.sleep(after_s)
        async with Semaphore(me.client, PATH, leases=2, layout="kazoo") as grant:
            with me.holds(grant.token, share=1):
                await me.write(grant)
                await asyncio.sleep(for_s)
                await me.write(grant)

    return hold


SEMAPHORE: Final = Story(
    subject=lessee(1.0, test_lock_faults.LONG_S),
    rivals=(lessee(0.0, 3.0), lessee(0.5, 3.0), lessee(1.5), lessee(1.6, 16.0)),
    capacity=2,
    remains=(PATH, f"{PATH}-__lock__"),
    judge=everybody_held,
)
# The subject makes the nodes that all of it stands below.
FIRST: Final = Story(
    subject=lessee(0.0, test_lock_faults.LONG_S),
    rivals=(lessee(1.0), lessee(1.6, 16.0)),
    capacity=2,
    remains=(PATH, f"{PATH}-__lock__"),
    judge=everybody_held,
)


@pytest.mark.parametrize("trouble", ["undisturbed", "every cut"])
def test_a_lock_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](LOCK) > 1


@pytest.mark.parametrize("trouble", ["undisturbed", "every cut"])
def test_a_semaphore_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](SEMAPHORE) > 1


@pytest.mark.parametrize("trouble", ["every cut"])
def test_the_first_lessee_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](FIRST) > 1


@pytest.mark.long
@pytest.mark.parametrize("trouble", BRIEF)
def test_the_first_lessee_in_every_trouble(trouble: str) -> None:
    assert BRIEF[trouble](FIRST) > 1


@pytest.mark.long
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_lock_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](LOCK) > 1


@pytest.mark.long
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_semaphore_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](SEMAPHORE) > 1
