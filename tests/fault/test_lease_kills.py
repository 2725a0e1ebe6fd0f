"""Leases whose contenders are killed, as processes: the others go on, and nothing is left."""

from __future__ import annotations

from paddock.recipes import Lease
from tests.fault.stage.recipe_processes import HOLDING, Actor, Killing, play_kills


async def hold_a_lease(me: Actor) -> None:
    # Much longer than a victim's session: that is what ends it here.
    async with Lease(me.client, me.path, seconds=1000.0) as grant:
        me.say(HOLDING, grant.token)
        await me.wait_to_go_on()


def test_a_lease_goes_on_when_a_contender_is_killed() -> None:
    play_kills(Killing(hold_a_lease))
