"""A semaphore in every trouble: never more leases than there are, and nobody waits for the dead."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from paddock.recipes import Semaphore
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Story, everybody_held
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

# Longer than a session lives that nobody hears of: a holder that is cut off has to be told.
LONG_S: Final = 12.0
# What its nodes stand under; the service removes these some time after the last has gone.
PARTS: Final = ("/recipe/locks", "/recipe/leases")


def contender(leases: int, after_s: float = 0.0, for_s: float = 2.0) -> Part:
    """Return a client that requests a lease after `after_s` and holds it for `for_s` seconds."""

    async def contend(me: Player) -> None:
        await asyncio.sleep(after_s)
        async with Semaphore(me.client, "/recipe", leases=leases) as grant:
            with me.holds(grant.token, share=1):
                await me.write(grant)
                await asyncio.sleep(for_s)
                await me.write(grant)

    return contend


# Two hold until the subject has waited for a while; two wait behind it, one of them for its lease.
# Whose place in the line is deleted may have a lease all the same, so that takes its time.
IN_THE_MIDDLE: Final = Story(
    subject=contender(2, 1.0, LONG_S),
    rivals=(
        contender(2, 0.0, 3.0),
        contender(2, 0.5, 3.0),
        contender(2, 1.5),
        contender(2, 1.6, 16.0),
    ),
    capacity=2,
    remains=PARTS,
    judge=everybody_held,
)
# There is one lease, so its holder is alone, and tokens grow.
THE_ONLY_ONE: Final = Story(
    subject=contender(1, 0.0, LONG_S),
    rivals=(contender(1, 1.0), contender(1, 1.1)),
    remains=PARTS,
    judge=everybody_held,
)


# Of two cuts not all: there are twice as many requests as a lock has.
@pytest.mark.parametrize("trouble", [one for one in TROUBLES if one != "every two cuts"])
def test_a_semaphore_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](IN_THE_MIDDLE) > 1


@pytest.mark.parametrize("trouble", BRIEF)
def test_a_semaphore_with_one_lease_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](THE_ONLY_ONE) > 1
