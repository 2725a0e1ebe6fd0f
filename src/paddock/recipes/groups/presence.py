"""A presence: an ephemeral node at the path of a name, with what its member says about itself.

If the name is taken, by another process or an older session of our own, it waits. After a lost
reply, a node of our session is ours: a lock allows each client one presence of a name at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from paddock.client.client import Client
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    NotReadOnlyError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.paths import parent_path
from paddock.protocol.records import Stat
from paddock.recipes.common.departure import OwnedNode
from paddock.recipes.common.retry import (
    RetryLimit,
    delete_if_exists,
    make_container,
    newest_stat,
    read_node,
    retry,
    wait_gone,
    wait_writable,
)

# By client and path: the lock of the presences of one client, while there are any.
_turns: Final[WeakKeyDictionary[Client, WeakValueDictionary[str, asyncio.Lock]]] = (
    WeakKeyDictionary()
)


class Presence(OwnedNode):
    """The node of a member, from before its create until it is surely gone."""

    def __init__(self, client: Client, path: str, payload: bytes, acl: Sequence[ACL]) -> None:
        super().__init__(client, path)
        self._payload = payload
        self._acl = acl
        self._version = 0
        self._turn = _turns.setdefault(client, WeakValueDictionary()).setdefault(
            path, asyncio.Lock()
        )
        self._has_turn = False
        # Whether a create of ours may have succeeded.
        self._is_asked = False

    async def enter(self) -> None:
        """Wait until the name is free, and take it. Whatever is raised, `leave` has to follow."""
        await self._turn.acquire()
        self._has_turn = True
        limit = RetryLimit()
        while True:
            try:
                is_in_doubt, self._is_asked = self._is_asked, True
                created = await self.client.create_with_stat(
                    self.path, self._payload, acl=self._acl, ephemeral=True
                )
            except NodeExistsError:
                stat = await retry(self.client, lambda: newest_stat(self.client, self.path))
                if is_in_doubt and stat is not None and self._is_ours(stat):
                    self.token = stat.czxid
                    return
                self._is_asked = False
                await wait_gone(self.client, self.path)
            except NoNodeError:
                self._is_asked = is_in_doubt
                await make_container(self.client, parent_path(self.path))
            except NotReadOnlyError:
                self._is_asked = is_in_doubt
                await wait_writable(self.client)
            except ConnectionLostError as error:
                limit.count(error)
                await self.client.wait_connected()
            else:
                self.token = created.stat.czxid
                return

    async def update(self, payload: bytes) -> bool:
        """Write another payload; return whether the node is still ours."""
        return await retry(self.client, lambda: self._write(payload), RetryLimit())

    async def _write(self, payload: bytes) -> bool:
        while True:
            try:
                stat = await self.client.set(self.path, payload, version=self._version)
                self._version = stat.version
                return True
            except NoNodeError:
                return False
            except BadVersionError:
                # Written by us, and the reply was lost; or by another client.
                found = await read_node(self.client, self.path)
            if found is None or found.stat.czxid != self.token:
                return False
            self._version = found.stat.version
            if found.data == payload:
                return True

    async def leave(self) -> None:
        """Delete our node, even if the reply to its create was lost."""
        try:
            if self._is_asked:
                await super().leave()
        finally:
            if self._has_turn:
                self._has_turn = False
                self._turn.release()

    def _is_ours(self, stat: Stat) -> bool:
        is_of_our_session = stat.ephemeral_owner == self.client.session_id
        return is_of_our_session and self.token in (0, stat.czxid)

    async def _delete(self) -> None:
        stat = await newest_stat(self.client, self.path)
        if stat is not None and self._is_ours(stat):
            await delete_if_exists(self.client, self.path)
