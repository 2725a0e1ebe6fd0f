"""One delivery of an item to a consumer: taken, then acknowledged or given back.

Taking an item is one transaction: our ephemeral node in `taken`, and the next version of the item's
`attempts`. So attempts are counted even if the consumer is killed, and the version tells them
apart: a slow consumer can neither acknowledge nor give back an item that was taken again.

Each step is recognised after a lost reply:

* Taken: both nodes have our mark.
* Acknowledged: the item is gone, while our node in `taken`, which is deleted later, exists.
* Given back: it is refused if it has happened before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
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
from paddock.protocol.paths import child_path
from paddock.recipes.common.departure import OwnedNode, Sweeper
from paddock.recipes.common.retry import discard, newest_stat, read_node, retry, wait_writable
from paddock.recipes.queue.queue_index import Entry, QueuePaths


class Delivery(OwnedNode):
    """One attempt at one item."""

    def __init__(
        self,
        client: Client,
        paths: QueuePaths,
        entry: Entry,
        sweeper: Sweeper,
        acl: Sequence[ACL],
        attempts_max: int | None,
    ) -> None:
        # Our node in `taken`.
        super().__init__(client, paths.claim(entry))
        self.entry = entry
        self.data = b""
        # Whether the item is gone.
        self.is_gone = False
        # Whether leaving acknowledges it.
        self.is_done = False
        self.is_acknowledged = False
        # Why the service refused the acknowledgement.
        self.refusal: ServiceError | None = None
        self._paths = paths
        self._sweeper = sweeper
        self._acl = acl
        self._attempts_max = attempts_max
        self._entry_path = paths.entry(entry)
        self._counter_path = paths.attempts(entry)
        self._mark = client.new_mark().encode()
        # The version of the counter before us; most items have none yet.
        self._before: int | None = None
        # The version that our own transaction gave it, once it has succeeded.
        self._version: int | None = None

    @property
    def _own_version(self) -> int:
        assert self._version is not None, "it is ours"
        return self._version

    @property
    def attempts(self) -> int:
        """How often it was taken, this time included."""
        return self._own_version + 1

    def check(self, transaction: Transaction) -> None:
        """Make a transaction fail unless it is ours, by this very attempt."""
        transaction.check(self.path).check(self._counter_path, version=self._own_version)

    async def claim(self) -> bool:
        """Try to take it; return whether it is ours. Whatever is raised, `leave` has to follow."""
        while True:
            taking = self._take()
            # In the same batch: this reads the item after the transaction.
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
                if await retry(self.client, self._find):
                    return True
            except NoNodeError:
                # It was ours, but was deleted; no other client can have a node like ours.
                self.is_gone = True
                self._sweeper.add(self.path)
                return False
            else:
                # Either way the zxid of the transaction, and so of our node.
                if self._before is None:
                    self._version, self.token = 0, stat.pzxid
                else:
                    self._version, self.token = counted.version, counted.mzxid
                return True
            finally:
                discard(reading)

    async def leave(self) -> None:
        """Acknowledge it if the consumer is done, or give it back; for a task of the client."""
        # Our node goes with an expired session.
        with suppress(SessionExpiredError):
            if self.is_done:
                await self._acknowledge()
            else:
                await retry(self.client, self._give_back)

    # Taking it.

    def _take(self) -> asyncio.Future[list[Any]]:
        """Create our node, and the next version of its counter."""
        transaction = self.client.transaction().create(
            self.path, self._mark, acl=self._acl, ephemeral=True
        )
        if self._before is None:
            transaction.create(self._counter_path, self._mark, acl=self._acl)
        else:
            transaction.set(self._counter_path, self._mark, version=self._before)
        return transaction.commit()

    async def _find(self) -> bool:
        """Return whether our transaction has succeeded; read the item if it has."""
        # This server may be behind the one that took our request.
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
        """Return whether it may be free, though the transaction was refused."""
        at_claim, at_counter = refusal.results
        match at_claim, at_counter:
            case (NoNodeError(), _):
                await self._paths.make()
                return True
            case (None, NodeExistsError()):
                return await retry(self.client, self._look_at_counter)
            case (None, NoNodeError()):
                self.is_gone = True
                return False
            case (NodeExistsError(), _) | (None, BadVersionError()):
                # It is, or was, taken by another consumer.
                return False
        raise refusal

    async def _look_at_counter(self) -> bool:
        """Read how often it was taken; return whether it may be taken again."""
        try:
            _, stat = await self.client.get(self._counter_path)
            self._before = stat.version
            if self._attempts_max is None or stat.version + 1 < self._attempts_max:
                return True
            data, _ = await self.client.get(self._entry_path)
            await self._move_to_dead_letters(data, stat.version)
        except NoNodeError:
            self.is_gone = True
        return False

    async def _move_to_dead_letters(self, data: bytes, version: int) -> None:
        """Move it to the dead letters, unless it was taken meanwhile."""
        try:
            await (
                self.client.transaction()
                # This fails if it is taken.
                .create(self.path, ephemeral=True)
                .delete(self.path)
                .delete(self._counter_path, version=version)
                .create(child_path(self._paths.dead, self.entry.name), data, acl=self._acl)
                .delete(self._entry_path)
                .commit()
            )
        except TransactionFailedError as refusal:
            at_claim, _, _, at_dead, _ = refusal.results
            if isinstance(at_claim, NoNodeError) or isinstance(at_dead, NoNodeError):
                await self._paths.make()
                await self._move_to_dead_letters(data, version)
        else:
            self.is_gone = True

    # Leaving it.

    async def _acknowledge(self) -> None:
        is_in_doubt = False
        while True:
            transaction = self.client.transaction()
            transaction.delete(self._counter_path, version=self._own_version)
            try:
                await transaction.delete(self._entry_path).commit()
                break
            except NotReadOnlyError:
                await wait_writable(self.client)
            except ConnectionLostError:
                is_in_doubt = True
                await self.client.wait_connected()
            except TransactionFailedError as refusal:
                if is_in_doubt and await retry(self.client, self._is_ours_and_gone):
                    break
                self.refusal = refusal
                await retry(self.client, self._give_back)
                return
        self.is_acknowledged = True
        # Only now: it proves that the item was ours until it was gone.
        self._sweeper.add(self.path)

    async def _is_ours_and_gone(self) -> bool:
        """Return whether the item is gone while our node still exists."""
        if await newest_stat(self.client, self._entry_path) is not None:
            return False
        found = await read_node(self.client, self.path)
        return found is not None and found.data == self._mark

    async def _give_back(self) -> None:
        if self._version is None and not await self._find():
            # It was never ours.
            return
        transaction = self.client.transaction()
        transaction.check(self._counter_path, version=self._own_version)
        try:
            await transaction.delete(self.path).commit()
        except TransactionFailedError as refusal:
            if isinstance(refusal.results[0], NoNodeError):
                # The item is gone; no other client can have a node like ours.
                self._sweeper.add(self.path)
