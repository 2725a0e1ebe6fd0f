"""The blocking twin of `paddock.recipes.values.counter`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.values.counter import Counter as AsyncCounter
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class Counter(Twin[AsyncCounter]):
    """A whole number, of any size, in one node.

    Data that are no number raise InvalidValueError, and stay as they are.
    """

    def __init__(
        self, client: Client, path: str, *, initial: int = 0, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        bridge = bridge_of("client", client)
        super().__init__(
            bridge, bridge.run(AsyncCounter, client._inner, path, initial=initial, acl=acl), client
        )

    @property
    def path(self) -> str:
        """The node that holds the number."""
        return self._inner.path

    def get(self) -> int:
        """Give the number, as the server that we are attached to has it.

        `client.sync` before it makes sure that it is the newest.
        """
        return self._bridge.call(self._inner.get)

    def add(self, amount: int = 1) -> int:
        """Add to it; give the sum."""
        return self._bridge.call(self._inner.add, amount)

    def subtract(self, amount: int = 1) -> int:
        """Subtract from it; give what is left, which may be less than nothing."""
        return self._bridge.call(self._inner.subtract, amount)

    def set(self, number: int) -> None:
        """Have it go on from this number."""
        self._bridge.call(self._inner.set, number)

    def changes(self) -> Stream[int]:
        """Give the present number, then every newer one.

        Changes in quick succession may come as one; the last one always comes. It goes on over lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.changes))
