"""Partitioner: a set that is divided among members; each item has one holder at a time.

    async with Partitioner(client, "/shards", ["a", "b", "c"]) as partitioner:
        async for share in partitioner.shares():
            print(sorted(share.items))  # ['a', 'b', 'c']
            break

When members come or go, the items are divided anew: shares differ by one item at most, and members
keep what they can. The first member in the line decides, and writes the division to a node. The
guarantee does not depend on it: each item is claimed by a node of its own, which is free only when
its holder has let go or is dead.

A holder lets go explicitly: an item that is not in its share any more is let go when the next share
is requested. Until then it has no other holder. Each item has a grant, with a fencing token.

* Suspension (the connection is lost): all members keep their items.
* Expiry, or nothing heard for a session timeout: all is lost. The scope cancels its body and raises
  GrantLostError; others get the items when the service ends our session.
* Cancellation: a cancelled member leaves, as at the end of the scope. Nodes are deleted in the
  background for as long as that takes.
* Never promised: that a holder is alone by the clock, as with any lock
  (`paddock.recipes.locks.grant` says what helps); nor that an item has a holder at every moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self
from urllib.parse import quote

from paddock.client.client import Client
from paddock.client.states import Event
from paddock.errors import (
    BadVersionError,
    InvalidArgumentError,
    LockStateError,
    NoNodeError,
    SessionExpiredError,
    TransactionFailedError,
)
from paddock.layouts import MEMBER
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.common.background import Recipe
from paddock.recipes.common.retry import Signal, read_node, retry, watch_signal
from paddock.recipes.groups.division import Division, decoded, divide, encoded
from paddock.recipes.locks.claim import Claim
from paddock.recipes.locks.grant import Grant
from paddock.recipes.locks.grant_scope import GrantScope
from paddock.recipes.locks.line import Contender, Line, Place

# The prefix of a member's node.
_KIND: Final = MEMBER
# The prefix of an item's node, so that an item may have any name.
_ITEM: Final = "item-"


@dataclass(frozen=True, slots=True)
class Share:
    """Our items, from now on."""

    items: frozenset[str]
    #: The items that were not in the share before.
    gained: frozenset[str]
    #: The items that are let go when the next share is requested.
    removed: frozenset[str]


class Partitioner(Recipe):
    """One member of a group that divides a set of items.

        async with Partitioner(client, "/shards", ["a", "b"]) as partitioner:
            async for share in partitioner.shares():
                print(partitioner.grant("a").is_held)  # True
                break

    All members use the same items; if they do not, those of the oldest member count. Others read
    `data` in `members`.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        items: Iterable[str],
        *,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        self._items = _checked_items(items)
        super().__init__(client, path, acl)
        self._data = data
        # Its node has the division as its data, and goes with the last member.
        self._line = Line(client, child_path(path, "members"), [_KIND], data, acl)
        self._place: Place | None = None
        self._grant: Grant | None = None
        self._scope: GrantScope | None = None
        self._coordinating: asyncio.Task[None] | None = None
        # By item: what we hold, and what we claim.
        self._grants: dict[str, Grant] = {}
        self._claiming: dict[str, asyncio.Task[None]] = {}
        # Claims that were not answered yet.
        self._asking: set[str] = set()
        # Let go when the next share is requested.
        self._going: dict[str, Grant] = {}
        # The items of the last share.
        self.items: frozenset[str] = frozenset()
        self._is_read = False
        # A failure in the background, and the waiters to wake.
        self._failure: BaseException | None = None
        self._waiting: set[Signal] = set()

    def __repr__(self) -> str:
        state = "not joined" if self._place is None else f"{len(self.items)} items"
        return f"<Partitioner {self._path} {state}>"

    async def __aenter__(self) -> Self:
        if self._place is not None:
            raise LockStateError(f"{self._path}: it has been joined already; make another one")
        self._place = place = self._line.new_place(_KIND)
        with place.left_on_error():
            await place.enter()
        self._grant = grant = Grant(place)
        grant.add_listener(self._wake)
        self._scope = GrantScope(grant)
        self._coordinating = self._client.start_task(self._coordinate(place))
        self._coordinating.add_done_callback(self._on_done)
        return self

    async def __aexit__(self, *raised: Any) -> None:
        assert self._scope is not None, "it was entered"
        if self._coordinating is not None:
            self._coordinating.cancel()
        for claiming in self._claiming.values():
            claiming.cancel()
        held = [*self._grants.values(), *self._going.values()]
        letting_go = [self._client.start_task(one.release()) for one in held]
        self._grants, self._going, self.items = {}, {}, frozenset()
        for signal in self._waiting:
            self._client.forget_watcher(signal)
        self._wake()
        await self._scope.__aexit__(*raised)
        if letting_go:
            await asyncio.wait(letting_go)

    def grant(self, item: str) -> Grant:
        """Return the grant of an item that is ours, or about to be let go.

        Raises LockStateError if it is neither.
        """
        grant = self._grants.get(item) or self._going.get(item)
        if grant is None:
            raise LockStateError(f"{self._path}: {item!r} is not ours")
        return grant

    def shares(self) -> AsyncGenerator[Share, None]:
        """Return a stream of our shares; requesting the next one lets go of removed items.

            async for share in partitioner.shares():
                print(sorted(share.gained), sorted(share.removed))  # ['a', 'b'] []
                break

        The first share comes once we have items, or there is none for us. A member that does not
        request the next share keeps its items until the scope ends, which ends the stream, too.
        Raises GrantLostError when we are a member no more, and LockStateError if there is another
        such stream, or outside the scope.
        """
        return self._shares(*self._member())

    async def wait_settled(self) -> None:
        """Wait until our share is what the present division says.

        Another task has to read `shares` meanwhile. Other members may not have settled yet. Raises
        GrantLostError when we are a member no more.
        """
        place, grant = self._member()
        signal = Signal()
        self._waiting.add(signal)
        try:
            while True:
                self._check(grant)
                entries = self._line.in_order(
                    await retry(
                        self._client, lambda: self._client.children(self._line.path, watch=signal)
                    )
                )
                division = await self._read_division(signal)
                is_of_the_present = division.keys() == {entry.name for entry in entries}
                wanted = division.get(place.name)
                is_ours = wanted is not None and self.items == frozenset(wanted)
                if is_of_the_present and is_ours and not self._going:
                    return
                await signal.wait()
        except (NoNodeError, SessionExpiredError) as error:
            # The node goes with the last member, so we are no member.
            raise grant.lost() from error
        finally:
            self._waiting.discard(signal)
            self._client.forget_watcher(signal)

    async def members(self) -> list[Contender]:
        """Return all members, in the order in which they came."""
        return await self._line.contenders()

    def _member(self) -> tuple[Place, Grant]:
        if self._place is None or self._grant is None or self._grant.is_released:
            raise LockStateError(f"{self._path}: it is to be used in its scope")
        return self._place, self._grant

    # What is ours.

    async def _shares(self, place: Place, grant: Grant) -> AsyncGenerator[Share, None]:
        if self._is_read:
            raise LockStateError(f"{self._path}: another stream of its shares is open")
        self._is_read = True
        # The items of an earlier stream are let go.
        self._let_go()
        has_told = False
        wanted: list[str] | None = None
        signal = _Watch()
        self._waiting.add(signal)
        try:
            while not grant.is_released:
                self._check(grant)
                if signal.has_fired:
                    signal.has_fired = False
                    wanted = (await self._read_division(signal)).get(place.name)
                    continue
                if wanted is not None:
                    self._claim(wanted)
                    told, held = self.items, frozenset(filter(self._holds, wanted))
                    is_first = not has_told and (held or not wanted)
                    # Gains are told together; removals at once.
                    if told - held or (not self._asking and (held != told or is_first)):
                        has_told = True
                        self._tell(held)
                        yield Share(held, held - told, told - held)
                        self._let_go()
                        continue
                await signal.wait()
        except SessionExpiredError as error:
            raise grant.lost() from error
        finally:
            self._is_read = False
            self._waiting.discard(signal)
            self._client.forget_watcher(signal)

    def _holds(self, item: str) -> bool:
        grant = self._grants.get(item)
        return grant is not None and not grant.is_lost

    def _claim(self, wanted: list[str]) -> None:
        """Claim the items that are ours by the division, and no others."""
        for item in wanted:
            if item not in self._claiming and not self._holds(item):
                self._asking.add(item)
                self._claiming[item] = task = self._client.start_task(self._take(item))
                task.add_done_callback(partial(self._on_claimed, item))
        for item, task in self._claiming.items():
            if item not in wanted:
                task.cancel()
        for item in [*self._grants]:
            if item not in wanted and item not in self.items:
                # Claimed too late, and in no share.
                self._client.start_task(self._grants.pop(item).release())

    async def _take(self, item: str) -> None:
        path = child_path(child_path(self._path, "items"), _ITEM + quote(item, safe=""))
        claim = Claim(self._client, path, self._acl, self._data)
        with claim.left_on_error():
            await claim.enter()
            self._asking.discard(item)
            self._wake()
            await claim.reach()
        self._grants[item] = grant = Grant(claim)
        grant.add_listener(self._wake)

    def _on_claimed(self, item: str, task: asyncio.Task[None]) -> None:
        del self._claiming[item]
        self._asking.discard(item)
        self._on_done(task)
        self._wake()

    def _tell(self, held: frozenset[str]) -> None:
        """Note a new share; removed items are ours until the next one is requested."""
        self._going = {one: self._grants.pop(one) for one in self.items - held}
        self.items = held
        self._wake()

    def _let_go(self) -> None:
        for grant in self._going.values():
            self._client.start_task(grant.release())
        self._going = {}
        self._wake()

    # Who has what.

    async def _coordinate(self, place: Place) -> None:
        """Divide the items, once we are the first in the line."""
        await place.reach()
        with watch_signal(self._client) as signal:
            while await retry(self._client, partial(self._divide, place, signal)):
                await signal.wait()

    async def _divide(self, place: Place, signal: Signal) -> bool:
        """Write the division; return whether we are still a member."""
        while True:
            try:
                names = await self._client.children(self._line.path, watch=signal)
                data, stat = await self._client.get(self._line.path)
            except NoNodeError:
                return False
            members = [entry.name for entry in self._line.in_order(names)]
            if place.name not in members:
                return False
            before = decoded(data)
            division = divide(self._items, members, before)
            if division == before:
                return True
            try:
                async with self._client.transaction().check(place.path) as transaction:
                    transaction.set(self._line.path, encoded(division), version=stat.version)
                return True
            except TransactionFailedError as failed:
                # We are no member, or another member has written: read again.
                if not isinstance(failed.cause, NoNodeError | BadVersionError):
                    raise

    async def _read_division(self, signal: Signal) -> Division:
        path = self._line.path
        found = await retry(self._client, lambda: read_node(self._client, path, signal))
        return {} if found is None else decoded(found.data)

    # How it goes.

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        # Our grant says so when the session is over or our node was deleted.
        if error is not None and not isinstance(error, SessionExpiredError | LockStateError):
            self._failure = error
            self._wake()

    def _wake(self, *_: object) -> None:
        for signal in self._waiting:
            signal.set()

    def _check(self, grant: Grant) -> None:
        if self._failure is not None:
            raise self._failure
        grant.check()


class _Watch(Signal):
    """A signal that remembers whether to read again."""

    def __init__(self) -> None:
        super().__init__()
        self.has_fired = True

    def __call__(self, event: Event) -> None:
        self.has_fired = True
        super().__call__(event)


def _checked_items(items: object) -> list[str]:
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise InvalidArgumentError(f"items: expected several texts, not {items!r}")
    found = list(dict.fromkeys(items))
    for item in found:
        if not isinstance(item, str) or not item or not _can_be_sent(item):
            raise InvalidArgumentError(f"items: {item!r} is not text")
    return sorted(found)


def _can_be_sent(text: str) -> bool:
    """Return whether it can be encoded: half a pair of surrogates cannot."""
    return text.isprintable() or not any("\ud800" <= one <= "\udfff" for one in text)
