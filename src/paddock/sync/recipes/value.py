"""The blocking twin of `paddock.recipes.values.value`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.values.value import SharedValue as AsyncSharedValue
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class SharedValue(Twin[AsyncSharedValue]):
    """The data of one node, or None while there is none."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make("client", client, lambda bridge: AsyncSharedValue(client._inner, path, acl=acl))

    @property
    def path(self) -> str:
        """The node that holds the value."""
        return self._inner.path

    def get(self) -> bytes | None:
        """Return the value that the connected server has.

        Call `client.sync` first for the newest.
        """
        return self._bridge.call(self._inner.get)

    def set(self, data: bytes) -> None:
        """Replace the value; the node is created if there is none."""
        self._bridge.call(self._inner.set, data)

    def update(self, function: Callable[[bytes | None], bytes]) -> bytes:
        """Replace the value by the result of a function of it; return that.

            SharedValue(client, "/motto").update(lambda data: (data or b"more") + b"!")

        The function is called again, with the newer value, if another client was faster: no update
        is lost. It must be quick and make no calls. If it raises, nothing changes.
        """
        return self._bridge.call(self._inner.update, function)

    def compare_and_set(self, expected: bytes | None, data: bytes) -> bool:
        """Replace the value if it is the expected one; return whether it was."""
        return self._bridge.call(self._inner.compare_and_set, expected, data)

    def changes(self) -> Stream[bytes | None]:
        """Return a stream of the present value, then every newer one.

        Intermediate values may be left out, the last one never. The stream survives lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.changes))
