"""The blocking twin of `paddock.recipes.values.value`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.values.value import SharedValue as AsyncSharedValue
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class SharedValue(Twin[AsyncSharedValue]):
    """The data of one node, or None while there is no such node."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        bridge = bridge_of("client", client)
        super().__init__(bridge, bridge.run(AsyncSharedValue, client._inner, path, acl=acl), client)

    @property
    def path(self) -> str:
        """The node that holds the value."""
        return self._inner.path

    def get(self) -> bytes | None:
        """Give the value, as the server that we are attached to has it.

        `client.sync` before it makes sure that it is the newest.
        """
        return self._bridge.call(self._inner.get)

    def set(self, data: bytes) -> None:
        """Replace the value, whatever it is; the node is made if it is not there."""
        self._bridge.call(self._inner.set, data)

    def update(self, function: Callable[[bytes | None], bytes]) -> bytes:
        """Replace the value by what the function makes of it; give that.

            SharedValue(client, "/motto").update(lambda data: (data or b"more") + b"!")

        It is called again, with the newer value, if somebody else was faster: nobody's update is
        lost. It must be quick and make no calls. What it raises leaves everything as it was.
        """
        return self._bridge.call(self._inner.update, function)

    def compare_and_set(self, expected: bytes | None, data: bytes) -> bool:
        """Replace the value if it is the expected one; tell whether it was."""
        return self._bridge.call(self._inner.compare_and_set, expected, data)

    def changes(self) -> Stream[bytes | None]:
        """Give the present value, then every newer one.

        Values in quick succession may come as one; the last one always comes. It goes on over lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.changes))
