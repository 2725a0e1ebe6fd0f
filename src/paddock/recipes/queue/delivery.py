"""One item in the hands of one consumer: taken, then acknowledged or given back.

Taking it is one transaction: our ephemeral node in `taken`, which nobody else can create as well,
and the next version of the item's `attempts`. So attempts are counted also if the consumer is
killed, and the version tells one attempt from all others: whoever was too slow can neither
acknowledge nor give back what somebody else has taken since.

Each step may lose its reply, and is recognised:

* Taken: both nodes hold a mark of ours.
* Acknowledged: the item is deleted, but our node in `taken` stays a little longer. If the item has
  gone while that node was there all the time, it was us.
* Given back: it is refused if it has happened before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from paddock.client.client import Client
from paddock.client.transaction import Transaction
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    NotReadOnlyError,
    ServiceError,
    SessionExpiredError,
    TransactionFailedError,
)
from paddock.protocol.acl import ACL
from paddock.recipes.common.retry import Leaver, child, discard, until_answered, wait_writable
from paddock.recipes.common.sweeper import Sweeper
from paddock.recipes.queue.queue_index import Entry, Places


class Delivery(Leaver):
    """One attempt at one item."""

    def __init__(
        self,
        client: Client,
        places: Places,
        entry: Entry,
        sweeper: Sweeper,
        acl: Sequence[ACL],
        attempts_max: int | None,
    ) -> None:
        self.client = client
        self.entry = entry
        # Of our node in `taken`; the token is its czxid, once it is ours.
        self.path = places.claim(entry)
        self.token = 0
        self.data = b""
        # Whether the item was found to be there no more.
        self.is_gone = False
        # Whether the consumer is done with it, so that it is acknowledged when it is left.
        self.is_done = False
        self.is_acknowledged = False
        # Why it could not be acknowledged, if the service has said so.
        self.refusal: ServiceError | None = None
        self._places = places
        self._sweeper = sweeper
        self._acl = acl
        self._attempts_max = attempts_max
        self._entry_path = places.entry(entry)
        self._counter_path = places.attempts(entry)
        self._mark = client.new_mark().encode()
        # The version of the counter before we came, if there is one: most items have none yet.
        self._before: int | None = None
        # And the one that our own transaction gave it, once we know that it has happened.
        self._version: int | None = None

    @property
    def _own_version(self) -> int:
        assert self._version is not None, "it is ours"
        return self._version

    @property
    def attempts(self) -> int:
        """How often it has been taken, this time included."""
        return self._own_version + 1

    @property
    def guarded(self) -> tuple[str, ...]:
        """What is there as long as it is ours; `check` says it more exactly."""
        return (self.path,)

    def check(self, transaction: Transaction) -> None:
        """Have a transaction fail unless it is ours, by this very attempt."""
        transaction.check(self.path).check(self._counter_path, version=self._own_version)

    async def claim(self) -> bool:
        """Try to take it; tell whether it is ours. Whatever is raised, `leave` has to follow."""
        while True:
            taking = self._take()
            # In the same write: what is read is what there is after the transaction.
            reading = self.client.get(self._entry_path)
            try:
                _, counted = await taking
                self.data, stat = await reading
            except TransactionFailedError as refusal:
                if not await self._may_try_again(refusal):
                    return False
            except NotReadOnlyError:
                await wait_writable(self.client)
            except ConnectionLostError:
                if await until_answered(self.client, self._find):
                    return True
            except NoNodeError:
                # It was ours, but somebody has deleted it, so nobody else can have a node like it.
                self.is_gone = True
                self._sweeper.add(self.path)
                return False
            else:
                # Either way the zxid of the transaction, and so that of our node.
                if self._before is None:
                    self._version, self.token = 0, stat.pzxid
                else:
                    self._version, self.token = counted.version, counted.mzxid
                return True
            finally:
                discard(reading)

    async def leave(self) -> None:
        """Acknowledge it if the consumer is done with it, or give it back; raises nothing.

        It is to be run by a task of the client's, since it has to go on if its caller is cancelled.
        """
        try:
            if self.is_done:
                await self._acknowledge()
            else:
                await until_answered(self.client, self._give_back)
        except SessionExpiredError:
            # Our node goes with it, and nobody knows whether the item has gone before.
            pass

    # Taking it.

    def _take(self) -> asyncio.Future[list[Any]]:
        """Take it, if nobody else has it: by our node, and by the next version of its counter."""
        transaction = self.client.transaction()
        transaction.create(self.path, self._mark, acl=self._acl, ephemeral=True)
        if self._before is None:
            transaction.create(self._counter_path, self._mark, acl=self._acl)
        else:
            transaction.set(self._counter_path, self._mark, version=self._before)
        return transaction.commit()

    async def _find(self) -> bool:
        """Tell whether our transaction has happened, and have what it was for."""
        # The server we are attached to now may be behind the one that took our request.
        await self.client.sync(self._counter_path)
        try:
            mark, stat = await self.client.get(self._counter_path)
            self.data, _ = await self.client.get(self._entry_path)
        except NoNodeError:
            return False
        if mark == self._mark:
            self._version, self.token = stat.version, stat.mzxid
        return mark == self._mark

    async def _may_try_again(self, refusal: TransactionFailedError) -> bool:
        """Tell whether it may be free, though we could not take it."""
        at_claim, at_counter = refusal.results
        match at_claim, at_counter:
            case (NoNodeError(), _):
                await self._places.make()
                return True
            case (None, NodeExistsError()):
                return await until_answered(self.client, self._look_at_counter)
            case (None, NoNodeError()):
                self.is_gone = True
                return False
            case (NodeExistsError(), _) | (None, BadVersionError()):
                # Somebody has it, or has had it meanwhile.
                return False
        raise refusal

    async def _look_at_counter(self) -> bool:
        """See how often it was taken before; tell whether it may be taken once more."""
        try:
            _, stat = await self.client.get(self._counter_path)
            self._before = stat.version
            if self._attempts_max is None or stat.version + 1 < self._attempts_max:
                return True
            data, _ = await self.client.get(self._entry_path)
            await self._bury(data, stat.version)
        except NoNodeError:
            self.is_gone = True
        return False

    async def _bury(self, data: bytes, version: int) -> None:
        """Lay it among the dead, unless somebody has it or has had it meanwhile."""
        transaction = self.client.transaction()
        # Only what nobody has can be created.
        transaction.create(self.path, ephemeral=True).delete(self.path)
        transaction.delete(self._counter_path, version=version)
        transaction.create(child(self._places.dead, self.entry.name), data, acl=self._acl)
        transaction.delete(self._entry_path)
        try:
            await transaction.commit()
        except TransactionFailedError as refusal:
            at_claim, _, _, at_dead, _ = refusal.results
            if isinstance(at_claim, NoNodeError) or isinstance(at_dead, NoNodeError):
                await self._places.make()
                await self._bury(data, version)
        else:
            self.is_gone = True

    # Leaving it.

    async def _acknowledge(self) -> None:
        is_in_doubt = False
        while True:
            transaction = self.client.transaction()
            transaction.delete(self._counter_path, version=self._own_version)
            transaction.delete(self._entry_path)
            try:
                await transaction.commit()
                break
            except NotReadOnlyError:
                await wait_writable(self.client)
            except ConnectionLostError:
                is_in_doubt = True
                await self.client.wait_connected()
            except TransactionFailedError as refusal:
                if is_in_doubt and await until_answered(self.client, self._is_ours_and_gone):
                    break
                self.refusal = refusal
                await until_answered(self.client, self._give_back)
                return
        self.is_acknowledged = True
        # Only now: it is what tells us that the item was ours until it was gone.
        self._sweeper.add(self.path)

    async def _is_ours_and_gone(self) -> bool:
        """Tell whether the item has gone while nobody else could take it."""
        # The server we are attached to now may be behind the one that took our request.
        await self.client.sync(self.path)
        if await self.client.exists(self._entry_path) is not None:
            return False
        try:
            mark, _ = await self.client.get(self.path)
        except NoNodeError:
            return False
        return mark == self._mark

    async def _give_back(self) -> None:
        if self._version is None and not await self._find():
            # It was never ours.
            return
        transaction = self.client.transaction()
        transaction.check(self._counter_path, version=self._own_version)
        transaction.delete(self.path)
        try:
            await transaction.commit()
        except TransactionFailedError as refusal:
            if isinstance(refusal.results[0], NoNodeError):
                # The item has gone, so nobody else can have a node like ours.
                self._sweeper.add(self.path)
