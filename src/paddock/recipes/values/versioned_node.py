"""A node whose writes happen exactly once, also if replies are lost.

A write is a transaction: the data, if the node has the version that was read, and a *marker*, an
ephemeral node below it with a unique name. It is the receipt (`paddock.recipes.common.receipt`) by
which the write is recognised if the reply is lost; else the transaction is sent again. At most one
succeeds, since the version has changed then. A marker is deleted after the reply. In an exact
session there are no markers.

A lost write whose node is deleted, or whose session ends, has an unknown outcome, and raises
ConnectionLostError. Versions begin anew in a node that is deleted and re-created.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from paddock.client.client import Client
from paddock.client.transaction import Transaction
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    NotReadOnlyError,
    TransactionFailedError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.paths import child_path, parent_path
from paddock.protocol.records import Stat
from paddock.recipes.common.background import Recipe
from paddock.recipes.common.receipt import Receipt
from paddock.recipes.common.retry import (
    make_node,
    random_fraction,
    read_node,
    retry,
    wait_writable,
)

# The prefix of a marker's name.
MARKER_PREFIX: Final = "_mark_"

# How often a write is sent: one that is too large for the servers is lost each time.
_ATTEMPTS_MAX: Final = 10
# A writer that was too slow waits for a random part of this, doubled each time.
_PAUSE_S: Final = 0.004
_PAUSE_S_MAX: Final = 1.0


class Content(NamedTuple):
    """The node as it was read; without data and stat there is none."""

    data: bytes | None
    stat: Stat | None


class VersionedNode(Recipe):
    """A node that is written over the version that was read."""

    def __init__(self, client: Client, path: str, acl: Sequence[ACL]) -> None:
        super().__init__(client, path, acl)
        self.path = path

    async def read(self) -> Content:
        """Return the node that the connected server has."""
        return await retry(self._client, self._read)

    async def update(self, function: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Replace the data by the result of a function, and return it; None changes nothing."""
        found, pause_s = await self.read(), _PAUSE_S
        while (new := function(found.data)) is not None and not await self._write(new, found.stat):
            # One of all concurrent writers succeeds; a random pause spreads the others.
            await asyncio.sleep(random_fraction(self._client) * pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)
            found = await retry(self._client, self._read_newest)
        return new

    async def create(self, data: bytes) -> bool:
        """Create the node and its parents; return whether it did not exist."""
        while not await self._write(data, None):
            if (await retry(self._client, self._read_newest)).stat is not None:
                return False
        return True

    async def changes(self) -> AsyncGenerator[bytes | None, None]:
        """Yield the present data, then all newer ones, as `Client.watch` does."""
        async with aclosing(self._client.watch(self.path)) as stream:
            async for change in stream:
                yield change.data

    async def _read(self) -> Content:
        found = await read_node(self._client, self.path)
        return Content(None, None) if found is None else Content(*found)

    async def _read_newest(self) -> Content:
        await self._client.sync(self.path)
        return await self._read()

    async def _write(self, data: bytes, seen: Stat | None) -> bool:
        """Write over the version that was seen; return False if there is a newer one."""
        if seen is None and self.path != "/":
            await make_node(self._client, parent_path(self.path))
        marker = f"{MARKER_PREFIX}{self._client.new_mark()}"
        receipt = Receipt(self._client, child_path(self.path, marker), self._acl)
        may_exist = True
        try:
            may_exist = await self._complete(data, seen, receipt)
            return may_exist
        finally:
            if may_exist:
                # In the background: it does no harm.
                receipt.delete()

    async def _complete(self, data: bytes, seen: Stat | None, receipt: Receipt) -> bool:
        lost: ConnectionLostError | None = None
        for _ in range(_ATTEMPTS_MAX):
            try:
                await receipt.commit(self._new_transaction(data, seen))
                return True
            except ConnectionLostError as error:
                lost = error
                if await receipt.exists(lost):
                    return True
            except NotReadOnlyError:
                await wait_writable(self._client)
            except TransactionFailedError as error:
                why = error.cause or error
                if lost is not None:
                    # The reason may be an earlier one that has succeeded.
                    if await receipt.exists(lost):
                        return True
                    if isinstance(why, NoNodeError):
                        break
                if isinstance(why, BadVersionError | NodeExistsError | NoNodeError):
                    return False
                raise why from error
        raise ConnectionLostError("update", self.path) from lost

    def _new_transaction(self, data: bytes, seen: Stat | None) -> Transaction:
        transaction = self._client.transaction()
        if seen is None:
            return transaction.create(self.path, data, acl=self._acl)
        return transaction.set(self.path, data, version=seen.version)
