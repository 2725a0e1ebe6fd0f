"""A log room whose writers are killed in the middle of an append, as processes: it is there."""

from __future__ import annotations

from paddock.client.client import Client
from paddock.recipes import LogRoom
from tests.fault.stage.recipe_processes import HOLDING, PATH, Actor, Aftermath, Killing, play_kills


async def append(me: Actor) -> None:
    [channel] = await LogRoom(me.client, me.path).channels()
    me.say(HOLDING, await channel.append(me.name.encode()))


async def open_room(observer: Client) -> None:
    await LogRoom(observer, PATH).open_channel()


async def judge(aftermath: Aftermath) -> None:
    [channel] = await LogRoom(aftermath.observer, PATH).channels()
    entries = [(entry.number, entry.data) for entry in await channel.entries()]
    assert entries == [(0, b"victim"), (1, b"behind")]
    assert aftermath.said["behind"] == [(HOLDING, "1")]


def test_an_entry_is_there_once_when_its_writer_is_killed() -> None:
    play_kills(
        Killing(
            append,
            moments=("creating",),
            creates_with="multi",
            prepare=open_room,
            judge=judge,
            remains=(f"{PATH}/*",),
        )
    )
