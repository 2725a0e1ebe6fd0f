"""Queue: every item is handed to one consumer at a time, until one of them is done with it.

    queue = Queue(client, "/jobs", attempts_max=3)
    await queue.put(b"resize 7.png")
    async with queue.take() as item:
        print(item.data)  # b'resize 7.png'

An item is acknowledged at the end of the scope that took it. If the scope is left with an error, or
is cancelled, or its session ends, the item is given back, for anybody to take. Guaranteed is:

* What `put` has returned is in the queue until it is acknowledged, once, whatever replies are lost
  on the way. It is neither doubled nor dropped.
* Nobody takes an item while another one surely has it. Whoever has lost it cannot acknowledge it.
* Of what is there when `take` looks, the item with the lowest priority number comes first, and of
  these the one that was put first. Several consumers at once may overtake each other.
* Attempts are counted by the service, those of consumers that were killed as well. With
  `attempts_max`, an item that was taken so often is moved to the dead letters instead.

Consumers that find nothing stand in a line, of which only the first one watches: a new item wakes
up one of them.

* Suspension (the connection is lost): a consumer goes on with its item, a waiter goes on waiting.
* Expiry, or nothing heard for a session timeout: `take` cancels its body and raises GrantLostError;
  a waiter gets SessionExpiredError. The item is free as soon as the service has ended the session.
* Cancellation: what was taken is given back in the background, for as long as that takes. A `put`
  that is cancelled has happened or not.
* Never promised: that an item is worked on only once. A consumer may fail when all is done but the
  acknowledgement. What it writes to the service can be tied to its attempt (`QueueItem.guard`), and
  outside of it `token` tells a late consumer from a later one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import (
    check_count,
    check_seconds,
    checked_acl,
    checked_data,
    checked_path,
)
from paddock.client.transaction import Transaction
from paddock.errors import (
    ConnectionLostError,
    InvalidArgumentError,
    LockStateError,
    NoNodeError,
    NotReadOnlyError,
    TransactionFailedError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.protocol.records import Stat
from paddock.recipes.common.retry import (
    Losses,
    Signal,
    child,
    fraction,
    until_answered,
    wait_writable,
)
from paddock.recipes.common.sweeper import Sweeper
from paddock.recipes.locks.grant import Grant, GrantScope
from paddock.recipes.locks.line import Line
from paddock.recipes.queue.delivery import Delivery
from paddock.recipes.queue.queue_index import Entry, Places, Seen, Shelf, draw, in_order, new_name

# What the name of a waiting consumer's node says before its number.
_WAITS: Final = "wait-"
_PRIORITY_MAX: Final = 2**31 - 1
_DELAY_SECONDS_MAX: Final = 100 * 366 * 86400.0
# Room for the rest of the largest request that servers take: moving it takes several paths.
_DATA_BYTES_MAX: Final = 1_000_000
# An item that is held for longer is watched.
_WATCH_SECONDS: Final = 0.05
# Longer than that nobody sleeps without looking.
_SLEEP_SECONDS_MAX: Final = 3600.0


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """An item that is in a queue, as everybody can see it."""

    id: str
    path: str
    data: bytes
    priority: int
    #: How often it was taken.
    attempts: int
    #: Whether somebody has it.
    is_taken: bool
    #: Whether its time has not come yet.
    is_delayed: bool


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An item that was taken too often, and is not handed out any more."""

    id: str
    path: str
    data: bytes
    priority: int


class QueueItem:
    """An item that we have taken, and have until the end of its scope or until it is lost."""

    def __init__(self, delivery: Delivery, grant: Grant) -> None:
        entry = delivery.entry
        # What `put` has returned.
        self.id: str = entry.id
        self.data: bytes = delivery.data
        self.priority: int = entry.priority
        # How often it has been taken, this time included.
        self.attempts: int = delivery.attempts
        # The fencing token: it is larger for whoever takes the item later.
        self.token: int = delivery.token
        self._delivery = delivery
        self._grant = grant

    def __repr__(self) -> str:
        return f"<QueueItem {self.id} attempt {self.attempts} token {self.token}>"

    @property
    def is_held(self) -> bool:
        """Whether it is surely ours, at this moment."""
        return self._grant.is_held

    def guard(self) -> Transaction:
        """Begin a transaction that only succeeds while the item is ours, by this very attempt.

            async with item.guard() as transaction:
                transaction.set("/result", b"done")

        It begins with two checks, whose results are None. Raises GrantLostError if the item is lost
        already; the commit raises TransactionFailedError if the service finds that it is.
        """
        self._grant.check()
        transaction = self._delivery.client.transaction()
        self._delivery.check(transaction)
        return transaction


class Queue:
    """Items that producers put and consumers take, each of them until somebody is done with it.

        queue = Queue(client, "/jobs")
        first = await queue.put(b"send the letters", priority=5)
        async with queue.take() as item:
            print(item.id == first, item.attempts)  # True 1

    With `attempts_max`, whoever comes upon an item that was taken so often before moves it to the
    dead letters. It is for each consumer to say; those of one queue had better agree.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        attempts_max: int | None = None,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        checked_path(path)
        checked_acl(acl)
        if attempts_max is not None:
            check_count("attempts_max", attempts_max)
        self._client = client
        self._path = path
        self._acl = acl
        self._attempts_max = attempts_max
        self._places = Places(client, path)
        self._shelf = Shelf(client, self._places)
        self._sweeper = Sweeper(client)
        self._line = Line(client, path, [_WAITS], b"", acl)
        # What we have, or are trying to have, by id.
        self._own: set[str] = set()

    def __repr__(self) -> str:
        return f"<Queue {self._path}>"

    async def put(self, data: bytes, *, priority: int = 100, delay: float = 0.0) -> str:
        """Put an item into the queue; give its id.

            await queue.put(b"now, before others", priority=1)
            await queue.put(b"in a minute, at the earliest", delay=60)

        A lower priority number comes first. The delay is in seconds, by the service's clock.
        Raises SessionExpiredError, and then nobody knows whether it was put.
        """
        _check_item(data, priority, delay)
        due_ms = 0
        if delay > 0:
            due_ms = await self._shelf.clock.latest_ms() + math.ceil(delay * 1000)
        return await self._put(data, priority, due_ms)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[QueueItem]:
        """Wait for an item, and have it for the length of a scope.

            async with queue.take() as item:
                print(item.data)

        At its end the item is acknowledged. If it is left with an error, the item is given back.
        When the item is lost, its body is cancelled, and GrantLostError is raised: another consumer
        has it or will have it. That is raised, too, if nobody knows whether the acknowledgement
        came in time.
        """
        delivery = await self._take_some()
        while delivery is None:
            delivery = await self._wait_in_line()
        async with self._held(delivery) as item:
            yield item

    @asynccontextmanager
    async def try_take(self) -> AsyncIterator[QueueItem | None]:
        """Have an item for the length of a scope, as `take` does, or None if none is free now.

            async with queue.try_take() as item:
                print("nothing is free" if item is None else item.data)

        It waits for nobody.
        """
        delivery = await self._take_some()
        if delivery is None:
            yield None
            return
        async with self._held(delivery) as item:
            yield item

    async def size(self) -> int:
        """Give how many items there are: free, taken and delayed ones, without dead letters."""
        return len(await self._entries(self._places.entries))

    async def items(self) -> list[QueueEntry]:
        """Give all items that there are, in the order in which they are to be taken.

        It reads every one of them: for people who look at a queue, and for tests.
        """
        entries = await self._entries(self._places.entries)
        taken = set(await until_answered(self._client, lambda: self._names(self._places.taken)))
        now_ms = 0
        if any(entry.due_ms for entry in entries):
            now_ms = await self._shelf.clock.earliest_ms()
        found = await self._read(self._places.entries, entries)
        counters = await asyncio.gather(
            *(self._stat(self._places.attempts(entry)) for entry, _ in found)
        )
        return [
            QueueEntry(
                entry.id,
                self._places.entry(entry),
                data,
                entry.priority,
                0 if counter is None else counter.version + 1,
                entry.id in taken,
                entry.due_ms > now_ms,
            )
            for (entry, data), counter in zip(found, counters, strict=True)
        ]

    async def dead_letters(self) -> list[DeadLetter]:
        """Give the items that were taken too often; deleting its node is the end of one."""
        entries = await self._entries(self._places.dead)
        return [
            DeadLetter(entry.id, child(self._places.dead, entry.name), data, entry.priority)
            for entry, data in await self._read(self._places.dead, entries)
        ]

    async def put_back(self, letter_id: str) -> str:
        """Put a dead letter into the queue again, behind what is there; give its new id.

            for letter in await queue.dead_letters():
                await queue.put_back(letter.id)

        Its attempts are counted anew. Raises NoNodeError if there is no such letter, or no more.
        """
        for letter in await self.dead_letters():
            if letter.id == letter_id:
                return await self._put(letter.data, letter.priority, 0, letter.path)
        raise NoNodeError("put_back", child(self._places.dead, letter_id))

    # Putting.

    async def _put(
        self, data: bytes, priority: int, due_ms: int, letter_path: str | None = None
    ) -> str:
        item_id = self._client.new_mark()
        path = child(self._places.entries, new_name(priority, item_id, due_ms))
        receipt_path = child(self._places.receipts, item_id)
        losses = Losses()
        try:
            while True:
                transaction = self._client.transaction()
                transaction.create(path, data, acl=self._acl, sequential=True)
                # The item may be taken and gone before we hear of it. This is not.
                transaction.create(receipt_path, acl=self._acl, ephemeral=True)
                if letter_path is not None:
                    transaction.delete(letter_path)
                try:
                    await transaction.commit()
                    return item_id
                except NotReadOnlyError:
                    await wait_writable(self._client)
                except ConnectionLostError as error:
                    if await until_answered(self._client, lambda: self._is_put(item_id)):
                        return item_id
                    losses.add(error)
                except TransactionFailedError as refusal:
                    await self._mend(refusal)
        finally:
            self._sweeper.add(receipt_path)

    async def _is_put(self, item_id: str) -> bool:
        # The server we are attached to now may be behind the one that took our request.
        await self._client.sync(self._path)
        if await self._client.exists(child(self._places.receipts, item_id)) is not None:
            return True
        # Somebody may have deleted that.
        names = await self._names(self._places.entries)
        return any(entry.id == item_id for entry in in_order(names))

    async def _mend(self, refusal: TransactionFailedError) -> None:
        """Make what a put was in want of, or raise what was wrong with it."""
        above, receipts, *letter = refusal.results
        if isinstance(above, NoNodeError) or isinstance(receipts, NoNodeError):
            return await self._places.make()
        cause = next((one for one in (above, receipts, *letter) if one is not None), refusal)
        raise cause from refusal

    # Taking.

    async def _take_some(self) -> Delivery | None:
        """Take the first of what is free now."""
        seen = await self._shelf.free(self._own)
        delivery = await self._try(seen)
        if delivery is None and seen.entries and not seen.is_checked:
            # Others have something: see what they have.
            delivery = await self._try(await self._shelf.free(self._own))
        return delivery

    async def _wait_in_line(self) -> Delivery | None:
        """Wait for something to be free, and take it; gives None if we have to wait again."""
        place = self._line.new_place(_WAITS)
        signal = Signal()
        try:
            await place.enter()
            await place.reach()
            while True:
                seen = await self._shelf.free(self._own, signal)
                delivery = await self._try(seen)
                if delivery is not None:
                    return delivery
                await _wait(signal, seen.seconds_to_next)
        except LockStateError:
            # Somebody has deleted our place, so we stand at the end.
            return None
        finally:
            self._client.forget_watcher(signal)
            # Not awaited: whoever is cancelled must not wait for the service.
            self._client.start_task(place.leave())

    async def _try(self, seen: Seen) -> Delivery | None:
        """Take the first one that nobody else has, or one close to it if others are at it, too."""
        rest = list(seen.entries)
        # Whoever was slower than another had better not be in its way again: those who looked at
        # the same time would otherwise try everything one after the other, and together.
        choice = 1
        while rest:
            entry = rest.pop(draw(rest[:choice], fraction(self._client)) if choice > 1 else 0)
            if entry.id in self._own:
                continue
            delivery = Delivery(
                self._client, self._places, entry, self._sweeper, self._acl, self._attempts_max
            )
            self._own.add(entry.id)
            is_ours = False
            try:
                is_ours = await delivery.claim()
            except BaseException:
                self._client.start_task(delivery.leave())
                raise
            finally:
                if not is_ours:
                    self._own.discard(entry.id)
            if is_ours:
                return delivery
            if delivery.is_gone:
                self._shelf.forget(entry)
            elif not seen.is_checked:
                self._shelf.expect_others()
                break
            else:
                choice *= 2
        return None

    @asynccontextmanager
    async def _held(self, delivery: Delivery) -> AsyncIterator[QueueItem]:
        # Whoever has lost it cannot acknowledge it, so there is time to look whether it is.
        grant = Grant(delivery, watch_after=_WATCH_SECONDS)
        scope = GrantScope(grant)
        try:
            try:
                yield QueueItem(delivery, grant)
            except BaseException as error:
                await scope.leave(type(error), error, error.__traceback__)
                raise
            # What is lost is being given back already.
            delivery.is_done = not grant.is_lost
            await scope.leave(None, None, None)
        finally:
            self._own.discard(delivery.entry.id)
        if not delivery.is_acknowledged:
            raise grant.lost() from delivery.refusal
        self._shelf.forget(delivery.entry)

    # Looking.

    async def _entries(self, above: str) -> list[Entry]:
        return in_order(await until_answered(self._client, lambda: self._names(above)))

    async def _names(self, above: str) -> list[str]:
        try:
            return await self._client.children(above)
        except NoNodeError:
            return []

    async def _stat(self, path: str) -> Stat | None:
        return await until_answered(self._client, lambda: self._client.exists(path))

    async def _read(self, above: str, entries: Sequence[Entry]) -> list[tuple[Entry, bytes]]:
        """Give those of some items that are still there, with their data."""

        async def read(entry: Entry) -> tuple[Entry, bytes] | None:
            path = child(above, entry.name)
            try:
                data, _ = await until_answered(self._client, lambda: self._client.get(path))
            except NoNodeError:
                return None
            return entry, data

        found = await asyncio.gather(*(read(entry) for entry in entries))
        return [one for one in found if one is not None]


async def _wait(signal: Signal, seconds: float | None) -> None:
    """Wait for a signal, or for a time to come if there is one."""
    limit = None if seconds is None else min(seconds, _SLEEP_SECONDS_MAX)
    try:
        async with asyncio.timeout(limit):
            await signal.wait()
    except TimeoutError:
        pass


def _check_item(data: bytes | None, priority: object, delay: float) -> None:
    if checked_data(data) is None or len(data or b"") > _DATA_BYTES_MAX:
        raise InvalidArgumentError(f"data: an item has 0 to {_DATA_BYTES_MAX} bytes")
    if not isinstance(priority, int) or isinstance(priority, bool) or abs(priority) > _PRIORITY_MAX:
        raise InvalidArgumentError(f"priority: {priority!r} is no number of 32 bits")
    check_seconds("delay", delay)
    if not 0 <= delay <= _DELAY_SECONDS_MAX:
        raise InvalidArgumentError(f"delay: {delay!r} is no number of seconds to wait")
