"""Log rooms: a reader that joins is told every event, once and in order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import aclosing
from typing import Any, Final

import pytest

from paddock.errors import (
    ChannelClosedError,
    GrantLostError,
    InvalidArgumentError,
    NotEmptyError,
    SessionExpiredError,
)
from paddock.recipes import (
    ChannelDeleted,
    ChannelOpened,
    Lock,
    LogChannel,
    LogEntry,
    LogRoom,
    RoomEvent,
)
from tests.support.apis import asyncio_only, recipe
from tests.support.recipes import clients, run, until
from tests.support.server import Service


async def told(
    room: LogRoom, count: int, events: list[RoomEvent] | None = None, **named: Any
) -> list[RoomEvent]:
    """Return the first `count` events that a reader is told."""
    events = [] if events is None else events
    async with aclosing(room.follow(**named)) as stream:  # type: ignore[type-var]
        async for event in stream:
            events.append(event)
            if len(events) == count:
                break
    return events


def shown(events: list[RoomEvent]) -> list[object]:
    """Return events in short form."""
    found: list[object] = []
    for event in events:
        match event:
            case LogEntry(channel, number, data):
                found.append((channel, number, data))
            case _:
                found.append(event)
    return found


ROOMS: Final = 10
CHANNELS: Final = (20, 5)
ENTRIES: Final = (5, 20)


@asyncio_only
@pytest.mark.everywhere
def test_ten_rooms_with_all_their_channels_and_entries(service: Service, path: str) -> None:
    """Ten readers join when twenty channels have five entries, and see 25 with 25 in the end."""

    async def write(room: LogRoom, joined: asyncio.Event, ready: asyncio.Event) -> None:
        first = await asyncio.gather(*(room.open_channel() for _ in range(CHANNELS[0])))
        await asyncio.gather(*(append(channel, 0, ENTRIES[0]) for channel in first))
        ready.set()
        await joined.wait()
        more = await asyncio.gather(*(room.open_channel() for _ in range(CHANNELS[1])))
        await asyncio.gather(
            *(append(channel, ENTRIES[0], sum(ENTRIES)) for channel in first),
            *(append(channel, 0, sum(ENTRIES)) for channel in more),
        )

    async def append(channel: LogChannel, begin: int, end: int) -> None:
        numbers = await asyncio.gather(
            *(channel.append(b"%d/%d" % (channel.number, one)) for one in range(begin, end))
        )
        assert numbers == [*range(begin, end)]

    async def read(room: LogRoom, joined: asyncio.Event, ready: asyncio.Event) -> None:
        await ready.wait()
        channels: list[int] = []
        entries: dict[int, list[bytes]] = defaultdict(list)
        last = 0
        async with aclosing(room.follow()) as stream:  # type: ignore[type-var]
            async for event in stream:
                match event:
                    case ChannelOpened(channel):
                        channels.append(channel)
                    case LogEntry(channel, number, data, zxid):
                        assert channel in channels
                        assert number == len(entries[channel])
                        entries[channel].append(data)
                        assert zxid > last
                        last = zxid
                    case _:
                        pytest.fail(f"nothing was deleted: {event}")
                count = sum(map(len, entries.values()))
                if count == CHANNELS[0] * ENTRIES[0]:
                    joined.set()
                elif count == sum(CHANNELS) * sum(ENTRIES):
                    break
        assert channels == [*range(sum(CHANNELS))]
        for channel, found in entries.items():
            assert found == [b"%d/%d" % (channel, one) for one in range(sum(ENTRIES))]

    async def scenario() -> None:
        # Of thousands of tasks, most of the time would go into where each was made.
        asyncio.get_running_loop().set_debug(False)
        async with clients(service, 2) as [writer, reader], asyncio.TaskGroup() as group:
            for number in range(ROOMS):
                events = asyncio.Event(), asyncio.Event()
                group.create_task(write(LogRoom(writer, f"{path}/{number}"), *events))
                group.create_task(read(LogRoom(reader, f"{path}/{number}"), *events))

    run(scenario)


@pytest.mark.everywhere
def test_a_reader_follows_a_checkpoint_into_the_new_channel(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [writer, reader]:
            room = recipe(LogRoom)(writer, path)
            old = await room.open_channel()
            assert await old.append(b"a") == 0
            assert await old.append_all([b"b", b"c"]) == [1, 2]
            events: list[RoomEvent] = []
            reading = asyncio.ensure_future(told(recipe(LogRoom)(reader, path), 8, events))
            new = await room.open_channel()
            assert await new.append(b"d") == 0
            assert await old.append(b"e") == 3
            await until(lambda: _has(events, 7))
            await old.delete()
            assert shown(await reading) == [
                ChannelOpened(0),
                (0, 0, b"a"),
                (0, 1, b"b"),
                (0, 2, b"c"),
                ChannelOpened(1),
                (1, 0, b"d"),
                (0, 3, b"e"),
                ChannelDeleted(0, is_complete=True),
            ]
            assert [channel.number for channel in await room.channels()] == [1]
            assert [entry.data for entry in await new.entries()] == [b"d"]
            assert await old.entries() == []

    run(scenario)


async def _has(events: list[RoomEvent], count: int) -> bool:
    return len(events) == count


def test_a_reader_may_come_before_the_room(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [writer, reader]:
            reading = asyncio.ensure_future(told(recipe(LogRoom)(reader, f"{path}/room"), 2))
            channel = await recipe(LogRoom)(writer, f"{path}/room").open_channel()
            await channel.append(b"first")
            assert shown(await reading) == [ChannelOpened(0), (0, 0, b"first")]
            assert channel.path.startswith(f"{path}/room/")

    run(scenario)


def test_an_entry_that_was_deleted_first_is_skipped(service: Service, path: str) -> None:
    """The bug was to ask for it again and again, for ever."""

    async def scenario() -> None:
        async with clients(service, 2) as [writer, reader]:
            room = recipe(LogRoom)(writer, path)
            channel = await room.open_channel()
            await channel.append_all([b"a", b"b", b"c"])
            async with aclosing(recipe(LogRoom)(reader, path).follow()) as stream:  # type: ignore[type-var]
                events = [await anext(stream) for _ in range(4)]
                # While nobody reads, what comes is deleted again.
                await channel.append_all([b"d", b"e"])
                last = await room.open_channel()
                await channel.delete()
                await last.append(b"f")
                events += [await anext(stream) for _ in range(3)]
            assert shown(events)[-3:] == [
                ChannelOpened(1),
                ChannelDeleted(0, is_complete=False),
                (1, 0, b"f"),
            ]

    run(scenario)


def test_who_joins_while_a_channel_is_deleted_gets_what_is_there(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            room = recipe(LogRoom)(client, path)
            channel = await room.open_channel()
            await channel.append_all([b"a", b"b", b"c"])
            first, *_ = sorted(await client.children(channel.path), key=lambda name: name[-10:])
            await client.delete(f"{channel.path}/{first}")
            assert shown(await told(room, 3)) == [ChannelOpened(0), (0, 1, b"b"), (0, 2, b"c")]

    run(scenario)


def test_a_closed_channel_takes_no_more_entries(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            room = recipe(LogRoom)(client, path)
            channel = await room.open_channel()
            await channel.append(b"last")
            await channel.close()
            await channel.close()
            with pytest.raises(ChannelClosedError, match="the channel is closed"):
                await channel.append(b"too late")
            assert [entry.data for entry in await channel.entries()] == [b"last"]
            await channel.delete()
            await channel.delete()
            with pytest.raises(ChannelClosedError):
                await channel.append(b"much too late")
            assert (await room.open_channel()).number == 1

    run(scenario)


def test_nothing_is_written_under_a_grant_that_is_over(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, other]:
            room = recipe(LogRoom)(client, f"{path}/room")
            grant = await recipe(Lock)(client, f"{path}/lock").acquire()
            channel = await room.open_channel(grant=grant)
            assert await channel.append(b"as the master", grant=grant) == 0
            # As the service has it: the holder may not know yet, and tries.
            await client.transaction().delete(grant.path).commit()
            with pytest.raises(GrantLostError):
                await channel.append(b"as one deposed", grant=grant)
            with pytest.raises(GrantLostError):
                await room.open_channel(grant=grant)
            with pytest.raises(GrantLostError):
                await channel.delete(grant=grant)
            events = await told(recipe(LogRoom)(other, f"{path}/room"), 2)
            assert shown(events) == [ChannelOpened(0), (0, 0, b"as the master")]

    run(scenario)


def test_a_reader_goes_on_behind_an_entry(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, later]:
            room = recipe(LogRoom)(client, path)
            one, two = await room.open_channel(), await room.open_channel()
            await one.append(b"a")
            await two.append(b"b")
            # Written as one: an entry in the middle is a place, too.
            await one.append_all([b"c", b"d"])
            await two.append(b"e")
            events = await told(room, 5)
            last = events[-1]
            assert isinstance(last, LogEntry)
            assert last.data == b"c"
            # What a checkpoint keeps of it is enough.
            place = LogEntry(last.channel, last.number, b"", last.zxid)
            assert shown(await told(recipe(LogRoom)(later, path), 4, after=place)) == [
                ChannelOpened(0),
                ChannelOpened(1),
                (0, 2, b"d"),
                (1, 1, b"e"),
            ]

    run(scenario)


def test_strangers_are_of_no_matter(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            room = recipe(LogRoom)(client, path)
            await client.create(f"{path}/stranger/entry-0000000000", make_parents=True)
            await client.create(f"{path}/entry-0000000000")
            await client.create(f"{path}/channel-12")
            channel = await room.open_channel()
            await client.create(f"{channel.path}/stranger")
            await channel.append(b"ours")
            assert shown(await told(room, 2))[-1] == (channel.number, 1, b"ours")
            assert [one.number for one in await room.channels()] == [channel.number]
            with pytest.raises(NotEmptyError):
                await channel.delete()

    run(scenario)


def test_a_reader_whose_session_is_over_is_told(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            stream = recipe(LogRoom)(client, path).follow()
            reading = asyncio.ensure_future(_next(stream))
            await asyncio.sleep(0)
        with pytest.raises(SessionExpiredError):
            await reading

    run(scenario)


async def _next(stream: Any) -> None:
    async with aclosing(stream):
        await anext(stream)


def test_bad_arguments_are_named(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            with pytest.raises(InvalidArgumentError, match="path: "):
                recipe(LogRoom)(client, "no slash")
            with pytest.raises(InvalidArgumentError, match="acl: "):
                recipe(LogRoom)(client, path, acl=[])
            channel = await recipe(LogRoom)(client, path).open_channel()
            with pytest.raises(InvalidArgumentError, match="data: expected bytes, not str"):
                await channel.append("text")  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError, match="entries: "):
                await channel.append_all(b"bytes")  # type: ignore[arg-type]
            assert await channel.append_all([]) == []

    run(scenario)
