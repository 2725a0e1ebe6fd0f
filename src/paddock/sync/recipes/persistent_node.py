"""The blocking twin of `paddock.recipes.values.persistent_node`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.values.persistent_node import PersistentNode as AsyncPersistentNode
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client


class PersistentNode(Twin[AsyncPersistentNode]):
    """A node that is made again whenever it has gone, until it is closed.

        node = PersistentNode(client, "/workers/7", b"ready")
        with node:
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
        bridge = bridge_of("client", client)
        super().__init__(
            bridge,
            bridge.run(
                AsyncPersistentNode,
                client._inner,
                path,
                data,
                ephemeral=ephemeral,
                recreate=recreate,
                acl=acl,
            ),
            client,
        )

    @property
    def path(self) -> str:
        return self._inner.path

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self

    @property
    def is_there(self) -> bool:
        """Whether our node was there when we last heard of it, in a session that lives."""
        return self._inner.is_there

    def start(self) -> None:
        """Begin to keep it, as entering the scope does; whoever calls this calls `close`, too."""
        self._bridge.run(self._inner.start)

    def wait_there(self) -> None:
        """Wait until our node is there.

        Raises RecipeError if somebody has deleted it and it is not to be made again, and
        SessionExpiredError if the client was closed.
        """
        self._bridge.call(self._inner.wait_there)

    def wait_over(self) -> None:
        """Wait until it is kept no more: somebody has deleted it for good, or it was closed."""
        self._bridge.call(self._inner.wait_over)

    def set_data(self, data: bytes) -> None:
        """Change what the node says; wait until it does.

        It says so from now on, also when it is made again. What somebody else writes to it stays
        until then.
        """
        self._bridge.call(self._inner.set_data, data)

    def close(self) -> None:
        """Delete the node, and keep it no more; nothing is made from now on.

        An ephemeral one is not waited for longer than its session surely lives. One that has
        children stays. Closing twice is fine.
        """
        self._bridge.call(self._inner.close)

    @property
    def is_over(self) -> bool:
        """Whether it is kept no more."""
        return self._inner.is_over
