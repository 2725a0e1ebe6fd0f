"""The nodes and events of log rooms, and a reader: one persistent watch, in the service's order.

A room's node has its channels as children, a channel's node its entries. Both are sequential and
have a mark of their writer in their names, `_c_<mark>-channel-0000000003`, by which the writer
recognises them after a lost reply. Nothing else is created below them, so the service numbers them
without a gap, from 0.

An event names the created node, so new nodes are read without a list. Lists are needed at the
beginning, and when events may have been missed: after a lost connection, or more events than are
kept. Then the nodes of the lists and of concurrent events are sorted by creation. That is complete:
a node that was created before the last list is in a list, or in an event before it.

The last number of each channel is remembered, so nothing is yielded twice. An entry that was
deleted before it could be read is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType
from paddock.errors import ConnectionLostError
from paddock.protocol.paths import child_path
from paddock.recipes.common.retry import Signal, request_each, retry

# The prefixes of the nodes.
CHANNEL: Final = "channel-"
ENTRY: Final = "entry-"

_NUMBERED: Final = re.compile(r"(?:_c_[0-9A-Za-z]+-)?(channel-|entry-)(\d{10})")
# The data of so many entries are held at once.
_BATCH_MAX: Final = 256
# How many events are kept for a slow reader; with more, it lists again.
_EVENTS_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of a channel."""

    #: The number of its channel.
    channel: int
    #: Its own number in the channel, from 0.
    number: int
    data: bytes
    #: The zxid of its creation: its place in the order of all entries of a room.
    zxid: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChannelOpened:
    """A channel exists, and its entries follow."""

    channel: int


@dataclass(frozen=True, slots=True)
class ChannelDeleted:
    """A channel is gone; no entry of it follows."""

    channel: int
    #: Whether surely every entry of it was yielded. If not, the checkpoint has the missing ones.
    is_complete: bool


# An event of a room, in the order of the service.
RoomEvent: TypeAlias = ChannelOpened | LogEntry | ChannelDeleted


class Numbered(NamedTuple):
    """A node with a number."""

    number: int
    name: str


def number_of(name: str, kind: str) -> int | None:
    """Return the number of a channel or an entry; None for any other name."""
    found = _NUMBERED.fullmatch(name)
    return int(found[2]) if found is not None and found[1] == kind else None


def in_order(names: list[str], kind: str) -> list[Numbered]:
    """Return the nodes of a kind in a list of names, by their numbers."""
    numbers = [(number_of(name, kind), name) for name in names]
    return sorted(Numbered(number, name) for number, name in numbers if number is not None)


class _Change(NamedTuple):
    """A created or deleted channel, or a created entry if it has a number."""

    is_created: bool
    path: str
    channel: int
    entry: int | None


@dataclass(slots=True)
class _Progress:
    """How far a channel was read."""

    next: int = 0
    is_complete: bool = True


class RoomWatcher(Signal):
    """A watcher that keeps the changes of a room until they are read."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._above = path.rstrip("/") + "/"
        self._changes: list[_Change] = []
        # Whether events may have been missed since the last list.
        self.has_gap = True

    def __call__(self, event: Event) -> None:
        if event.type is EventType.CREATED or event.type is EventType.DELETED:
            change = self._decode(event)
            if change is None:
                return
            if len(self._changes) >= _EVENTS_MAX:
                self._changes.clear()
                self.has_gap = True
            self._changes.append(change)
        elif event.type is EventType.NONE and (event.state.is_connected or event.state.is_final):
            self.has_gap = True
        else:
            return
        self.set()

    def take(self) -> list[_Change]:
        """Return the changes, in order, and forget them."""
        changes, self._changes = self._changes, []
        return changes

    def _decode(self, event: Event) -> _Change | None:
        assert event.path is not None
        is_created = event.type is EventType.CREATED
        parts = event.path.removeprefix(self._above).split("/")
        channel = number_of(parts[0], CHANNEL)
        if channel is None or len(parts) > 2:
            return None
        if len(parts) == 1:
            return _Change(is_created, event.path, channel, None)
        entry = number_of(parts[1], ENTRY)
        if entry is None or not is_created:
            return None
        return _Change(True, event.path, channel, entry)


class RoomReader:
    """Reads a room from the beginning, or from behind an entry."""

    def __init__(self, client: Client, path: str, after: LogEntry | None) -> None:
        self._client = client
        self._path = path
        self._after = after
        # The channels that exist, as far as was yielded.
        self._channels: dict[int, _Progress] = {}
        self._newest = -1

    async def events(self) -> AsyncGenerator[RoomEvent, None]:
        watcher = RoomWatcher(self._path)
        client = self._client
        try:
            await retry(client, lambda: client.add_watch(self._path, watcher, recursive=True))
            while True:
                try:
                    changes = await self._survey(watcher) if watcher.has_gap else watcher.take()
                    for start in range(0, len(changes), _BATCH_MAX):
                        for event in await self._read(changes[start : start + _BATCH_MAX]):
                            yield event
                except ConnectionLostError:
                    watcher.has_gap = True
                    await client.wait_connected()
                    continue
                await watcher.wait()
        finally:
            client.forget_watcher(watcher)

    async def _survey(self, watcher: RoomWatcher) -> list[_Change]:
        """Find the changes since the last read by listing everything."""
        watcher.has_gap = False
        created: dict[str, _Change] = {}
        deleted: dict[int, _Change] = {}
        listed = await request_each(self._client.children, [self._path])
        channels = in_order(listed.get(self._path, []), CHANNEL)
        paths = [child_path(self._path, one.name) for one in channels]
        lists = await request_each(self._client.children, paths)
        for channel, path in zip(channels, paths, strict=True):
            if channel.number > self._newest:
                created[path] = _Change(True, path, channel.number, None)
            told = self._channels.get(channel.number, _Progress()).next
            for entry in in_order(lists.get(path, []), ENTRY):
                if entry.number >= told:
                    below = child_path(path, entry.name)
                    created[below] = _Change(True, below, channel.number, entry.number)
        there = {channel.number for channel in channels}
        for number, progress in self._channels.items():
            if number not in there:
                # Its last entries are unknown.
                progress.is_complete = False
                deleted[number] = _Change(False, "", number, None)
        # After the lists: these are the changes since they began.
        for change in watcher.take():
            if change.is_created:
                created.setdefault(change.path, change)
            else:
                deleted[change.channel] = change
        return [*await self._by_creation(list(created.values())), *deleted.values()]

    async def _by_creation(self, created: list[_Change]) -> list[_Change]:
        stats = await request_each(self._client.exists, [one.path for one in created])

        def key(change: _Change) -> tuple[float, int, int]:
            stat = stats.get(change.path)
            # Nodes that are gone come last, and are found to be missing.
            zxid = math.inf if stat is None else stat.czxid
            # One transaction may have created several entries.
            return zxid, change.channel, -1 if change.entry is None else change.entry

        return sorted(created, key=key)

    async def _read(self, changes: Sequence[_Change]) -> list[RoomEvent]:
        """Return the events of some changes, and note them."""
        wanted = [one.path for one in changes if one.entry is not None and self._is_unread(one)]
        contents = await request_each(self._client.get, wanted)
        events: list[RoomEvent | None] = []
        for one in changes:
            if one.entry is not None:
                events.append(self._entry(one, one.entry, contents.get(one.path)))
            elif one.is_created:
                events.append(self._opened(one.channel))
            else:
                events.append(self._deleted(one.channel))
        return [event for event in events if event is not None]

    def _is_unread(self, change: _Change) -> bool:
        progress = self._channels.get(change.channel)
        return progress is None or change.entry is None or change.entry >= progress.next

    def _opened(self, channel: int) -> ChannelOpened | None:
        # The service numbers them in the order of creation.
        if channel <= self._newest:
            return None
        self._newest = channel
        after = self._after
        is_after = after is not None and after.channel == channel
        self._channels[channel] = _Progress(after.number + 1 if after and is_after else 0)
        return ChannelOpened(channel)

    def _deleted(self, channel: int) -> ChannelDeleted | None:
        progress = self._channels.pop(channel, None)
        return None if progress is None else ChannelDeleted(channel, progress.is_complete)

    def _entry(self, change: _Change, number: int, content: NodeData | None) -> LogEntry | None:
        progress = self._channels.get(change.channel)
        if progress is None or number < progress.next:
            return None
        if content is None or number > progress.next:
            # Deleted before we could read it, or knew of it.
            progress.is_complete = False
        progress.next = number + 1
        if content is None:
            return None
        entry = LogEntry(change.channel, number, content.data, content.stat.czxid)
        after = self._after
        is_old = after is not None and (entry.zxid, number) <= (after.zxid, after.number)
        return None if is_old else entry
