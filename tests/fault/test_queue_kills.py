"""A queue whose consumers are killed, as processes: their items go to others, and none is lost."""

from __future__ import annotations

from typing import Final

from paddock.client.client import Client
from paddock.recipes import Queue
from tests.fault.stage.recipe_processes import (
    HOLDING,
    PATH,
    Actor,
    Aftermath,
    Killing,
    judge_tokens,
    play_kills,
)

FURNITURE: Final = tuple(f"{PATH}/{name}" for name in ("entries", "taken", "receipts", "dead"))


class StoppedError(Exception):
    """What a consumer raises that is not to finish."""


async def consume(me: Actor) -> None:
    """Take the one item that there is, and finish it if nobody comes behind."""
    try:
        async with Queue(me.client, me.path).take() as item:
            me.say(HOLDING, item.token)
            me.say("attempt", item.attempts)
            await me.wait_to_go_on()
            if me.name != "behind":
                raise StoppedError
        me.say("done")
    except StoppedError:
        pass


async def put_one(observer: Client) -> None:
    await Queue(observer, PATH).put(b"the item")


async def judge(aftermath: Aftermath) -> None:
    await judge_tokens(aftermath)
    said = dict(aftermath.said["behind"])
    # It is the second one, after the one before the victim, or after the victim itself: attempts
    # are counted by the service, also of one that never heard that it has the item.
    assert said["attempt"] == "2"
    assert "done" in said


def test_an_item_goes_on_when_its_consumer_is_killed() -> None:
    play_kills(
        Killing(
            consume,
            creates_with="multi",
            # Its place in the line.
            waits_with="create2",
            prepare=put_one,
            judge=judge,
            remains=FURNITURE,
        )
    )
