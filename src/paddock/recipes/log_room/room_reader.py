"""How a room is followed: one lasting watch, whose events come in the order of the service.

An event names the node that was created, so what is new is read, and nothing is listed. Lists are
for the beginning, and for when events may have been missed: the connection was lost, or more came
than are kept. Then what the lists have and what events tell meanwhile is put in the order of
creation. That is complete: whatever was created before the last list was made is in a list, or in
an event that came before it.

What was told last of each channel is remembered by its number, so nothing is told twice; and an
entry that was deleted before it could be read is left out, never waited for.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType
from paddock.errors import ConnectionLostError, NoNodeError
from paddock.recipes.common.retry import child, until_answered
from paddock.recipes.log_room.room import (
    CHANNEL,
    ENTRY,
    ChannelDeleted,
    ChannelOpened,
    LogEntry,
    RoomEvent,
    in_order,
    number_of,
)

T = TypeVar("T")

# How many requests are under way at once: the data of so many entries are held.
_REQUESTS_MAX: Final = 256
# How many events are kept for a reader that is slow; with more, it lists again.
_NEWS_MAX: Final = 20_000


class _News(NamedTuple):
    """Something that has happened to a channel, or to an entry if it has a number."""

    is_created: bool
    path: str
    channel: int
    entry: int | None


@dataclass(slots=True)
class _Progress:
    """How far a channel was told."""

    next: int = 0
    is_complete: bool = True


class Feed:
    """A watcher that keeps what happens in a room until somebody looks."""

    def __init__(self, path: str) -> None:
        self._above = path.rstrip("/") + "/"
        self._news: list[_News] = []
        self._event = asyncio.Event()
        # Whether events may have been missed since we last listed everything.
        self.has_gap = True

    def __call__(self, event: Event) -> None:
        if event.type is EventType.CREATED or event.type is EventType.DELETED:
            news = self._understand(event)
            if news is None:
                return
            if len(self._news) >= _NEWS_MAX:
                self._news.clear()
                self.has_gap = True
            self._news.append(news)
        elif event.type is EventType.NONE and (event.state.is_connected or event.state.is_final):
            self.has_gap = True
        else:
            return
        self._event.set()

    def take(self) -> list[_News]:
        """Give what has happened, in its order, and forget it."""
        news, self._news = self._news, []
        return news

    async def wait(self) -> None:
        await self._event.wait()
        self._event.clear()

    def _understand(self, event: Event) -> _News | None:
        assert event.path is not None
        is_created = event.type is EventType.CREATED
        parts = event.path.removeprefix(self._above).split("/")
        channel = number_of(parts[0], CHANNEL)
        if channel is None or len(parts) > 2:
            return None
        if len(parts) == 1:
            return _News(is_created, event.path, channel, None)
        entry = number_of(parts[1], ENTRY)
        if entry is None or not is_created:
            return None
        return _News(True, event.path, channel, entry)


class RoomReader:
    """One who reads a room from the beginning, or from behind an entry on."""

    def __init__(self, client: Client, path: str, after: LogEntry | None) -> None:
        self._client = client
        self._path = path
        self._after = after
        # The channels that were opened and not yet deleted, as far as was told.
        self._channels: dict[int, _Progress] = {}
        self._newest = -1

    async def events(self) -> AsyncGenerator[RoomEvent, None]:
        feed = Feed(self._path)
        client = self._client
        try:
            await until_answered(client, lambda: client.add_watch(self._path, feed, recursive=True))
            while True:
                try:
                    news = await self._survey(feed) if feed.has_gap else feed.take()
                    for some in _batches(news):
                        for event in await self._read(some):
                            yield event
                except ConnectionLostError:
                    feed.has_gap = True
                    await client.wait_connected()
                    continue
                await feed.wait()
        finally:
            client.forget_watcher(feed)

    async def _survey(self, feed: Feed) -> list[_News]:
        """Find out what has happened since we last looked, without having been told."""
        feed.has_gap = False
        created: dict[str, _News] = {}
        deleted: dict[int, _News] = {}
        [listed] = await self._ask([self._path], self._client.children)
        channels = in_order(listed or [], CHANNEL)
        paths = [child(self._path, one.name) for one in channels]
        lists = await self._ask(paths, self._client.children)
        for channel, path, names in zip(channels, paths, lists, strict=True):
            if channel.number > self._newest:
                created[path] = _News(True, path, channel.number, None)
            told = self._channels.get(channel.number, _Progress()).next
            for entry in in_order(names or [], ENTRY):
                if entry.number >= told:
                    below = child(path, entry.name)
                    created[below] = _News(True, below, channel.number, entry.number)
        there = {channel.number for channel in channels}
        for number, progress in self._channels.items():
            if number not in there:
                # Nobody can tell what it had last.
                progress.is_complete = False
                deleted[number] = _News(False, "", number, None)
        # Not before: these have what has happened while we listed.
        for news in feed.take():
            if news.is_created:
                created.setdefault(news.path, news)
            else:
                deleted[news.channel] = news
        return [*await self._by_creation(list(created.values())), *deleted.values()]

    async def _by_creation(self, created: list[_News]) -> list[_News]:
        stats = await self._ask([one.path for one in created], self._client.exists)
        # What has gone meanwhile is last, and will be found to be missing.
        zxids = [math.inf if stat is None else stat.czxid for stat in stats]
        keys = [
            # Several entries may have been made at once.
            (zxid, news.channel, -1 if news.entry is None else news.entry)
            for zxid, news in zip(zxids, created, strict=True)
        ]
        return [created[place] for place in sorted(range(len(keys)), key=keys.__getitem__)]

    async def _ask(
        self, paths: Sequence[str], question: Callable[[str], asyncio.Future[T]]
    ) -> list[T | None]:
        """Ask the same of many nodes, of some at a time; None stands for what is not there."""
        found: list[T | None] = []
        for some in _batches(paths):
            answers = await asyncio.gather(*map(question, some), return_exceptions=True)
            for answer in answers:
                if isinstance(answer, NoNodeError):
                    found.append(None)
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    found.append(answer)
        return found

    async def _read(self, news: Sequence[_News]) -> list[RoomEvent]:
        """Give what is to be told, and take note of it."""
        wanted = [one.path for one in news if one.entry is not None and self._is_news(one)]
        found = await self._ask(wanted, self._client.get)
        contents = dict(zip(wanted, found, strict=True))
        events: list[RoomEvent | None] = []
        for one in news:
            if one.entry is not None:
                events.append(self._entry(one, one.entry, contents.get(one.path)))
            elif one.is_created:
                events.append(self._opened(one.channel))
            else:
                events.append(self._deleted(one.channel))
        return [event for event in events if event is not None]

    def _is_news(self, news: _News) -> bool:
        progress = self._channels.get(news.channel)
        return progress is None or news.entry is None or news.entry >= progress.next

    def _opened(self, channel: int) -> ChannelOpened | None:
        # The service counts them in the order in which they are opened.
        if channel <= self._newest:
            return None
        self._newest = channel
        progress = _Progress()
        if self._after is not None and self._after.channel == channel:
            progress.next = self._after.number + 1
        self._channels[channel] = progress
        return ChannelOpened(channel)

    def _deleted(self, channel: int) -> ChannelDeleted | None:
        progress = self._channels.pop(channel, None)
        return None if progress is None else ChannelDeleted(channel, progress.is_complete)

    def _entry(self, news: _News, number: int, content: NodeData | None) -> LogEntry | None:
        progress = self._channels.get(news.channel)
        if progress is None or number < progress.next:
            return None
        if content is None or number > progress.next:
            # Deleted before we could read it, or before we knew of it.
            progress.is_complete = False
        progress.next = number + 1
        if content is None:
            return None
        zxid = content.stat.czxid
        after = self._after
        if after is not None and (zxid, number) <= (after.zxid, after.number):
            return None
        return LogEntry(news.channel, number, content.data, zxid)


def _batches(all_of_them: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(all_of_them), _REQUESTS_MAX):
        yield all_of_them[start : start + _REQUESTS_MAX]
