"""A presence: one ephemeral node at the path of a name, with what its member says about itself.

Whoever finds the name taken waits, be it by another process or by an older session of our own. A
node that has our session is ours once a create of ours was in doubt: within one client a name is
taken by one at a time, which is seen to here, since the service cannot tell two of them apart.
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
    SessionExpiredError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.records import Stat
from paddock.recipes.common.retry import (
    Leaver,
    Losses,
    make_container,
    parent,
    until_answered,
    wait_gone,
    wait_writable,
)

# By client and path: whose turn it is among those of the same client, while there are any.
_turns: Final[WeakKeyDictionary[Client, WeakValueDictionary[str, asyncio.Lock]]] = (
    WeakKeyDictionary()
)


class Presence(Leaver):
    """The node of a member, from before its create until it is surely gone."""

    def __init__(self, client: Client, path: str, payload: bytes, acl: Sequence[ACL]) -> None:
        self.client = client
        self.path = path
        # The zxid of the node's creation, once we have it.
        self.token = 0
        self._payload = payload
        self._acl = acl
        self._version = 0
        self._turn = _turns.setdefault(client, WeakValueDictionary()).setdefault(
            path, asyncio.Lock()
        )
        self._has_turn = False
        # Whether a create of ours may have been carried out.
        self._is_asked = False

    @property
    def guarded(self) -> Sequence[str]:
        """What a guarded write checks."""
        return (self.path,)

    async def enter(self) -> None:
        """Wait until the name is free, and take it. Whatever is raised, `leave` has to follow."""
        await self._turn.acquire()
        self._has_turn = True
        losses = Losses()
        while True:
            try:
                is_in_doubt, self._is_asked = self._is_asked, True
                created = await self.client.create_with_stat(
                    self.path, self._payload, acl=self._acl, ephemeral=True
                )
            except NodeExistsError:
                stat = await until_answered(self.client, self._look)
                if is_in_doubt and stat is not None and self._is_ours(stat):
                    self.token = stat.czxid
                    return
                self._is_asked = False
                await wait_gone(self.client, self.path)
            except NoNodeError:
                self._is_asked = is_in_doubt
                await make_container(self.client, parent(self.path))
            except NotReadOnlyError:
                self._is_asked = is_in_doubt
                await wait_writable(self.client)
            except ConnectionLostError as error:
                losses.add(error)
                await self.client.wait_connected()
            else:
                self.token = created.stat.czxid
                return

    async def update(self, payload: bytes) -> bool:
        """Say something else about us; tell whether the node is still ours."""
        losses = Losses()
        while True:
            try:
                stat = await self.client.set(self.path, payload, version=self._version)
            except NoNodeError:
                return False
            except ConnectionLostError as error:
                losses.add(error)
                await self.client.wait_connected()
            except NotReadOnlyError:
                await wait_writable(self.client)
            except BadVersionError:
                # Written by us, and the reply was lost; or by somebody else, which is no matter.
                try:
                    data, stat = await until_answered(
                        self.client, lambda: self.client.get(self.path)
                    )
                except NoNodeError:
                    return False
                self._version = stat.version
                if stat.czxid != self.token or data == payload:
                    return stat.czxid == self.token
            else:
                self._version = stat.version
                return True

    async def leave(self) -> None:
        """Delete our node, wherever our create has got to; ends when it is gone, or the session is.

        It is to be run by a task of the client's, since it has to go on if its caller is cancelled.
        """
        try:
            if self._is_asked:
                await until_answered(self.client, self._delete)
        except SessionExpiredError:
            # And with it the node.
            pass
        finally:
            if self._has_turn:
                self._has_turn = False
                self._turn.release()

    async def _look(self) -> Stat | None:
        # The server we are attached to now may be behind the one that took our request.
        await self.client.sync(self.path)
        return await self.client.exists(self.path)

    def _is_ours(self, stat: Stat) -> bool:
        is_of_our_session = stat.ephemeral_owner == self.client.session_id
        return is_of_our_session and self.token in (0, stat.czxid)

    async def _delete(self) -> None:
        stat = await self._look()
        if stat is not None and self._is_ours(stat):
            try:
                await self.client.delete(self.path)
            except NoNodeError:
                pass
