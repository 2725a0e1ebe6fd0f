"""Shared value: many clients read, replace, update and follow it.

    color = SharedValue(client, "/app/color")
    await color.set(b"blue")
    await color.update(lambda data: (data or b"") + b"ish")
    print(await color.get())  # b'blueish'

The value is the data of one node. Guaranteed is that every write happens exactly once, and over the
value it was made from, also if its reply is lost: the same transaction creates a marker, by which
the write is recognised (an ephemeral node `_mark_…` below the value's own, for a moment). So a
writer needs the permissions CREATE and DELETE, in addition to WRITE. In an exact session there is
no marker, and WRITE is enough.

* Suspension (the connection is lost): every call waits for the next connection and goes on.
* Expiry: SessionExpiredError. A write in flight has happened once, or not at all.
* Cancellation: a write in flight has happened once, or not at all.
* Never promised: to know the outcome of a write whose reply was lost, if the node or our marker is
  deleted before we look. The first raises ConnectionLostError; the write is not repeated. In an
  exact session the outcome is known.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_bytes
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.values.versioned_node import VersionedNode


class SharedValue:
    """The data of one node, or None while there is none."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        # The node that holds the value.
        self.path: str = path
        self._node = VersionedNode(client, path, acl)

    def __repr__(self) -> str:
        return f"<SharedValue {self.path}>"

    async def get(self) -> bytes | None:
        """Return the value that the connected server has.

        Call `client.sync` first for the newest.
        """
        return (await self._node.read()).data

    async def set(self, data: bytes) -> None:
        """Replace the value; the node is created if there is none."""
        checked_bytes("data", data)
        await self._node.update(lambda _: data)

    async def update(self, function: Callable[[bytes | None], bytes]) -> bytes:
        """Replace the value by the result of a function of it; return that.

            await SharedValue(client, "/motto").update(lambda data: (data or b"more") + b"!")

        The function is called again, with the newer value, if another client was faster: no update
        is lost. It must be quick and make no calls. If it raises, nothing changes.
        """
        new = await self._node.update(lambda data: checked_bytes("function", function(data)))
        assert new is not None, "the function returns bytes"
        return new

    async def compare_and_set(self, expected: bytes | None, data: bytes) -> bool:
        """Replace the value if it is the expected one; return whether it was."""
        checked_bytes("data", data)
        return await self._node.update(lambda now: data if now == expected else None) is not None

    def changes(self) -> AsyncIterator[bytes | None]:
        """Return a stream of the present value, then every newer one.

        Intermediate values may be left out, the last one never. The stream survives lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return self._node.changes()
