"""Counter: a number that many share.

    visits = Counter(client, "/app/visits")
    print(await visits.add(2))  # 2
    print(await visits.subtract())  # 1

The number is the text of one node, `42`, as kazoo's counter has it, too; a node that is missing or
empty counts as the initial number. Guaranteed is that every addition happens exactly once, also if
its reply is lost (`paddock.recipes.values.value` says how, and which permissions that needs), and
that what it gives is the sum with this addition as the last one. Of those who add at the same time
one is first, and the others try again after a pause that is drawn by lot and grows, so many get on.

* Suspension (the connection is lost): every call waits for the next connection and goes on.
* Expiry: SessionExpiredError. An addition that was under way may have happened, and then has once.
* Cancellation: an addition that was under way may have happened, and then has once.
* Never promised: to know the outcome of an addition whose reply was lost, if somebody deletes the
  node before we look, or a marker of ours. The first raises ConnectionLostError; nothing is added
  again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing

from paddock.client.client import Client
from paddock.client.requests.arguments import check_integer
from paddock.errors import InvalidValueError
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.values.versioned_node import Cell


class Counter:
    """A whole number, of any size, in one node.

    Data that are no number raise InvalidValueError, and stay as they are.
    """

    def __init__(
        self, client: Client, path: str, *, initial: int = 0, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        check_integer("initial", initial)
        # The node that holds the number.
        self.path: str = path
        self._initial = initial
        self._cell = Cell(client, path, acl)

    def __repr__(self) -> str:
        return f"<Counter {self.path}>"

    async def get(self) -> int:
        """Give the number, as the server that we are attached to has it.

        `client.sync` before it makes sure that it is the newest.
        """
        return self._number((await self._cell.read()).data)

    async def add(self, amount: int = 1) -> int:
        """Add to it; give the sum."""
        check_integer("amount", amount)
        return await self._update(lambda number: number + amount)

    async def subtract(self, amount: int = 1) -> int:
        """Subtract from it; give what is left, which may be less than nothing."""
        check_integer("amount", amount)
        return await self._update(lambda number: number - amount)

    async def set(self, number: int) -> None:
        """Have it go on from this number."""
        check_integer("number", number)
        await self._cell.update(lambda _: b"%d" % number)

    async def changes(self) -> AsyncIterator[int]:
        """Give the present number, then every newer one.

        Changes in quick succession may come as one; the last one always comes. It goes on over lost
        connections, and raises SessionExpiredError when the session is over.
        """
        async with aclosing(self._cell.changes()) as stream:
            async for data in stream:
                yield self._number(data)

    async def _update(self, function: Callable[[int], int]) -> int:
        new = await self._cell.update(lambda data: b"%d" % function(self._number(data)))
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
