"""Members of a double barrier who are killed, as processes: the others go on without them."""

from __future__ import annotations

import asyncio

from paddock.recipes import DoubleBarrier
from tests.fault.stage.recipe_processes import HOLDING, PATH, Actor, Aftermath, Killing, play_kills


async def come_as_two(me: Actor) -> None:
    """Be a whole group, so that it is killed as a whole: nobody is left to end its round."""

    async def come(is_speaker: bool) -> None:
        async with DoubleBarrier(me.client, PATH, 2):
            if is_speaker:
                me.say(HOLDING)
            await me.wait_to_go_on()

    await asyncio.gather(come(True), come(False))
    me.say("left")


async def judge(aftermath: Aftermath) -> None:
    # Nothing but the words of those who survive: the tree is empty when this is asked.
    assert aftermath.said.pop("victim", None) is not None
    for name, said in aftermath.said.items():
        assert [word for word, _ in said] == [HOLDING, "left"], name


def test_a_barrier_opens_again_when_those_within_are_killed() -> None:
    # In the second create: one who died alone would have taken one half of a group that survives.
    play_kills(Killing(come_as_two, creates_nth=2, waits_with="exists", judge=judge))
