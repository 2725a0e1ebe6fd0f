"""Counters whose users are killed, as processes: what they were adding is there once at most."""

from __future__ import annotations

from paddock.recipes import Counter
from tests.fault.recipe_processes import HOLDING, Actor, Aftermath, Killing, play_kills


async def count(me: Actor) -> None:
    number = await Counter(me.client, me.path).add()
    me.say(HOLDING, number)
    await me.wait_to_go_on()


async def judge_count(aftermath: Aftermath) -> None:
    """See that what was surely added is there, and what was in the middle of it once at most."""
    number = await Counter(aftermath.observer, "/recipe").get()
    said = [value for heard in aftermath.said.values() for word, value in heard if word == HOLDING]
    assert len(set(said)) == len(said)
    assert number == (len(said) + 1 if aftermath.moment == "creating" else len(said))


def test_a_counter_goes_on_when_somebody_is_killed_in_an_addition() -> None:
    play_kills(
        Killing(count, moments=(HOLDING, "creating"), creates_with="multi", judge=judge_count)
    )
