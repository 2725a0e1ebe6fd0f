"""Persistent node: kept in existence over lost connections, over sessions, and if it is deleted.

    async with PersistentNode(client, "/workers/7", b"ready") as node:
        await node.set_data(b"busy")

Guaranteed is that the node is made again, whatever became of it, as soon as a server can be
reached; and that it goes, and does not come back, when it is closed.

* Suspension (the connection is lost): the node stays there as long as the session lives, and is
  looked after when the connection is back.
* Expiry: another session is opened, by a client like the one that was given, and the node is made
  anew. That goes on until the client that was given is closed.
* Cancellation: a wait that is cancelled changes nothing. Leaving the scope deletes the node, in the
  background if need be.
* Never promised: that the node is there at every moment. Between two sessions it is not.

An ephemeral node at this path that is not ours is waited for until it goes, such as that of an
older session of our own, from before the program was started again. It is never taken for ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.client.client import Client
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.common.recreated_node import Kept
from paddock.recipes.common.session_renewer import Keeper


class PersistentNode(Kept):
    """A node that is made again whenever it has gone, until it is closed.

        node = PersistentNode(client, "/workers/7", b"ready")
        async with node:
            print(node.is_there)  # True

    It is ephemeral, unless that is not wanted: then whoever makes it, it is the one that we keep.
    Without `recreate` it is made again only after an expired session: what somebody deletes while
    the session lives stays gone. One client keeps a path only once. Nodes above are made as needed.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = True,
        recreate: bool = True,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        super().__init__(
            Keeper(client), path, data, ephemeral=ephemeral, recreate=recreate, acl=acl
        )

    async def _leave_keeper(self) -> None:
        await self._keeper.close()
