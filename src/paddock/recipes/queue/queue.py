"""Queue: each item is delivered to one consumer at a time, until it is acknowledged.

    queue = Queue(client, "/jobs", attempts_max=3)
    await queue.put(b"resize 7.png")
    async with queue.take() as item:
        print(item.data)  # b'resize 7.png'

An item is acknowledged at the end of the scope that took it. If the scope is left with an error, or
is cancelled, or its session ends, the item is given back to the queue. Guaranteed is:

* An item that `put` has returned is in the queue until it is acknowledged, once, whatever replies
  are lost. It is neither doubled nor dropped.
* No consumer takes an item while another one surely has it. A consumer that has lost an item cannot
  acknowledge it.
* Of the items that are there when `take` looks, the lowest priority number comes first, in FIFO
  order. Concurrent consumers may overtake each other.
* Attempts are counted by the service, also those of consumers that were killed. With
  `attempts_max`, an item that was taken so often is moved to the dead letters instead.

Consumers that find nothing stand in a line, of which only the first one watches: a new item wakes
one of them.

* Suspension (the connection is lost): a consumer goes on with its item, a waiter goes on waiting.
* Expiry, or nothing heard for a session timeout: `take` cancels its body and raises GrantLostError;
  a waiter gets SessionExpiredError. The item is free as soon as the service has ended the session.
* Cancellation: a taken item is given back in the background, for as long as that takes. A cancelled
  `put` has happened or not.
* Never promised: that an item is processed only once. A consumer may fail just before the
  acknowledgement. Its writes to the service can be tied to its attempt (`QueueItem.guard`), and
  outside of it `token` tells a late consumer from a later one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import check_count, check_seconds, checked_data
from paddock.client.time_limits import limited
from paddock.client.transaction import Transaction
from paddock.errors import (
    ConnectionLostError,
    InvalidArgumentError,
    LockStateError,
    NoNodeError,
    TransactionFailedError,
)
from paddock.layouts import WAIT
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.common.background import Recipe
from paddock.recipes.common.departure import Sweeper
from paddock.recipes.common.receipt import Receipt
from paddock.recipes.common.retry import (
    RetryLimit,
    Signal,
    list_children,
    random_fraction,
    request_each,
    retry,
    watch_signal,
    write_once,
)
from paddock.recipes.locks.grant import Grant
from paddock.recipes.locks.grant_scope import GrantScope
from paddock.recipes.locks.line import Line
from paddock.recipes.queue.delivery import Delivery
from paddock.recipes.queue.queue_index import (
    AvailableItems,
    Entry,
    QueueIndex,
    QueuePaths,
    draw,
    in_order,
    new_name,
)

# The prefix of a waiting consumer's node.
_WAITS: Final = WAIT
_PRIORITY_MAX: Final = 2**31 - 1
_DELAY_SECONDS_MAX: Final = 100 * 366 * 86400.0
# Leaves room for the paths in the largest request that servers accept.
_DATA_BYTES_MAX: Final = 1_000_000
# An item that is held longer is watched.
_WATCH_SECONDS: Final = 0.05
# The longest sleep without looking.
_SLEEP_SECONDS_MAX: Final = 3600.0


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """An item in a queue."""

    id: str
    path: str
    data: bytes
    priority: int
    #: How often it was taken.
    attempts: int
    #: Whether a consumer has it.
    is_taken: bool
    #: Whether its delay is not over.
    is_delayed: bool


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An item that was taken too often, and is not delivered any more."""

    id: str
    path: str
    data: bytes
    priority: int


class QueueItem:
    """An item that we have until the end of its scope, or until it is lost."""

    def __init__(self, delivery: Delivery, grant: Grant) -> None:
        entry = delivery.entry
        # The id that `put` has returned.
        self.id: str = entry.id
        self.data: bytes = delivery.data
        self.priority: int = entry.priority
        # How often it was taken, this time included.
        self.attempts: int = delivery.attempts
        # The fencing token: it is larger for every later consumer of the item.
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


class Queue(Recipe):
    """Items that producers put and consumers take.

        queue = Queue(client, "/jobs")
        first = await queue.put(b"send the letters", priority=5)
        async with queue.take() as item:
            print(item.id == first, item.attempts)  # True 1

    With `attempts_max`, a consumer moves an item that was taken so often to the dead letters. All
    consumers of a queue should use the same number.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        attempts_max: int | None = None,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        super().__init__(client, path, acl)
        if attempts_max is not None:
            check_count("attempts_max", attempts_max)
        self._attempts_max = attempts_max
        self._paths = QueuePaths(client, path)
        self._index = QueueIndex(client, self._paths)
        self._sweeper = Sweeper(client)
        self._line = Line(client, path, [_WAITS], b"", acl)
        # The ids of items that we have, or try to take.
        self._own: set[str] = set()

    async def put(self, data: bytes, *, priority: int = 100, delay: float = 0.0) -> str:
        """Put an item into the queue; return its id.

            await queue.put(b"now, before others", priority=1)
            await queue.put(b"in a minute, at the earliest", delay=60)

        A lower priority number comes first. The delay is in seconds, by the service's clock.
        After a SessionExpiredError it may have been put, or not.
        """
        _check_item(data, priority, delay)
        due_ms = 0
        if delay > 0:
            due_ms = await self._index.clock.latest_ms() + math.ceil(delay * 1000)
        return await self._put(data, priority, due_ms)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[QueueItem]:
        """Wait for an item, and take it for the length of a scope.

            async with queue.take() as item:
                print(item.data)

        At its end the item is acknowledged. If it is left with an error, the item is given back.
        When the item is lost, its body is cancelled, and GrantLostError is raised: another consumer
        gets it. That is also raised if the outcome of the acknowledgement is unknown.
        """
        delivery = await self._take_some()
        while delivery is None:
            delivery = await self._wait_in_line()
        async with self._held(delivery) as item:
            yield item

    @asynccontextmanager
    async def try_take(self) -> AsyncIterator[QueueItem | None]:
        """Take an item for the length of a scope, as `take` does, or None if none is free.

            async with queue.try_take() as item:
                print("nothing is free" if item is None else item.data)

        It does not wait.
        """
        delivery = await self._take_some()
        if delivery is None:
            yield None
            return
        async with self._held(delivery) as item:
            yield item

    async def size(self) -> int:
        """Return the number of items: free, taken and delayed ones, without dead letters."""
        return len(await self._entries(self._paths.entries))

    async def items(self) -> list[QueueEntry]:
        """Return all items, in the order in which they are taken.

        It reads each of them: for inspection and for tests.
        """
        entries = await self._entries(self._paths.entries)
        taken = {*await retry(self._client, lambda: list_children(self._client, self._paths.taken))}
        has_delayed = any(entry.due_ms for entry in entries)
        now_ms = await self._index.clock.earliest_ms() if has_delayed else 0
        found = await self._read(self._paths.entries, entries)
        paths = [self._paths.attempts(entry) for entry, _ in found]
        stats = await retry(self._client, lambda: request_each(self._client.exists, paths))
        return [
            QueueEntry(
                entry.id,
                self._paths.entry(entry),
                data,
                entry.priority,
                0 if counter is None else counter.version + 1,
                entry.id in taken,
                entry.due_ms > now_ms,
            )
            for (entry, data), counter in zip(found, map(stats.get, paths), strict=True)
        ]

    async def dead_letters(self) -> list[DeadLetter]:
        """Return the items that were taken too often; delete the node of one to drop it."""
        entries = await self._entries(self._paths.dead)
        return [
            DeadLetter(entry.id, child_path(self._paths.dead, entry.name), data, entry.priority)
            for entry, data in await self._read(self._paths.dead, entries)
        ]

    async def put_back(self, letter_id: str) -> str:
        """Put a dead letter into the queue again, at the end; return its new id.

            for letter in await queue.dead_letters():
                await queue.put_back(letter.id)

        Its attempts are counted anew. Raises NoNodeError if there is no such letter.
        """
        for letter in await self.dead_letters():
            if letter.id == letter_id:
                return await self._put(letter.data, letter.priority, 0, letter.path)
        raise NoNodeError("put_back", child_path(self._paths.dead, letter_id))

    # Putting.

    async def _put(
        self, data: bytes, priority: int, due_ms: int, letter_path: str | None = None
    ) -> str:
        item_id = self._client.new_mark()
        path = child_path(self._paths.entries, new_name(priority, item_id, due_ms))
        # The item may be gone before our reply comes; the receipt stays.
        receipt = Receipt(self._client, child_path(self._paths.receipts, item_id), self._acl)

        async def create() -> str:
            while True:
                transaction = self._client.transaction()
                transaction.create(path, data, acl=self._acl, sequential=True)
                if letter_path is not None:
                    transaction.delete(letter_path)
                try:
                    await receipt.commit(transaction)
                    return item_id
                except TransactionFailedError as refusal:
                    await self._repair(refusal, receipt)

        async def find(lost: ConnectionLostError) -> str | None:
            if await receipt.exists(lost):
                return item_id
            # The receipt may have been deleted.
            entries = in_order(await retry(self._client, self._list_entries))
            return next((entry.id for entry in entries if entry.id == item_id), None)

        try:
            return await write_once(self._client, create, find, RetryLimit())
        finally:
            receipt.delete_later(self._sweeper)

    def _list_entries(self) -> Awaitable[list[str]]:
        return list_children(self._client, self._paths.entries)

    async def _repair(self, refusal: TransactionFailedError, receipt: Receipt) -> None:
        """Create missing containers, or raise the cause of a refusal."""
        above = refusal.results[0]
        if isinstance(above, NoNodeError) or isinstance(receipt.refusal(refusal), NoNodeError):
            return await self._paths.make()
        raise refusal.cause or refusal from refusal

    # Taking.

    async def _take_some(self) -> Delivery | None:
        """Take the first free item."""
        seen = await self._index.free(self._own)
        delivery = await self._try(seen)
        if delivery is None and seen.entries and not seen.is_checked:
            # Other consumers have some: read which.
            delivery = await self._try(await self._index.free(self._own))
        return delivery

    async def _wait_in_line(self) -> Delivery | None:
        """Wait for a free item, and take it; return None to wait again."""
        place = self._line.new_place(_WAITS)
        try:
            with watch_signal(self._client) as signal:
                await place.enter()
                await place.reach()
                while True:
                    seen = await self._index.free(self._own, signal)
                    delivery = await self._try(seen)
                    if delivery is not None:
                        return delivery
                    await _wait(signal, seen.seconds_to_next)
        except LockStateError:
            # Our place was deleted: stand at the end.
            return None
        finally:
            # Not awaited: a cancelled task must not wait for the service.
            self._client.start_task(place.leave())

    async def _try(self, seen: AvailableItems) -> Delivery | None:
        """Take the first free item, or one close to it if there is contention."""
        rest = list(seen.entries)
        # After each conflict the choice doubles, so that consumers that have read the same list do
        # not try the same items together.
        choice = 1
        while rest:
            entry = rest.pop(
                draw(rest[:choice], random_fraction(self._client)) if choice > 1 else 0
            )
            if entry.id in self._own:
                continue
            delivery = Delivery(
                self._client, self._paths, entry, self._sweeper, self._acl, self._attempts_max
            )
            self._own.add(entry.id)
            is_ours = False
            try:
                with delivery.left_on_error():
                    is_ours = await delivery.claim()
            finally:
                if not is_ours:
                    self._own.discard(entry.id)
            if is_ours:
                return delivery
            if delivery.is_gone:
                self._index.forget(entry)
            elif not seen.is_checked:
                self._index.is_shared = True
                break
            else:
                choice *= 2
        return None

    @asynccontextmanager
    async def _held(self, delivery: Delivery) -> AsyncIterator[QueueItem]:
        # A consumer that has lost it cannot acknowledge it, so a late watch does no harm.
        grant = Grant(delivery, watch_after=_WATCH_SECONDS)
        try:
            async with GrantScope(grant):
                yield QueueItem(delivery, grant)
                # A lost item is being given back already.
                delivery.is_done = not grant.is_lost
        finally:
            self._own.discard(delivery.entry.id)
        if not delivery.is_acknowledged:
            raise grant.lost() from delivery.refusal
        self._index.forget(delivery.entry)

    # Looking.

    async def _entries(self, above: str) -> list[Entry]:
        return in_order(await retry(self._client, lambda: list_children(self._client, above)))

    async def _read(self, above: str, entries: Sequence[Entry]) -> list[tuple[Entry, bytes]]:
        """Return the items that still exist, with their data."""
        named = {child_path(above, entry.name): entry for entry in entries}
        found = await retry(self._client, lambda: request_each(self._client.get, [*named]))
        return [(named[path], node.data) for path, node in found.items()]


async def _wait(signal: Signal, seconds: float | None) -> None:
    """Wait for a signal, but not longer than some seconds."""
    limit = None if seconds is None else min(seconds, _SLEEP_SECONDS_MAX)
    with suppress(TimeoutError):
        async with limited(asyncio.timeout(limit)):
            await signal.wait()


def _check_item(data: bytes | None, priority: object, delay: float) -> None:
    if checked_data(data) is None or len(data or b"") > _DATA_BYTES_MAX:
        raise InvalidArgumentError(f"data: an item has 0 to {_DATA_BYTES_MAX} bytes")
    if not isinstance(priority, int) or isinstance(priority, bool) or abs(priority) > _PRIORITY_MAX:
        raise InvalidArgumentError(f"priority: {priority!r} is no number of 32 bits")
    check_seconds("delay", delay)
    if not 0 <= delay <= _DELAY_SECONDS_MAX:
        raise InvalidArgumentError(f"delay: {delay!r} is no number of seconds to wait")
