"""Several locks whose contenders are killed, as processes: the others get all of them."""

from __future__ import annotations

from paddock.client.client import Client
from paddock.recipes import Lock, MultiLock
from tests.fault.stage.recipe_processes import HOLDING, PATH, Actor, Killing, play_kills

PATHS = (f"{PATH}/one", f"{PATH}/two")


async def hold_both(me: Actor) -> None:
    async with MultiLock([Lock(me.client, path) for path in PATHS]) as grant:
        me.say(HOLDING, grant.tokens[0])
        await me.wait_to_go_on()


async def make_both(observer: Client) -> None:
    """Make what its nodes stand under, so that its first create is the one that counts."""
    for path in PATHS:
        await observer.create(path, container=True, make_parents=True)


def test_several_locks_go_on_when_a_contender_is_killed() -> None:
    play_kills(Killing(hold_both, prepare=make_both, remains=PATHS))
