"""Semaphores whose contenders are killed, as processes: the others go on, and nothing is left."""

from __future__ import annotations

from paddock.client.client import Client
from paddock.recipes import Semaphore
from tests.fault.stage.recipe_processes import HOLDING, PATH, Actor, Killing, play_kills

PARTS = (f"{PATH}/locks", f"{PATH}/leases")


async def hold_a_lease(me: Actor) -> None:
    async with Semaphore(me.client, me.path, leases=1) as grant:
        me.say(HOLDING, grant.token)
        await me.wait_to_go_on()


async def make_parts(observer: Client) -> None:
    """Make what its nodes stand under, so that its first create is the one that counts."""
    for part in PARTS:
        await observer.create(part, container=True, make_parents=True)


def test_a_semaphore_goes_on_when_a_contender_is_killed() -> None:
    play_kills(Killing(hold_a_lease, waits_with="get_children", prepare=make_parts, remains=PARTS))
