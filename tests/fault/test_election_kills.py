"""Elections whose candidates are killed, as processes: the next one leads, and nothing is left."""

from __future__ import annotations

from paddock.recipes import Election
from tests.fault.stage.recipe_processes import HOLDING, Actor, Killing, play_kills


async def lead(me: Actor) -> None:
    async with Election(me.client, me.path) as election:
        leadership = await election.wait_leader()
        me.say(HOLDING, leadership.token)
        await me.wait_to_go_on()


def test_the_next_one_leads_when_a_candidate_is_killed() -> None:
    play_kills(Killing(lead))
