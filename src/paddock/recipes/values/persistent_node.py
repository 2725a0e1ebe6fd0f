"""Persistent node: re-created after deletion and after session expiry.

    async with PersistentNode(client, "/workers/7", b"ready") as node:
        await node.set_data(b"busy")

Guaranteed is that the node is re-created as soon as a server can be reached; and that closing it
deletes the node for good.

* Suspension (the connection is lost): the node exists as long as the session lives, and is checked
  when the connection is back.
* Expiry: another session is opened, by a client with the same settings, and the node is re-created.
  That goes on until the client that was given is closed.
* Cancellation: a cancelled wait changes nothing. Leaving the scope deletes the node, in the
  background if need be.
* Never promised: that the node exists at every moment. Between two sessions it does not.

An ephemeral node at this path that is not ours, such as that of an older session of our own, is
waited for until it goes. It is never taken for ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.client.client import Client
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.common.recreated_node import RecreatedNode, SessionRenewer


class PersistentNode(RecreatedNode):
    """A node that is re-created whenever it is gone, until it is closed.

        node = PersistentNode(client, "/workers/7", b"ready")
        async with node:
            print(node.is_there)  # True

    It is ephemeral by default. A node that is not may have been created by others as well. Without
    `recreate` it is re-created only after session expiry: a node that is deleted while the session
    lives stays deleted. One client keeps a path only once. Parents are created as needed.
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
            SessionRenewer(client), path, data, ephemeral=ephemeral, recreate=recreate, acl=acl
        )

    async def _leave_renewer(self) -> None:
        await self._renewer.close()
