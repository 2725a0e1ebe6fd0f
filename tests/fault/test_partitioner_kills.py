"""Members of a divided set who are killed, as processes: what they had belongs to others then."""

from __future__ import annotations

from contextlib import aclosing

from paddock.recipes import Partitioner
from tests.fault.stage.recipe_processes import HOLDING, Actor, Killing, play_kills


async def have_the_item(me: Actor) -> None:
    async with (
        Partitioner(me.client, me.path, ["only"]) as partitioner,
        aclosing(partitioner.shares()) as shares,
    ):
        async for share in shares:
            if share.items:
                me.say(HOLDING, partitioner.grant("only").token)
                await me.wait_to_go_on()
                return


def test_what_a_killed_member_had_belongs_to_another() -> None:
    remains = ("/recipe/members", "/recipe/items")
    play_kills(Killing(have_the_item, remains=remains))
