"""Shared value: read, replaced, updated and followed by many.

    color = SharedValue(client, "/app/color")
    await color.set(b"blue")
    await color.update(lambda data: (data or b"") + b"ish")
    print(await color.get())  # b'blueish'

The value is the data of one node, as they are: what others have written there can be read, and they
can read what is written here. Guaranteed is that every write happens exactly once, and over what it
was made from, also if its reply is lost: the same transaction makes a marker, by which the write is
known again (an ephemeral node `_mark_…` below the value's own, for a moment). Whoever writes needs
the permissions CREATE and DELETE for that, beside WRITE.

* Suspension (the connection is lost): every call waits for the next connection and goes on.
* Expiry: SessionExpiredError. A write that was under way may have happened, and then has once.
* Cancellation: a write that was under way may have happened, and then has once.
* Never promised: to know the outcome of a write whose reply was lost, if somebody deletes the node
  before we look, or a marker of ours. The first raises ConnectionLostError; it is not tried again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_bytes
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.values.versioned_node import Cell


class SharedValue:
    """The data of one node, or None while there is no such node."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        # The node that holds the value.
        self.path: str = path
        self._cell = Cell(client, path, acl)

    def __repr__(self) -> str:
        return f"<SharedValue {self.path}>"

    async def get(self) -> bytes | None:
        """Give the value, as the server that we are attached to has it.

        `client.sync` before it makes sure that it is the newest.
        """
        return (await self._cell.read()).data

    async def set(self, data: bytes) -> None:
        """Replace the value, whatever it is; the node is made if it is not there."""
        checked_bytes("data", data)
        await self._cell.update(lambda _: data)

    async def update(self, function: Callable[[bytes | None], bytes]) -> bytes:
        """Replace the value by what the function makes of it; give that.

            await SharedValue(client, "/motto").update(lambda data: (data or b"more") + b"!")

        It is called again, with the newer value, if somebody else was faster: nobody's update is
        lost. It must be quick and make no calls. What it raises leaves everything as it was.
        """
        new = await self._cell.update(lambda data: checked_bytes("function", function(data)))
        assert new is not None, "the function gives bytes"
        return new

    async def compare_and_set(self, expected: bytes | None, data: bytes) -> bool:
        """Replace the value if it is the expected one; tell whether it was."""
        checked_bytes("data", data)
        return await self._cell.update(lambda now: data if now == expected else None) is not None

    def changes(self) -> AsyncIterator[bytes | None]:
        """Give the present value, then every newer one.

        Values in quick succession may come as one; the last one always comes. It goes on over lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return self._cell.changes()
