"""The blocking twin of `paddock.recipes.values.persistent_node`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.values.persistent_node import PersistentNode as AsyncPersistentNode
from paddock.sync.client import Client
from paddock.sync.recipes.background import Background


class PersistentNode(Background):
    """A node that is re-created whenever it is gone, until it is closed.

        node = PersistentNode(client, "/workers/7", b"ready")
        with node:
            print(node.is_there)  # True

    It is ephemeral by default. A node that is not may have been created by others as well. Without
    `recreate` it is re-created only after session expiry: a node that is deleted while the session
    lives stays deleted. One client keeps a path only once. Parents are created as needed.
    """

    _inner: AsyncPersistentNode

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
        self._make(
            "client",
            client,
            lambda bridge: AsyncPersistentNode(
                client._inner, path, data, ephemeral=ephemeral, recreate=recreate, acl=acl
            ),
        )

    @property
    def path(self) -> str:
        return self._inner.path

    @property
    def is_there(self) -> bool:
        """Whether our node existed when we last heard of it, in a session that lives."""
        return self._inner.is_there

    def start(self) -> None:
        """Begin to keep the node, as entering the scope does; `close` has to follow."""
        self._bridge.run(self._inner.start)

    def wait_there(self) -> None:
        """Wait until our node exists.

        Raises RecipeError if it was deleted and is not re-created, and SessionExpiredError if the
        client was closed.
        """
        self._bridge.call(self._inner.wait_there)

    def wait_over(self) -> None:
        """Wait until it is not re-created any more: it was deleted for good, or closed."""
        self._bridge.call(self._inner.wait_over)

    def set_data(self, data: bytes) -> None:
        """Change the data of the node, also for when it is re-created; wait until it has them.

        Data that others write stay until then.
        """
        self._bridge.call(self._inner.set_data, data)

    def close(self) -> None:
        """Delete the node, and do not re-create it.

        For an ephemeral node it waits no longer than the session surely lives. A node with children
        stays. Closing twice is fine.
        """
        self._bridge.call(self._inner.close)

    @property
    def is_over(self) -> bool:
        """Whether it is not re-created any more."""
        return self._inner.is_over
