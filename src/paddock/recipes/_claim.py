"""A claim: one ephemeral node at a path that all who want it know, whoever creates it has it.

The node holds a mark of ours, so that it is known again after a lost reply, and not taken for
another one: not for that of another contender on our own session, nor for that of an older session
of ours, which the service has not ended yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.client.arguments import checked_acl, checked_path
from paddock.client.client import Client
from paddock.errors import (
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    NotReadOnlyError,
    SessionExpiredError,
)
from paddock.protocol.acl import ACL
from paddock.recipes._nodes import Signal, make_container, parent, until_answered, wait_writable


class Claim:
    """An ephemeral node that is ours, or that we want."""

    def __init__(self, client: Client, path: str, acl: Sequence[ACL]) -> None:
        checked_path(path)
        checked_acl(acl)
        self.client = client
        self.path = path
        self.token = 0
        self._acl = acl
        self._mark = client.new_mark().encode()

    async def enter(self) -> None:
        """Try to create it. Whatever is raised, `leave` has to follow."""
        is_in_doubt = False
        while True:
            try:
                created = await self.client.create_with_stat(
                    self.path, self._mark, acl=self._acl, ephemeral=True
                )
            except NodeExistsError:
                if is_in_doubt:
                    self.token = await until_answered(self.client, self._find)
                return
            except NoNodeError:
                await make_container(self.client, parent(self.path))
            except NotReadOnlyError:
                await wait_writable(self.client)
            except ConnectionLostError:
                is_in_doubt = True
                await self.client.wait_connected()
            else:
                self.token = created.stat.czxid
                return

    async def reach(self) -> None:
        """Wait until it is ours, racing with all others each time it is free."""
        while not self.token:
            await self._wait_free()
            await self.enter()

    async def is_reached(self) -> bool:
        """Tell whether it is ours."""
        return self.token != 0

    async def leave(self) -> None:
        """Delete it if it is ours, wherever our create has got to; ends when it is gone."""
        try:
            await until_answered(self.client, self._delete)
        except SessionExpiredError:
            # And with it the node.
            pass

    async def _find(self) -> int:
        """Give the token of our node, or 0 if it is another's or there is none."""
        # The server we are attached to now may be behind the one that took our request.
        await self.client.sync(self.path)
        try:
            data, stat = await self.client.get(self.path)
        except NoNodeError:
            return 0
        is_ours = data == self._mark and stat.ephemeral_owner == self.client.session_id
        return stat.czxid if is_ours else 0

    async def _delete(self) -> None:
        if await self._find():
            try:
                await self.client.delete(self.path)
            except NoNodeError:
                pass

    async def _wait_free(self) -> None:
        signal = Signal()
        try:
            while await until_answered(
                self.client, lambda: self.client.exists(self.path, watch=signal)
            ):
                await signal.wait()
        finally:
            self.client.forget_watcher(signal)
