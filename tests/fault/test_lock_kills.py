"""Locks whose contenders are killed, as processes: the others go on, and nothing is left."""

from __future__ import annotations

from paddock.recipes import Lock, SimpleMutex
from tests.fault.stage.recipe_processes import HOLDING, Actor, Killing, play_kills


async def hold_a_lock(me: Actor) -> None:
    async with Lock(me.client, me.path) as grant:
        me.say(HOLDING, grant.token)
        await me.wait_to_go_on()


async def hold_a_mutex(me: Actor) -> None:
    async with SimpleMutex(me.client, me.path, "mutex") as grant:
        me.say(HOLDING, grant.token)
        await me.wait_to_go_on()


def test_a_lock_goes_on_when_a_contender_is_killed() -> None:
    play_kills(Killing(hold_a_lock))


def test_a_mutex_goes_on_when_a_contender_is_killed() -> None:
    # The first one is to see its own token, had it been free.
    play_kills(Killing(hold_a_mutex, creates_with="multi", waits_with="exists", waits_nth=2))
