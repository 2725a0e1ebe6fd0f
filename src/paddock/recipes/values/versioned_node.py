"""One node whose writes are exact: each happens once, and its writer knows that it has.

A write is a transaction of two parts: the data, if the node has the version that was read, and a
*marker*, an ephemeral node below it with a name that nobody else has. If the reply is lost, the
same transaction is sent again. At most one of them succeeds, since the version has moved on then;
and if one is refused, the marker tells whether an earlier one has come through. So the data are
plain, as everybody writes and reads them. A marker lives for a moment: as soon as the reply is
there, it is deleted.

What can never be known: whether a write has happened before its node was deleted, or before its
session ended. Then the writer is told so. And a node that is deleted and made anew counts from the
beginning, so for the service it is the old one once it has the same version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from itertools import count
from typing import Final, NamedTuple

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_acl, checked_path
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    NotReadOnlyError,
    SessionExpiredError,
    TransactionFailedError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.records import Stat
from paddock.recipes.common.retry import (
    child,
    fraction,
    make_node,
    parent,
    until_answered,
    wait_writable,
)

# What the name of a marker begins with.
MARKER_PREFIX: Final = "_mark_"

# How often a write is sent in all: one that is too large for the server is lost each time.
_ATTEMPTS_MAX: Final = 10
# Who was not the first waits for a part of this, of twice as much the next time, and so on.
_PAUSE_S: Final = 0.004
_PAUSE_S_MAX: Final = 1.0


class Content(NamedTuple):
    """What was read; without data and stat there was no node."""

    data: bytes | None
    stat: Stat | None


class Cell:
    """A node that is read, and written by whoever has read it before."""

    def __init__(self, client: Client, path: str, acl: Sequence[ACL]) -> None:
        checked_path(path)
        checked_acl(acl)
        self.path = path
        self._client = client
        self._acl = acl

    async def read(self) -> Content:
        """Give what the server that we are attached to has."""
        return await until_answered(self._client, self._read)

    async def update(self, function: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Replace the data by what is made of them, and give that; None leaves them as they are."""
        found = await self.read()
        for attempt in count():
            new = function(found.data)
            if new is None or await self._write(new, found.stat):
                return new
            # Of all who try at once one succeeds; that the others are spread makes it likely that
            # the next time several do, one after the other.
            await asyncio.sleep(
                fraction(self._client) * min(_PAUSE_S * 2 ** min(attempt, 16), _PAUSE_S_MAX)
            )
            found = await until_answered(self._client, self._read_newest)
        raise AssertionError("it is tried for ever")

    async def create(self, data: bytes) -> bool:
        """Make the node, with what is missing above it; tell whether it was us."""
        while not await self._write(data, None):
            if (await until_answered(self._client, self._read_newest)).stat is not None:
                return False
        return True

    async def changes(self) -> AsyncGenerator[bytes | None, None]:
        """Give the present data, then all newer ones, as `Client.watch` does."""
        async with aclosing(self._client.watch(self.path)) as stream:
            async for change in stream:
                yield change.data

    async def _read(self) -> Content:
        try:
            return Content(*await self._client.get(self.path))
        except NoNodeError:
            return Content(None, None)

    async def _read_newest(self) -> Content:
        await self._client.sync(self.path)
        return await self._read()

    async def _write(self, data: bytes, seen: Stat | None) -> bool:
        """Write over what was seen; tell whether it was still so."""
        if seen is None and self.path != "/":
            await make_node(self._client, parent(self.path))
        marker = child(self.path, f"{MARKER_PREFIX}{self._client.new_mark()}")
        may_stand = True
        try:
            may_stand = await self._see_through(data, seen, marker)
            return may_stand
        finally:
            if may_stand:
                # Not awaited: nobody needs it to be gone.
                self._client.start_task(self._remove(marker))

    async def _see_through(self, data: bytes, seen: Stat | None, marker: str) -> bool:
        lost: ConnectionLostError | None = None
        for _ in range(_ATTEMPTS_MAX):
            try:
                await self._submit(data, seen, marker)
                return True
            except ConnectionLostError as error:
                lost = error
                await self._client.wait_connected()
            except NotReadOnlyError:
                await wait_writable(self._client)
            except TransactionFailedError as error:
                why = error.cause or error
                if lost is not None:
                    # An earlier one may have come through, and be the very reason.
                    if await until_answered(self._client, lambda: self._stands(marker)):
                        return True
                    if isinstance(why, NoNodeError):
                        break
                if isinstance(why, BadVersionError | NodeExistsError | NoNodeError):
                    return False
                raise why from error
        raise ConnectionLostError("update", self.path) from lost

    async def _submit(self, data: bytes, seen: Stat | None, marker: str) -> None:
        transaction = self._client.transaction()
        if seen is None:
            transaction.create(self.path, data, acl=self._acl)
        else:
            transaction.set(self.path, data, version=seen.version)
        transaction.create(marker, acl=self._acl, ephemeral=True)
        await transaction.commit()

    async def _stands(self, marker: str) -> bool:
        # The server we are attached to now may be behind the one that took our request.
        await self._client.sync(marker)
        return await self._client.exists(marker) is not None

    async def _remove(self, marker: str) -> None:
        async def delete() -> None:
            try:
                await self._client.delete(marker)
            except NoNodeError:
                pass

        try:
            await until_answered(self._client, delete)
        except SessionExpiredError:
            # And with it the marker.
            pass
