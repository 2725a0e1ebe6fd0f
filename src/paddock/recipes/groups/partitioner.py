"""Partitioner: a set that is divided among members, each item belongs to one of them at a time.

    async with Partitioner(client, "/shards", ["a", "b", "c"]) as partitioner:
        async for share in partitioner.shares():
            print(sorted(share.items))  # ['a', 'b', 'c']
            break

When somebody comes or goes, the items are divided anew: nobody has two more than another one, and
whoever can keep an item keeps it. That is decided by one of the members, the first in the line that
they stand in, and written down for all. What is guaranteed does not rest on it: whoever is to have
an item claims it by a node of its own, and gets it only when whoever had it has let go or is dead.

To let go takes the holder's word: an item that is not in a share any more is let go when the next
share is asked for. Until then nobody else has it. Each item has a grant, with a fencing token.

* Suspension (the connection is lost): everybody keeps what they have.
* Expiry, or nothing heard for a session timeout: all is lost. The scope cancels its body and raises
  GrantLostError; others get the items when the service ends our session.
* Cancellation: whoever is cancelled leaves, as at the end of the scope. Nodes are deleted in the
  background for as long as that takes.
* Never promised: that a holder is alone by the clock, as with any lock
  (`paddock.recipes.locks.grant` says what helps); nor that an item has a holder at every moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.client.states import Event
from paddock.errors import (
    BadVersionError,
    InvalidArgumentError,
    LockStateError,
    NoNodeError,
    SessionExpiredError,
    TransactionFailedError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.common.retry import Signal, child, until_answered
from paddock.recipes.groups.division import Division, decoded, divide, encoded
from paddock.recipes.locks.claim import Claim
from paddock.recipes.locks.grant import Grant, GrantEvent, GrantScope
from paddock.recipes.locks.line import Contender, Line, Place

# What the name of a member's node says before its number.
_KIND: Final = "member-"
# What the name of an item's node begins with, so that an item may have any name.
_ITEM: Final = "item-"


@dataclass(frozen=True, slots=True)
class Share:
    """What is ours, from now on."""

    items: frozenset[str]
    #: What has come, compared with the share before.
    gained: frozenset[str]
    #: What has gone: it is let go when the next share is asked for.
    removed: frozenset[str]


class Partitioner:
    """One member of those who divide a set of items.

        async with Partitioner(client, "/shards", ["a", "b"]) as partitioner:
            async for share in partitioner.shares():
                print(partitioner.grant("a").is_held)  # True
                break

    All members give the same items; if they do not, those of the one who has been there longest
    count. `data` is what others read of us in `members`.
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
        self._client = client
        self._path = path
        self._data = data
        self._acl = acl
        # Its node has the division as its data, and goes when the last member has gone.
        self._line = Line(client, child(path, "members"), [_KIND], data, acl)
        self._place: Place | None = None
        self._grant: Grant | None = None
        self._scope: GrantScope | None = None
        self._coordinating: asyncio.Task[None] | None = None
        # By item: what we hold, and what we wait for.
        self._grants: dict[str, Grant] = {}
        self._claiming: dict[str, asyncio.Task[None]] = {}
        # Of which it is not known yet whether they can be had at once.
        self._asking: set[str] = set()
        # What is let go once the next share is asked for.
        self._going: dict[str, Grant] = {}
        # What was told last.
        self._told: frozenset[str] = frozenset()
        self._is_read = False
        # What keeps us from going on, and those who want to know.
        self._failure: BaseException | None = None
        self._waiting: set[Signal] = set()

    def __repr__(self) -> str:
        state = "not joined" if self._place is None else f"{len(self._told)} items"
        return f"<Partitioner {self._path} {state}>"

    async def __aenter__(self) -> Self:
        if self._place is not None:
            raise LockStateError(f"{self._path}: it has been joined already; make another one")
        self._place = place = self._line.new_place(_KIND)
        try:
            await place.enter()
        except BaseException:
            # Not awaited: whoever is cancelled must not wait for the service.
            self._client.start_task(place.leave())
            raise
        self._grant = grant = Grant(place)
        grant.add_listener(self._on_grant)
        self._scope = GrantScope(grant)
        self._coordinating = self._client.start_task(self._coordinate(place))
        self._coordinating.add_done_callback(self._on_done)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._scope is not None, "it was entered"
        if self._coordinating is not None:
            self._coordinating.cancel()
        for claiming in self._claiming.values():
            claiming.cancel()
        held = [*self._grants.values(), *self._going.values()]
        letting_go = [self._client.start_task(one.release()) for one in held]
        self._grants, self._going, self._told = {}, {}, frozenset()
        for signal in self._waiting:
            self._client.forget_watcher(signal)
        self._wake()
        await self._scope.leave(kind, error, traceback)
        if letting_go:
            await asyncio.wait(letting_go)

    @property
    def items(self) -> frozenset[str]:
        """What is ours, as the last share has told."""
        return self._told

    def grant(self, item: str) -> Grant:
        """Give the grant of an item that is ours, or about to be let go.

        Raises LockStateError if it is neither.
        """
        grant = self._grants.get(item) or self._going.get(item)
        if grant is None:
            raise LockStateError(f"{self._path}: {item!r} is not ours")
        return grant

    def shares(self) -> AsyncGenerator[Share, None]:
        """Give what is ours, whenever it changes; asking for the next one lets go what has gone.

            async for share in partitioner.shares():
                print(sorted(share.gained), sorted(share.removed))  # ['a', 'b'] []
                break

        The first share comes once we have any, or it is known that there is none for us. Whoever
        stops asking keeps what they have until the scope ends, and then shares end as well. Raises
        GrantLostError when we are a member no more, and LockStateError if somebody else asks
        already, or before the scope.
        """
        return self._shares(*self._member())

    async def wait_settled(self) -> None:
        """Wait until we have what belongs to us, all of it and no more, by the present members.

        It takes somebody who asks for shares meanwhile. Others may still wait for theirs. Raises
        GrantLostError when we are a member no more.
        """
        place, grant = self._member()
        signal = Signal()
        self._waiting.add(signal)
        try:
            while True:
                self._check(grant)
                entries = self._line.in_order(
                    await until_answered(
                        self._client,
                        lambda: self._client.children(self._line.path, watch=signal),
                    )
                )
                division = await self._read_division(signal)
                is_of_the_present = division.keys() == {entry.name for entry in entries}
                wanted = division.get(place.name)
                is_ours = wanted is not None and self._told == frozenset(wanted)
                if is_of_the_present and is_ours and not self._going:
                    return
                await signal.wait()
        except (NoNodeError, SessionExpiredError) as error:
            # The node goes with the last member, so we are none.
            raise grant.lost() from error
        finally:
            self._waiting.discard(signal)
            self._client.forget_watcher(signal)

    async def members(self) -> list[Contender]:
        """Give all members, in the order in which they came."""
        return await self._line.contenders()

    def _member(self) -> tuple[Place, Grant]:
        if self._place is None or self._grant is None or self._grant.is_released:
            raise LockStateError(f"{self._path}: it is to be used in its scope")
        return self._place, self._grant

    # What is ours.

    async def _shares(self, place: Place, grant: Grant) -> AsyncGenerator[Share, None]:
        if self._is_read:
            raise LockStateError(f"{self._path}: its shares are asked for already")
        self._is_read = True
        # Whoever asks anew has seen what was told before.
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
                    told, held = self._told, frozenset(filter(self._holds, wanted))
                    is_first = not has_told and (held or not wanted)
                    # What comes may wait for what comes with it; what goes does not.
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
        """Begin to claim what we are to have, and no longer what we are not."""
        for item in wanted:
            if item not in self._claiming and not self._holds(item):
                self._asking.add(item)
                self._claiming[item] = task = self._client.start_task(self._take(item))
                task.add_done_callback(partial(self._on_claimed, item))
        for item, task in self._claiming.items():
            if item not in wanted:
                task.cancel()
        for item in [*self._grants]:
            if item not in wanted and item not in self._told:
                # It came too late, and nobody knows of it.
                self._client.start_task(self._grants.pop(item).release())

    async def _take(self, item: str) -> None:
        path = child(child(self._path, "items"), _ITEM + quote(item, safe=""))
        claim = Claim(self._client, path, self._acl, self._data)
        try:
            await claim.enter()
            self._asking.discard(item)
            self._wake()
            await claim.reach()
        except BaseException:
            self._client.start_task(claim.leave())
            raise
        self._grants[item] = grant = Grant(claim)
        grant.add_listener(self._on_grant)

    def _on_claimed(self, item: str, task: asyncio.Task[None]) -> None:
        del self._claiming[item]
        self._asking.discard(item)
        self._on_done(task)
        self._wake()

    def _tell(self, held: frozenset[str]) -> None:
        """Take down what is told; what has gone is ours until somebody asks for the next share."""
        self._going = {one: self._grants.pop(one) for one in self._told - held}
        self._told = held
        self._wake()

    def _let_go(self) -> None:
        for grant in self._going.values():
            self._client.start_task(grant.release())
        self._going = {}
        self._wake()

    # Who has what.

    async def _coordinate(self, place: Place) -> None:
        """Divide the items, from when we are the first in the line."""
        await place.reach()
        signal = Signal()
        try:
            while await until_answered(self._client, partial(self._divide, place, signal)):
                await signal.wait()
        finally:
            self._client.forget_watcher(signal)

    async def _divide(self, place: Place, signal: Signal) -> bool:
        """Write down who is to have what; tell whether we are still a member."""
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
            transaction = self._client.transaction().check(place.path)
            transaction.set(self._line.path, encoded(division), version=stat.version)
            try:
                await transaction.commit()
            except TransactionFailedError as failed:
                # We are a member no more; or somebody else has written, so we look again.
                if not isinstance(failed.cause, NoNodeError | BadVersionError):
                    raise
            else:
                return True

    async def _read_division(self, signal: Signal) -> Division:
        async def read() -> NodeData | None:
            try:
                return await self._client.get(self._line.path, watch=signal)
            except NoNodeError:
                return None

        found = await until_answered(self._client, read)
        return {} if found is None else decoded(found.data)

    # How it goes.

    def _on_grant(self, event: GrantEvent) -> None:
        if event is GrantEvent.LOST:
            self._wake()

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        # When the session is over, so is our grant; and one whose node was deleted.
        if error is not None and not isinstance(error, SessionExpiredError | LockStateError):
            self._failure = error
            self._wake()

    def _wake(self) -> None:
        for signal in self._waiting:
            signal.set()

    def _check(self, grant: Grant) -> None:
        if self._failure is not None:
            raise self._failure
        grant.check()


class _Watch(Signal):
    """A signal that remembers whether there is something to be read again."""

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
    """Tell whether it is whole: half a pair of surrogates cannot be sent."""
    return text.isprintable() or not any("\ud800" <= one <= "\udfff" for one in text)
