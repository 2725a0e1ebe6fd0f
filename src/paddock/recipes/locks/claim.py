"""A claim: one ephemeral node at a path that all who want it know; whoever creates it has it.

Beside it, in the same transaction, a second one is created whose name has a mark that nobody else
has. By it a claim is known again after a lost reply, and told from all others: from that of another
contender on our own session, from that of an older session of ours, which the service has not ended
yet, and from the next holder's, which stands at the same path as ours. So it is what a guarded
write checks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_acl, checked_path
from paddock.errors import (
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
    Leaver,
    Losses,
    discard,
    make_container,
    parent,
    until_answered,
    wait_gone,
    wait_writable,
)


class Claim(Leaver):
    """An ephemeral node that is ours, or that we want."""

    def __init__(
        self, client: Client, path: str, acl: Sequence[ACL], data: bytes | None = None
    ) -> None:
        checked_path(path)
        checked_acl(acl)
        self.client = client
        self.path = path
        self.token = 0
        mark = client.new_mark()
        self._fence = f"{path}-{mark}"
        # What others read of us; the mark, if there is nothing to say.
        self._data = mark.encode() if data is None else data
        self._acl = acl

    @property
    def guarded(self) -> Sequence[str]:
        """What a guarded write checks."""
        return (self.path, self._fence)

    async def enter(self) -> None:
        """Try to create it. Whatever is raised, `leave` has to follow."""
        is_in_doubt = False
        losses = Losses()
        while True:
            try:
                self.token = await self._create()
            except TransactionFailedError as failed:
                if isinstance(failed.cause, NodeExistsError):
                    if is_in_doubt:
                        self.token, _ = await until_answered(self.client, self._look)
                    return
                if not isinstance(failed.cause, NoNodeError):
                    raise
                await make_container(self.client, parent(self.path))
            except NotReadOnlyError:
                await wait_writable(self.client)
            except ConnectionLostError as error:
                losses.add(error)
                is_in_doubt = True
                await self.client.wait_connected()
            else:
                return

    async def reach(self) -> None:
        """Wait until it is ours, racing with all others each time it is free."""
        while not self.token:
            await wait_gone(self.client, self.path)
            await self.enter()

    async def is_reached(self) -> bool:
        """Tell whether it is ours."""
        return self.token != 0

    async def leave(self) -> None:
        """Delete it if it is ours, wherever our create has got to; ends when it is gone."""
        try:
            await until_answered(self.client, self._delete)
        except SessionExpiredError:
            # And with it the nodes.
            pass

    async def _create(self) -> int:
        transaction = self.client.transaction()
        transaction.create(self.path, self._data, acl=self._acl, ephemeral=True)
        transaction.create(self._fence, acl=self._acl, ephemeral=True)
        created = transaction.commit()
        # In the same write: the token costs no round trip of its own.
        seen = self.client.exists(self._fence)
        try:
            await created
            return _token(await seen)
        finally:
            discard(seen)

    async def _look(self) -> tuple[int, int]:
        """Give our token, and that of whoever stands at the path; 0 if there is none."""
        # First of all: the server we are attached to now may be behind the one that took our
        # request.
        _, ours, theirs = await asyncio.gather(
            self.client.sync(self.path),
            self.client.exists(self._fence),
            self.client.exists(self.path),
        )
        return _token(ours), _token(theirs)

    async def _delete(self) -> None:
        while True:
            token, theirs = await self._look()
            if not token:
                return
            transaction = self.client.transaction().delete(self._fence)
            if theirs == token:
                transaction.delete(self.path)
            try:
                await transaction.commit()
            except TransactionFailedError as failed:
                # Somebody was faster with one of them.
                if not isinstance(failed.cause, NoNodeError):
                    raise
            else:
                return


def _token(stat: Stat | None) -> int:
    return 0 if stat is None else stat.czxid
