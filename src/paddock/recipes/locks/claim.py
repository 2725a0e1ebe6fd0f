"""A claim: one ephemeral node at a path that all contenders know; its creator holds it.

A second node, whose name has a mark, is created beside it in the same transaction. It identifies
our claim after a lost reply, among those of other contenders on our session, of older sessions of
ours, and of later holders. So a guarded write checks both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from paddock.client.client import Client
from paddock.errors import (
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    NotReadOnlyError,
    TransactionFailedError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.paths import parent_path
from paddock.protocol.records import Stat
from paddock.recipes.common.retry import (
    RetryLimit,
    check_recipe,
    discard,
    make_container,
    retry,
    wait_writable,
    watch_signal,
)
from paddock.recipes.locks.holder import Contending


class Claim(Contending):
    """An ephemeral node that is ours, or that we want."""

    def __init__(
        self, client: Client, path: str, acl: Sequence[ACL], data: bytes | None = None
    ) -> None:
        check_recipe(client, path, acl)
        super().__init__(client, path)
        mark = client.new_mark()
        self._fence = f"{path}-{mark}"
        # Others read the mark, if there is nothing to say.
        self._data = mark.encode() if data is None else data
        self._acl = acl

    @property
    def guarded(self) -> Sequence[str]:
        """The nodes that a guarded write checks."""
        return (self.path, self._fence)

    async def enter(self) -> None:
        """Try to create it. Whatever is raised, `leave` has to follow."""
        is_in_doubt = False
        limit = RetryLimit()
        while True:
            try:
                self.token = await self._create()
            except TransactionFailedError as failed:
                if isinstance(failed.cause, NodeExistsError):
                    if is_in_doubt:
                        self.token, _ = await retry(self.client, self._look)
                    return
                if not isinstance(failed.cause, NoNodeError):
                    raise
                await make_container(self.client, parent_path(self.path))
            except NotReadOnlyError:
                await wait_writable(self.client)
            except ConnectionLostError as error:
                limit.count(error)
                is_in_doubt = True
                await self.client.wait_connected()
            else:
                return

    async def reach(self) -> None:
        """Wait until it is ours, racing with all others each time it is free."""
        while not self.token:
            with watch_signal(self.client) as signal:
                while stat := await retry(
                    self.client, lambda: self.client.exists(self.path, watch=signal)
                ):
                    self.blocked_by = f"{self.path} of session 0x{stat.ephemeral_owner:x}"
                    self.tell_blocked(self.path, stat.ephemeral_owner)
                    await signal.wait()
                    self.tell_woken(signal.zxid)
            await self.enter()

    async def is_reached(self) -> bool:
        """Return whether it is ours."""
        return self.token != 0

    async def _create(self) -> int:
        created = (
            self.client.transaction()
            .create(self.path, self._data, acl=self._acl, ephemeral=True)
            .create(self._fence, acl=self._acl, ephemeral=True)
            .commit()
        )
        # In the same batch: the token costs no round trip of its own.
        seen = self.client.exists(self._fence)
        try:
            await created
            return _token(await seen)
        finally:
            discard(seen)

    async def _look(self) -> tuple[int, int]:
        """Return our token, and that of the node at the path; 0 if there is none."""
        # Sync first: this server may be behind the one that took our request.
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
            try:
                async with self.client.transaction().delete(self._fence) as transaction:
                    if theirs == token:
                        transaction.delete(self.path)
                return
            except TransactionFailedError as failed:
                # One of them is gone already.
                if not isinstance(failed.cause, NoNodeError):
                    raise


def _token(stat: Stat | None) -> int:
    return 0 if stat is None else stat.czxid
