"""What changes in the service, told to all pages that look: watches of one session.

* A page names the paths that it shows. It is told of changes of these nodes and of their children.
* There is one recursive watch for each of these paths that is not below another one, whoever and
  however many show it.
* Where much happens, a recursive watch would bring events that no page shows, and cost the service
  more than all pages together. So a watch with more than `EVENTS_MAX` events in a second is given
  up for a while, in favour of watches on the shown paths alone; those of them that are too busy
  are given up as well. The pages below are told to read anew, every few seconds.
* A page may have read what it shows shortly before it begins to be told. So it is also told of the
  last seconds, or to read anew if nothing was watched there, or not yet for so long.
* A page that takes its events too slowly loses them, and is told to read anew (`resync`). So is
  every page after a lost connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from paddock.client.client import Client
from paddock.client.states import Event, EventType
from paddock.errors import PaddockError, RequestError
from paddock.protocol.paths import parent_path

logger: Final = logging.getLogger(__name__)

# The name of an event and what is in it.
Told: TypeAlias = tuple[str, dict[str, Any]]

PATHS_MAX: Final = 500
QUEUE_MAX: Final = 500
EVENTS_MAX: Final = 500
"""The paths of a page, what waits for a slow one, and what a watch may bring in a second."""
_CALM_SECONDS: Final = 30.0
_RESYNC_SECONDS: Final = 5.0
# For how long events are remembered for new pages, and how many.
_RECENT_SECONDS: Final = 5.0
_RECENT_MAX: Final = 1000
_KINDS: Final = {
    EventType.CREATED: "created",
    EventType.DELETED: "deleted",
    EventType.CHANGED: "changed",
}


class Stream:
    """What one page is told, until it is closed."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths: Final = frozenset(paths)
        self._changes: deque[Told] = deque()
        # Of these the newest counts: `state`, `overview`, `resync`.
        self._newest: dict[str, dict[str, Any]] = {}
        self._wakes = asyncio.Event()
        # Whether there are watches for all of its paths.
        self.is_watched = False
        self.is_closed = False

    def change(self, fields: dict[str, Any]) -> None:
        """Tell of a change of a node."""
        if "resync" in self._newest:
            # It reads anew what it shows, this as well.
            return
        if len(self._changes) >= QUEUE_MAX:
            self.tell("resync", {})
            return
        self._changes.append(("changed", fields))
        self._wakes.set()

    def tell(self, name: str, fields: dict[str, Any]) -> None:
        """Tell of what counts only as it is last."""
        if name == "resync":
            self._changes.clear()
        self._newest[name] = fields
        self._wakes.set()

    def close(self) -> None:
        """Tell nothing more."""
        self.is_closed = True
        self._wakes.set()

    async def next(self) -> list[Told]:
        """Wait for something to tell; nothing more comes after an empty list."""
        await self._wakes.wait()
        self._wakes.clear()
        told = [*self._newest.items(), *self._changes]
        self._newest.clear()
        self._changes.clear()
        return [] if self.is_closed else told


class Follower:
    """Is called with the path of every change at and below a root."""

    def __init__(self, root: str, take: Callable[[str], None]) -> None:
        self.root: Final = root
        self.take: Final = take
        self._below = root.rstrip("/") + "/"
        # Whether changes may have been missed.
        self._is_lost = True
        # Whether there is a watch for it.
        self.is_watched = False

    def lose(self) -> None:
        """Note that changes may have been missed."""
        self._is_lost = True

    def take_lost(self) -> bool:
        """Return whether changes may have been missed since this was asked last."""
        lost, self._is_lost = self._is_lost or not self.is_watched, False
        return lost

    def has(self, path: str) -> bool:
        return path == self.root or path.startswith(self._below)


@dataclass(slots=True, eq=False)
class _Watch:
    """One watch of the service; it is called with the events."""

    owner: Watched
    path: str
    is_recursive: bool
    # When it was set.
    set_at: float = 0.0
    # The events of the present second.
    second: float = 0.0
    events: int = 0

    def __call__(self, event: Event) -> None:
        if event.path is None:
            return
        now = time.monotonic()
        if now - self.second >= 1.0:
            self.second, self.events = now, 0
        self.events += 1
        if self.events > EVENTS_MAX:
            self.owner.give_up(self, now)
        self.owner.take(event)


_Key: TypeAlias = tuple[str, bool]


@dataclass(slots=True)
class _Work:
    """What the task that sets and removes watches has to do."""

    wakes: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Watched:
    """The watches of one session, and the pages that are told."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self._streams: dict[Stream, None] = {}
        # Which pages show a path.
        self._shown: dict[str, dict[Stream, None]] = {}
        self._followers: dict[Follower, None] = {}
        # The watches that are set, and those that are too busy, until when.
        self._watches: dict[_Key, _Watch] = {}
        self._busy: dict[_Key, float] = {}
        self._work = _Work()
        self._told_state: dict[str, Any] | None = None
        self._recent: deque[tuple[float, dict[str, Any]]] = deque(maxlen=_RECENT_MAX)

    @property
    def count(self) -> int:
        """How many pages look."""
        return len(self._streams)

    @property
    def watches(self) -> list[_Key]:
        """The paths of the watches that are set, and whether each is recursive."""
        return sorted(self._watches)

    def add(self, paths: Iterable[str]) -> Stream:
        """Begin to tell a page."""
        stream = Stream(paths)
        self._streams[stream] = None
        for path in stream.paths:
            self._shown.setdefault(path, {})[stream] = None
        if self._told_state is not None:
            stream.tell("state", self._told_state)
        stream.is_watched = self._has_watches(stream)
        if stream.is_watched:
            self._tell_recent(stream)
        self._work.wakes.set()
        return stream

    def remove(self, stream: Stream) -> None:
        """Tell it nothing more."""
        stream.close()
        if self._streams.pop(stream, self) is self:
            return
        for path in stream.paths:
            del self._shown[path][stream]
            if not self._shown[path]:
                del self._shown[path]
        self._work.wakes.set()

    def follow(self, root: str, take: Callable[[str], None]) -> Follower:
        """Begin to tell of all changes at and below a root."""
        follower = Follower(root, take)
        self._followers[follower] = None
        self._work.wakes.set()
        return follower

    def unfollow(self, follower: Follower) -> None:
        """Tell it nothing more."""
        self._followers.pop(follower, None)
        self._work.wakes.set()

    def tell(self, name: str, fields: dict[str, Any]) -> None:
        """Tell all pages something."""
        for stream in self._streams:
            stream.tell(name, fields)

    def tell_state(self, is_connected: bool, text: str, *, is_refused: bool = False) -> None:
        """Tell all pages, also later ones, how the connection is."""
        self._told_state = {"connected": is_connected, "refused": is_refused, "text": text}
        self.tell("state", self._told_state)

    def use(self, client: Client) -> None:
        """Go on with a client that has connected: for the first time, or again."""
        if client is not self._client:
            self._client = client
            # Those of the session before have gone with it.
            self._watches.clear()
            self._recent.clear()
            if self._work.task is None:
                self._work.task = asyncio.create_task(self._set_watches())
        self._work.wakes.set()
        for follower in self._followers:
            follower.lose()
        self.tell("resync", {})

    async def leave(self) -> None:
        """Use the session no more."""
        self._client = None
        task, self._work.task = self._work.task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    async def close(self) -> None:
        """Use the session no more, and end all streams."""
        await self.leave()
        self.end_streams()

    def end_streams(self) -> None:
        """End all streams."""
        for stream in [*self._streams]:
            self.remove(stream)

    def take(self, event: Event) -> None:
        """Tell those pages of an event that show the node, or what is above it."""
        assert event.path is not None
        kind = _KINDS.get(event.type)
        if kind is None:
            # Only a watch that is not recursive has it: some child came or went.
            if event.type is EventType.CHILDREN_CHANGED:
                for stream in self._shown.get(event.path, ()):
                    stream.tell("resync", {})
            return
        fields = {
            "path": event.path,
            "kind": kind,
            "zxid": None if event.zxid is None else f"0x{event.zxid:x}",
            "time_ms": time.time_ns() // 1_000_000,
        }
        self._recent.append((time.monotonic(), fields))
        for follower in self._followers:
            if follower.has(event.path):
                follower.take(event.path)
        near = self._shown.get(event.path, {})
        above = self._shown.get(parent_path(event.path), {}) if event.path != "/" else {}
        for stream in {**near, **above}:
            stream.change(fields)

    def give_up(self, watch: _Watch, now: float) -> None:
        """Remove a watch that brings too much."""
        key = watch.path, watch.is_recursive
        if self._watches.get(key) is watch and self._client is not None:
            logger.debug("too much happens at %s for a watch", watch.path)
            self._busy[key] = now + _CALM_SECONDS
            # At once: the answers to what is set instead come behind the events of this one.
            self._client.forget_watcher(self._watches.pop(key))
            self._work.wakes.set()

    def _wanted(self, now: float) -> set[_Key]:
        """Return the watches that the pages need."""
        for key in [key for key, until in self._busy.items() if until <= now]:
            del self._busy[key]
        wanted: set[_Key] = set()
        # Shorter ones first: what is below them needs none of its own.
        roots = {one.root for one in self._followers}
        for path in sorted(self._shown.keys() | roots, key=len):
            if any((above, True) in wanted for above in _above(path)):
                continue
            for key in ((path, True), (path, False)):
                if key not in self._busy:
                    wanted.add(key)
                    break
        return wanted

    async def _set_watches(self) -> None:
        """Set and remove watches as pages come and go, while this session is used."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RESYNC_SECONDS if self._busy else None):
                    await self._work.wakes.wait()
            self._work.wakes.clear()
            client = self._client
            if client is None:
                return
            wanted = self._wanted(time.monotonic())
            # What is told of these is told from here on.
            streams = [*self._streams]
            try:
                for key in wanted - self._watches.keys():
                    await self._set(client, key)
            except PaddockError as error:
                # The connection was lost, or the session is over: they are set in the next one.
                logger.debug("a watch could not be set: %s", error)
                continue
            for key in self._watches.keys() - wanted:
                client.forget_watcher(self._watches.pop(key))
            for stream in streams:
                self._tell_how(stream)
            for follower in self._followers:
                was_watched, follower.is_watched = follower.is_watched, self._covers(follower.root)
                if not was_watched:
                    follower.lose()

    async def _set(self, client: Client, key: _Key) -> None:
        watch = _Watch(self, *key)
        try:
            await client.add_watch(watch.path, watch, recursive=watch.is_recursive)
        except RequestError as error:
            # It may not be watched by us, or the server is an old one. Others may be.
            logger.debug("no watch: %s", error)
            self._busy[key] = time.monotonic() + _CALM_SECONDS
            self._work.wakes.set()
        else:
            watch.set_at = time.monotonic()
            self._watches[key] = watch

    def _tell_how(self, stream: Stream) -> None:
        """Have a page read anew if it may have missed something, or may do so."""
        was_watched, stream.is_watched = stream.is_watched, self._has_watches(stream)
        if not (was_watched and stream.is_watched):
            stream.tell("resync", {})

    def _has_watches(self, stream: Stream) -> bool:
        return all(map(self._covers, stream.paths))

    def _covers(self, path: str, since: float = math.inf) -> bool:
        """Return whether a path is watched, and has been since then."""
        watches = (self._watches.get((one, True)) for one in (path, *_above(path)))
        return any(watch is not None and watch.set_at <= since for watch in watches)

    def _tell_recent(self, stream: Stream) -> None:
        since = time.monotonic() - _RECENT_SECONDS
        recent = [fields for at, fields in self._recent if at >= since]
        was_watched = all(self._covers(path, since) for path in stream.paths)
        if not was_watched or len(recent) == _RECENT_MAX:
            # There may have been more.
            stream.tell("resync", {})
            return
        for fields in recent:
            if not stream.paths.isdisjoint((fields["path"], parent_path(fields["path"]))):
                stream.change(fields)


def _above(path: str) -> Iterable[str]:
    """Yield the paths above one."""
    while path != "/":
        path = parent_path(path)
        yield path
