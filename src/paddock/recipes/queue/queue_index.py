"""The nodes of a queue, and an index of its items that saves most lists.

    <path>/entries/item-<priority>-<id>-<number>    an item; the service gives the number
    <path>/entries/item-…/attempts                  its version counts how often it was taken
    <path>/taken/<id>                               ephemeral: a consumer has it
    <path>/receipts/<id>                            ephemeral: it was put
    <path>/dead/item-…                              an item that was taken too often

A delayed item has the time from which it may be taken, by the service's clock in milliseconds:
`item-<priority>-<id>-due<time>-<number>`. Other nodes are ignored.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence, Set
from typing import Final, NamedTuple

from paddock import layouts
from paddock.client.client import Client
from paddock.client.results import Children
from paddock.errors import NoNodeError
from paddock.protocol.paths import child_path
from paddock.protocol.records import Stat
from paddock.recipes.common.retry import Signal, discard, make_container, retry

# Up to so many are listed each time; of more, the stat tells first whether there are new ones.
_LISTED_ALWAYS: Final = 10
# Listing so many costs about as much as one failed attempt to take an item.
_LISTED_FOR_A_TRY: Final = 256
# How long a time of the service is relied on: clocks drift, and that of a service may be set.
_CLOCK_SECONDS_MAX: Final = 10.0


class Entry(NamedTuple):
    """An item's node, by its name."""

    name: str
    id: str
    priority: int
    # 0 for an item that is not delayed.
    due_ms: int
    number: int


class AvailableItems(NamedTuple):
    """The items that may be taken, in order."""

    entries: list[Entry]
    # Whether items of other consumers are left out.
    is_checked: bool
    # Until the next delayed item is due, if there is one.
    seconds_to_next: float | None


def new_name(priority: int, item_id: str, due_ms: int) -> str:
    """Return the name of an item's node, up to its number."""
    due = f"-due{due_ms}" if due_ms else ""
    return f"item-{priority}-{item_id}{due}-"


def in_order(names: Iterable[str]) -> list[Entry]:
    """Return the items of a list of names, in the order in which they are taken."""
    entries = [
        Entry(one.string, one["id"], int(one["priority"]), int(one["due"] or 0), int(one["number"]))
        for one in layouts.in_order(names, layouts.ITEM)
    ]
    return sorted(entries, key=lambda entry: entry.priority)


def draw(entries: Sequence[Entry], lot: float) -> int:
    """Return the index of an entry with the priority of the first; the lot is from 0 to below 1."""
    alike = sum(entry.priority == entries[0].priority for entry in entries)
    return int(lot * alike)


class QueuePaths:
    """The paths of a queue."""

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        # One caller creates the containers for all; how often that was done.
        self._making = asyncio.Lock()
        self._made = 0
        self.path = path
        self.entries = child_path(path, "entries")
        self.taken = child_path(path, "taken")
        self.receipts = child_path(path, "receipts")
        self.dead = child_path(path, "dead")

    def entry(self, entry: Entry) -> str:
        return child_path(self.entries, entry.name)

    def attempts(self, entry: Entry) -> str:
        return f"{self.entries}/{entry.name}/attempts"

    def claim(self, entry: Entry) -> str:
        return child_path(self.taken, entry.id)

    async def make(self) -> None:
        """Create the containers of a queue."""
        made = self._made
        # Callers go on in order. If the first one is cancelled, the next one does it: a task for
        # all of them could fail after they have gone, and nobody would ask for its error.
        async with self._making:
            if self._made == made:
                for above in (self.path, self.entries, self.taken, self.receipts, self.dead):
                    await make_container(self._client, above)
                self._made += 1


class QueueIndex:
    """The known items of one queue, and which of them are free."""

    def __init__(self, client: Client, paths: QueuePaths) -> None:
        self.clock = ServiceClock(client, paths.entries)
        self._client = client
        self._paths = paths
        # The items of the last list, in order, without those that are known to be gone.
        self._known: dict[str, Entry] = {}
        self._has_delayed = False
        # The number of children, and a stamp that changes when a child is created.
        self._children = 0
        self._created = (0, 0)
        # Whether other consumers may have taken some: then we list these.
        self.is_shared = True

    def forget(self, entry: Entry) -> None:
        """Remove an item that is gone."""
        if self._known.pop(entry.name, None) is not None:
            self._children -= 1

    async def free(self, own: Set[str], signal: Signal | None = None) -> AvailableItems:
        """Return the items that may be taken, in order; some may be gone or taken by now.

        Our own items, by id, are left out. The signal is set when the list may have changed, but
        not when a delayed item is due.
        """
        names = await retry(self._client, lambda: self._look(signal))
        entries = [entry for entry in self._known.values() if entry.id not in own]
        is_checked = names is not None
        if names is not None:
            taken, count = set(names), len(entries)
            entries = [entry for entry in entries if entry.id not in taken]
            self.is_shared = len(entries) < count
        if not self._has_delayed:
            return AvailableItems(entries, is_checked, None)
        now_ms = await self.clock.earliest_ms()
        due = [entry for entry in entries if entry.due_ms <= now_ms]
        waiting = [entry.due_ms for entry in entries if entry.due_ms > now_ms]
        return AvailableItems(due, is_checked, (min(waiting) - now_ms) / 1000 if waiting else None)

    async def _look(self, signal: Signal | None) -> list[str] | None:
        """Update the index; return the ids of the items that are taken, if it was asked."""
        while True:
            is_listed = signal is not None or len(self._known) <= _LISTED_ALWAYS
            # Both in one batch.
            listing = self._list(signal) if is_listed else None
            asking = None if is_listed else self._client.exists(self._paths.entries)
            is_asked = signal is not None or self.is_shared
            taken = self._client.children(self._paths.taken, watch=signal) if is_asked else None
            try:
                if asking is not None and not self._is_known(await asking):
                    listing = self._list(None)
                if listing is not None:
                    self._remember(await listing)
                return None if taken is None else await taken
            except NoNodeError:
                await self._paths.make()
            finally:
                for under_way in (listing, asking, taken):
                    if under_way is not None:
                        discard(under_way)

    def _list(self, signal: Signal | None) -> asyncio.Future[Children]:
        return self._client.children_with_stat(self._paths.entries, watch=signal)

    def _remember(self, listed: Children) -> None:
        self._known = {entry.name: entry for entry in in_order(listed.names)}
        self._has_delayed = any(entry.due_ms for entry in self._known.values())
        self._children = listed.stat.num_children
        self._created = _created(listed.stat)

    def _is_known(self, stat: Stat | None) -> bool:
        """Return whether the index has all items, and few that are gone."""
        if stat is None or _created(stat) != self._created:
            return False
        gone = self._children - stat.num_children
        return gone * _LISTED_FOR_A_TRY <= len(self._known)


def _created(stat: Stat) -> tuple[int, int]:
    """Return a stamp that changes when a child is created, but not when one is deleted."""
    # `cversion` counts both; `num_children` is creations minus deletions.
    return stat.czxid, stat.cversion + stat.num_children


class ServiceClock:
    """The service's time, in milliseconds.

    Our own wall clock may differ from it. The service stamps each write, so a write of ours tells
    the time; after that the event loop's clock counts on. Since a message takes time, only an
    earliest and a latest time are known.
    """

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        # Its data have no other use.
        self._path = path
        # The stamp, and the loop's time just before and just after it.
        self._stamped_ms = 0
        self._asked_at = float("-inf")
        self._answered_at = float("-inf")

    async def earliest_ms(self) -> int:
        """Return a time that has surely come."""
        now = await self._compare()
        return self._stamped_ms + int((now - self._answered_at) * 1000)

    async def latest_ms(self) -> int:
        """Return a time that has surely not passed."""
        now = await self._compare()
        # The stamp is the millisecond that had begun.
        return self._stamped_ms + 1 + math.ceil((now - self._asked_at) * 1000)

    async def _compare(self) -> float:
        """Ask for the service's time if the last answer is old; return the loop's time."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._asked_at > _CLOCK_SECONDS_MAX:
            await retry(self._client, self._ask)
        return loop.time()

    async def _ask(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            asked_at = loop.time()
            try:
                stat = await self._client.set(self._path, b"")
            except NoNodeError:
                await make_container(self._client, self._path)
            else:
                self._stamped_ms, self._asked_at = stat.mtime, asked_at
                self._answered_at = loop.time()
                return
