"""Where a queue keeps its items, and what we know of them without asking each time.

    <path>/entries/item-<priority>-<id>-<number>    an item; the service gives the number
    <path>/entries/item-…/attempts                  its version counts how often it was taken
    <path>/taken/<id>                               ephemeral: somebody has it
    <path>/receipts/<id>                            ephemeral: it was put, whatever became of it
    <path>/dead/item-…                              an item that was taken too often

An item that may not be taken yet says since when it may, by the service's clock in milliseconds:
`item-<priority>-<id>-due<time>-<number>`. Whatever else stands there is somebody else's business.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence, Set
from typing import Final, NamedTuple

from paddock.client.client import Client
from paddock.client.results import Children
from paddock.errors import NoNodeError
from paddock.protocol.records import Stat
from paddock.recipes.common.retry import Signal, child, discard, make_container, until_answered
from paddock.recipes.common.sequence import NUMBER, Order
from paddock.recipes.common.service_clock import ServiceClock

_PATTERN: Final = re.compile(
    r"item-(?P<priority>-?\d{1,10})-(?P<id>[0-9a-f]{32})(?:-due(?P<due>\d{1,19}))?"
    rf"-(?P<number>{NUMBER})"
)
# So few are listed each time; of more we ask first whether there are others by now.
_LISTED_ALWAYS: Final = 10
# To list so many costs about as much as trying one in vain.
_LISTED_FOR_A_TRY: Final = 256


class Entry(NamedTuple):
    """An item's node, by its name."""

    name: str
    id: str
    priority: int
    # 0 for what may be taken at once.
    due_ms: int
    number: int


class Seen(NamedTuple):
    """What may be taken, in order."""

    entries: list[Entry]
    # Whether we have looked which of them others have.
    is_checked: bool
    # Until more of it may be taken, if there is more.
    seconds_to_next: float | None


def new_name(priority: int, item_id: str, due_ms: int) -> str:
    """Give the name of an item's node, up to its number."""
    due = f"-due{due_ms}" if due_ms else ""
    return f"item-{priority}-{item_id}{due}-"


def in_order(names: Iterable[str]) -> list[Entry]:
    """Give those of some names that are items, in the order in which they are to be taken."""
    entries = []
    for name in names:
        found = _PATTERN.fullmatch(name)
        if found is not None:
            priority, number = int(found["priority"]), int(found["number"])
            entries.append(Entry(name, found["id"], priority, int(found["due"] or 0), number))
    order = Order([entry.number for entry in entries])
    return sorted(entries, key=lambda entry: (entry.priority, order.rank(entry.number)))


def draw(entries: Sequence[Entry], lot: float) -> int:
    """Give the index of one that is as urgent as the first of them; the lot is from 0 to below 1.

    The entries are in their order.
    """
    alike = sum(entry.priority == entries[0].priority for entry in entries)
    return int(lot * alike)


class Places:
    """The paths of a queue."""

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        self._making: asyncio.Task[None] | None = None
        self.path = path
        self.entries = child(path, "entries")
        self.taken = child(path, "taken")
        self.receipts = child(path, "receipts")
        self.dead = child(path, "dead")

    def entry(self, entry: Entry) -> str:
        return child(self.entries, entry.name)

    def attempts(self, entry: Entry) -> str:
        return f"{self.entries}/{entry.name}/attempts"

    def claim(self, entry: Entry) -> str:
        return child(self.taken, entry.id)

    async def make(self) -> None:
        """Make what the nodes of a queue stand under; the service removes it when it is empty."""
        # Once for all who miss it, who then go on in the order in which they came.
        if self._making is None or self._making.done():
            self._making = self._client.start_task(self._make())
        await asyncio.shield(self._making)

    async def _make(self) -> None:
        await make_container(self._client, self.path)
        for above in (self.entries, self.taken, self.receipts, self.dead):
            await make_container(self._client, above)


class Shelf:
    """The items of one queue: what is there, what of it is free, and from when on the rest is."""

    def __init__(self, client: Client, places: Places) -> None:
        self.clock = ServiceClock(client, places.entries)
        self._client = client
        self._places = places
        # What was there when we listed it last, in its order, without what we know to be gone.
        self._known: dict[str, Entry] = {}
        self._has_delayed = False
        # The children that there should be then, and what tells whether others have come since.
        self._children = 0
        self._created = (0, 0)
        # Whether others have taken some of it, or may have: then we ask what.
        self._is_shared = True

    def forget(self, entry: Entry) -> None:
        """Note that an item is there no more."""
        if self._known.pop(entry.name, None) is not None:
            self._children -= 1

    def expect_others(self) -> None:
        """Note that others have taken something."""
        self._is_shared = True

    async def free(self, own: Set[str], signal: Signal | None = None) -> Seen:
        """Give what may be taken now, in order; a part of it may be gone, or taken, by now.

        What is our own already, by id, is left out. The signal is given when that may have changed;
        but not when time has passed.
        """
        names = await until_answered(self._client, lambda: self._look(signal))
        entries = [entry for entry in self._known.values() if entry.id not in own]
        is_checked = names is not None
        if names is not None:
            taken, count = set(names), len(entries)
            entries = [entry for entry in entries if entry.id not in taken]
            self._is_shared = len(entries) < count
        if not self._has_delayed:
            return Seen(entries, is_checked, None)
        now_ms = await self.clock.earliest_ms()
        due = [entry for entry in entries if entry.due_ms <= now_ms]
        waiting = [entry.due_ms for entry in entries if entry.due_ms > now_ms]
        return Seen(due, is_checked, (min(waiting) - now_ms) / 1000 if waiting else None)

    async def _look(self, signal: Signal | None) -> list[str] | None:
        """See that we know what is there; give the ids of what others may have."""
        while True:
            is_listed = signal is not None or len(self._known) <= _LISTED_ALWAYS
            # Both in one write.
            listing = self._list(signal) if is_listed else None
            asking = None if is_listed else self._client.exists(self._places.entries)
            taken = None
            if signal is not None or self._is_shared:
                taken = self._client.children(self._places.taken, watch=signal)
            try:
                if asking is not None and not self._is_known(await asking):
                    listing = self._list(None)
                if listing is not None:
                    self._remember(await listing)
                return None if taken is None else await taken
            except NoNodeError:
                await self._places.make()
            finally:
                for under_way in (listing, asking, taken):
                    if under_way is not None:
                        discard(under_way)

    def _list(self, signal: Signal | None) -> asyncio.Future[Children]:
        return self._client.children_with_stat(self._places.entries, watch=signal)

    def _remember(self, listed: Children) -> None:
        self._known = {entry.name: entry for entry in in_order(listed.names)}
        self._has_delayed = any(entry.due_ms for entry in self._known.values())
        self._children = listed.stat.num_children
        self._created = _created(listed.stat)

    def _is_known(self, stat: Stat | None) -> bool:
        """Tell whether we know all that is there, and little more than that."""
        if stat is None or _created(stat) != self._created:
            return False
        gone = self._children - stat.num_children
        return gone * _LISTED_FOR_A_TRY <= len(self._known)


def _created(stat: Stat) -> tuple[int, int]:
    """Give what changes when a child comes, but not when one goes."""
    # The service counts both, and how many more have come than gone is how many there are.
    return stat.czxid, stat.cversion + stat.num_children
