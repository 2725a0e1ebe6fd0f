"""A counter whose users are killed in the middle of an addition, as processes: it counts once."""

from __future__ import annotations

from paddock.client.client import Client
from paddock.recipes import Counter
from tests.fault.stage.recipe_processes import HOLDING, PATH, Actor, Aftermath, Killing, play_kills

NUMBER = f"{PATH}/number"


async def add(me: Actor) -> None:
    me.say(HOLDING, await Counter(me.client, NUMBER).add(2))


async def make_number(observer: Client) -> None:
    await observer.create(NUMBER, b"5", make_parents=True)


async def judge(aftermath: Aftermath) -> None:
    assert (await aftermath.observer.get(NUMBER)).data == b"9"
    assert aftermath.said["behind"] == [(HOLDING, "9")]


def test_an_addition_counts_once_when_whoever_added_is_killed() -> None:
    play_kills(
        Killing(
            add,
            moments=("creating",),
            creates_with="multi",
            prepare=make_number,
            judge=judge,
            remains=(NUMBER,),
        )
    )
