"""Read-write locks whose contenders are killed, as processes: the others go on."""

from __future__ import annotations

from paddock.recipes import ReadWriteLock
from tests.fault.stage.recipe_processes import HOLDING, Actor, Killing, play_kills


async def write(me: Actor) -> None:
    async with ReadWriteLock(me.client, me.path).write as grant:
        me.say(HOLDING, grant.token)
        await me.wait_to_go_on()


def test_a_read_write_lock_goes_on_when_a_writer_is_killed() -> None:
    play_kills(Killing(write))
