"""The blocking twin of `paddock.recipes.values.counter`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.values.counter import Counter as AsyncCounter
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class Counter(Twin[AsyncCounter]):
    """A whole number, of any size, in one node.

    Data that are no number raise InvalidValueError, and are not changed.
    """

    def __init__(
        self, client: Client, path: str, *, initial: int = 0, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: AsyncCounter(client._inner, path, initial=initial, acl=acl),
        )

    @property
    def path(self) -> str:
        """The node that holds the number."""
        return self._inner.path

    def get(self) -> int:
        """Return the number that the connected server has.

        Call `client.sync` first for the newest.
        """
        return self._bridge.call(self._inner.get)

    def add(self, amount: int = 1) -> int:
        """Add to it; return the sum."""
        return self._bridge.call(self._inner.add, amount)

    def subtract(self, amount: int = 1) -> int:
        """Subtract from it; return the difference, which may be negative."""
        return self._bridge.call(self._inner.subtract, amount)

    def set(self, number: int) -> None:
        """Set the number."""
        self._bridge.call(self._inner.set, number)

    def changes(self) -> Stream[int]:
        """Yield the present number, then every newer one.

        Intermediate numbers may be left out, the last one never. The stream survives lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.changes))
