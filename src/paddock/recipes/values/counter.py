"""Counter: a shared number.

    visits = Counter(client, "/app/visits")
    print(await visits.add(2))  # 2
    print(await visits.subtract())  # 1

The number is the text of one node, `42`, as in kazoo's counter; a missing or empty node counts as
the initial number. Guaranteed is that every addition happens exactly once, even if a reply is lost
(`paddock.recipes.values.value` says how, and which permissions that needs), and that it returns the
sum with this addition as the last one. Of concurrent additions one is first, and the others try
again after a random, growing pause.

* Suspension (the connection is lost): every call waits for the next connection and goes on.
* Expiry: SessionExpiredError. An addition in flight has happened once, or not at all.
* Cancellation: an addition in flight has happened once, or not at all.
* Never promised: to know the outcome of an addition whose reply was lost, if the node or our marker
  is deleted before we look. The first raises ConnectionLostError; the addition is not repeated. In
  an exact session the outcome is known.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing

from paddock.client.client import Client
from paddock.client.requests.arguments import check_integer
from paddock.errors import InvalidValueError
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.values.versioned_node import VersionedNode


class Counter:
    """A whole number, of any size, in one node.

    Data that are no number raise InvalidValueError, and are not changed.
    """

    def __init__(
        self, client: Client, path: str, *, initial: int = 0, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        check_integer("initial", initial)
        # The node that holds the number.
        self.path: str = path
        self._initial = initial
        self._node = VersionedNode(client, path, acl)

    def __repr__(self) -> str:
        return f"<Counter {self.path}>"

    async def get(self) -> int:
        """Return the number that the connected server has.

        Call `client.sync` first for the newest.
        """
        return self._number((await self._node.read()).data)

    async def add(self, amount: int = 1) -> int:
        """Add to it; return the sum."""
        check_integer("amount", amount)
        return await self._update(lambda number: number + amount)

    async def subtract(self, amount: int = 1) -> int:
        """Subtract from it; return the difference, which may be negative."""
        check_integer("amount", amount)
        return await self._update(lambda number: number - amount)

    async def set(self, number: int) -> None:
        """Set the number."""
        check_integer("number", number)
        await self._node.update(lambda _: b"%d" % number)

    async def changes(self) -> AsyncIterator[int]:
        """Yield the present number, then every newer one.

        Intermediate numbers may be left out, the last one never. The stream survives lost
        connections, and raises SessionExpiredError when the session is over.
        """
        async with aclosing(self._node.changes()) as stream:
            async for data in stream:
                yield self._number(data)

    async def _update(self, function: Callable[[int], int]) -> int:
        new = await self._node.update(lambda data: b"%d" % function(self._number(data)))
        assert new is not None, "every number has digits"
        return int(new)

    def _number(self, data: bytes | None) -> int:
        if not data:
            return self._initial
        try:
            return int(data)
        except ValueError:
            shown = data[:40] + (b"..." if len(data) > 40 else b"")
            raise InvalidValueError(f"{self.path}: {shown!r} is no number") from None
