"""Log rooms in every trouble: nothing is appended twice, told twice, or left out."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

import pytest

from paddock.client.client import Client
from paddock.errors import ChannelClosedError, ConnectionLostError
from paddock.protocol import opcodes
from paddock.recipes import ChannelDeleted, ChannelOpened, LogEntry, LogRoom
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Scene, Story, Trouble, play
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

PATH: Final = "/recipe"
# What a reader reads up to, and when that is written: when all trouble is over.
END: Final = b"the end"
END_S: Final = 60.0


async def read(me: Player) -> None:
    """Follow the room up to its end, and take everything down."""
    async with aclosing(LogRoom(me.client, PATH).follow()) as stream:  # type: ignore[type-var]
        async for event in stream:
            me.note("is told", event)
            if isinstance(event, LogEntry) and event.data == END:
                return


def writer(*data: bytes) -> Part:
    """Return a client that appends `data`: to the oldest channel, then to new ones."""

    async def write(me: Player) -> None:
        room = LogRoom(me.client, PATH)
        [channel, *_] = await room.channels()
        for one in data:
            me.note("tries", one)
            me.note("has appended", (channel.number, await channel.append(one), one))
            channel = await room.open_channel()
            me.note("has opened", channel.number)

    return write


async def end(me: Player) -> None:
    """Write the last entry when nobody writes any more."""
    await asyncio.sleep(END_S)
    *_, channel = await LogRoom(me.client, PATH).channels()
    await channel.append(END)


async def open_first(client: Client) -> None:
    await (await LogRoom(client, PATH).open_channel()).append(b"first")


def seen(scene: Scene, who: str) -> list[object]:
    return [note.value for note in scene.notes if note.who == who and note.what == "is told"]


async def judge_writer(scene: Scene) -> None:
    """See that everything is there once, and that a reader was told exactly that, in order."""
    room = LogRoom(scene.observer, PATH)
    channels = await room.channels()
    entries = [entry for channel in channels for entry in await channel.entries()]
    entries.sort(key=lambda entry: entry.zxid)
    data = [entry.data for entry in entries]
    assert len(set(data)) == len(data)
    tried = {note.value for note in scene.notes if note.what == "tries"}
    assert set(data) <= tried | {b"first", END}
    there = {(entry.channel, entry.number, entry.data) for entry in entries}
    assert {note.value for note in scene.notes if note.what == "has appended"} <= there
    told = seen(scene, "rival 1")
    assert [event for event in told if isinstance(event, LogEntry)] == entries
    opened = [event.channel for event in told if isinstance(event, ChannelOpened)]
    assert opened == [channel.number for channel in channels] == [*range(len(channels))]
    known = [note.value for note in scene.notes if note.what == "has opened"]
    assert sorted(known) == sorted(set(known))
    if not scene.is_subject_gone and not scene.is_subject_cancelled and not scene.forgiven:
        assert len(known) == len(channels) - 1


WRITING: Final = Story(
    subject=writer(b"one"),
    rivals=(read, writer(b"three"), end),
    prepare=open_first,
    judge=judge_writer,
    remains=("/recipe/*",),
)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_writer_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](WRITING) > 1


async def check_point(me: Player) -> None:
    """Write, and twice begin a new channel for a checkpoint; the second time in haste."""
    room = LogRoom(me.client, PATH)
    [old] = await room.channels()
    await asyncio.sleep(1.0)
    await old.append_all([b"second", b"third"])
    new = await room.open_channel()
    await new.append(b"new")
    await old.append(b"one more")
    await asyncio.sleep(1.0)
    await old.delete()
    last = await room.open_channel()
    await new.append(b"seen by nobody, or not")
    await new.delete()
    await last.append(b"after all")


async def judge_reader(scene: Scene) -> None:
    """See that the subject was told everything that it could be told."""
    events = seen(scene, "the subject")
    entries = [event for event in events if isinstance(event, LogEntry)]
    # Each once, and in order.
    places = [(entry.zxid, entry.number) for entry in entries]
    assert places == sorted(set(places))
    opened = [event.channel for event in events if isinstance(event, ChannelOpened)]
    assert opened == sorted(set(opened))
    for event in events:
        if isinstance(event, ChannelDeleted) and event.is_complete:
            told = [entry.number for entry in entries if entry.channel == event.channel]
            assert told == [*range({0: 4, 1: 2}[event.channel])]
    if entries and entries[-1].data == END:
        # It came to the end, so it was told all that is left.
        assert [entry.data for entry in entries if entry.channel == 2] == [b"after all", END]
    if scene.is_undisturbed:
        assert events[-1] == entries[-1]
        assert ChannelDeleted(0, is_complete=True) in events


READING: Final = Story(
    subject=read,
    rivals=(check_point, end),
    prepare=open_first,
    judge=judge_reader,
    remains=("/recipe/*",),
)


@pytest.mark.parametrize("trouble", [name for name in BRIEF if name != "every cancellation"])
def test_a_reader_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](READING) > 1


def test_a_reader_that_is_cancelled_leaves_nothing_behind() -> None:
    """It has nothing but a watch, so a short story will do."""
    joining = Story(subject=read, rivals=(end,), prepare=open_first, remains=("/recipe/*",))
    assert BRIEF["every cancellation"](joining) > 1


async def delete_oldest(me: Player) -> None:
    """Delete the oldest channel, while another one appends to it for as long as that goes."""
    [channel, *_] = await LogRoom(me.client, PATH).channels()
    await channel.append_all([b"a", b"b"])
    await channel.delete()
    me.note("has deleted")


async def append_until_closed(me: Player) -> None:
    """Append to the oldest channel until it is closed, if it ever is; then delete it, too."""
    channels = await LogRoom(me.client, PATH).channels()
    for channel in channels:
        try:
            for number in range(30):
                await channel.append(b"%d" % number)
                await asyncio.sleep(1.0)
        except ChannelClosedError:
            me.note("is closed")
        await channel.delete()


async def judge_deleted(scene: Scene) -> None:
    """Assert that nothing is left, whichever client has deleted it."""
    assert await LogRoom(scene.observer, PATH).channels() == []
    if scene.is_undisturbed:
        assert [note.what for note in scene.notes] == ["has deleted", "is closed"]


DELETING: Final = Story(
    subject=delete_oldest,
    rivals=(append_until_closed,),
    prepare=open_first,
    judge=judge_deleted,
)


@pytest.mark.parametrize("trouble", ["undisturbed", "every cut", "every cancellation"])
def test_a_deletion_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](DELETING) > 1


@pytest.mark.parametrize("exact", [False, True])
def test_an_append_that_nobody_can_know_of_is_said_to_be_so_and_not_made_again(exact: bool) -> None:
    """The reply is lost, and before we look a checkpoint has deleted the channel's entries.

    In an exact session it is known.
    """

    async def append(me: Player) -> None:
        [channel] = await LogRoom(me.client, PATH).channels()
        try:
            await channel.append(b"mine")
        except ConnectionLostError:
            me.note("is not known")

    async def judge(scene: Scene) -> None:
        assert len(scene.notes) == (0 if scene.is_undisturbed or exact else 1)

    def deleted_while_away(nth: int, *, with_channel: bool) -> Trouble:
        def begin(scene: Scene) -> None:
            fault = scene.proxy.when(nth=nth).cut_after(stay_away=True)
            scene.expect(fault, "the reply is lost")

            async def delete() -> None:
                await fault.happened()
                [channel] = await LogRoom(scene.observer, PATH).channels()
                if with_channel:
                    await channel.delete()
                else:
                    await channel.close()
                    for name in await scene.observer.children(channel.path):
                        await scene.observer.delete(f"{channel.path}/{name}")
                scene.proxy.heal()

            scene.help(delete())

        return Trouble("the entries are deleted while we are away", begin)

    story = Story(
        subject=append, prepare=open_first, judge=judge, remains=("/recipe/*",), exact=exact
    )
    [write] = [
        nth for nth, one in enumerate(play(story).requests, 1) if one.operation == opcodes.MULTI
    ]
    for with_channel in (False, True):
        play(story, deleted_while_away(write, with_channel=with_channel))
