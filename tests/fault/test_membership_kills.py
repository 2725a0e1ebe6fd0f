"""Members who are killed, as processes: their name is free again, and everybody sees it."""

from __future__ import annotations

from paddock.recipes import Membership
from tests.fault.stage.recipe_processes import HOLDING, Actor, Killing, play_kills


async def have_the_name(me: Actor) -> None:
    membership = Membership(me.client, me.path)
    async with membership.joined("name"):
        [own] = await membership.members()
        me.say(HOLDING, own.token)
        await me.wait_to_go_on()


def test_a_name_is_free_again_when_its_member_is_killed() -> None:
    play_kills(Killing(have_the_name, waits_with="exists"))
