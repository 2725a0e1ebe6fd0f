"""Naming: names that resolve to values and can be watched, and unique numbers.

    naming = Naming(client, "/naming")
    await naming.bind("printer", b"10.0.0.7:631")
    print(await naming.resolve("printer"))  # b'10.0.0.7:631'
    print(await naming.new_id())  # 1

Guaranteed is that a name is bound by one client at a time, which knows that it has bound it, even
if the reply is lost (`paddock.recipes.values.value` says how). Numbers grow: a request that begins
after another one was answered gets a larger number. A lost reply may leave out a number, and no
number is given twice.

* Suspension (the connection is lost): every call waits for the next connection and goes on.
* Expiry: SessionExpiredError. A write in flight has happened once, or not at all. Names stay.
* Cancellation: a write in flight has happened once, or not at all.
* Never promised: to know whether a name was bound whose reply was lost, if it is unbound before we
  look; that raises ConnectionLostError, but not in an exact session. And numbers begin again if
  the node that counts them is deleted. There are 2147483647.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_bytes
from paddock.errors import NodeExistsError, NoNodeError, NotEmptyError, RecipeError
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.common.background import Recipe
from paddock.recipes.common.retry import (
    check_name,
    delete_first,
    list_children,
    make_node,
    retry,
    watch_signal,
)
from paddock.recipes.values.versioned_node import MARKER_PREFIX, VersionedNode


class Naming(Recipe):
    """Names, each of which is bound to some bytes.

    A name has no slash. Its node is `names/<name>` below the base; `ids` counts the numbers.
    """

    def __init__(self, client: Client, base: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        super().__init__(client, base, acl)
        # The node below which everything is.
        self.base: str = base
        self._names = child_path(base, "names")
        self._ids = child_path(base, "ids")

    async def bind(self, name: str, data: bytes) -> None:
        """Bind a free name to some bytes; raises NodeExistsError if it is bound."""
        node = self._node(name)
        if not await node.create(checked_bytes("data", data)):
            raise NodeExistsError("bind", node.path, "the name is bound already")

    async def rebind(self, name: str, data: bytes) -> None:
        """Bind a name to some bytes, whether it is free or not."""
        checked_bytes("data", data)
        await self._node(name).update(lambda _: data)

    async def unbind(self, name: str) -> None:
        """Unbind a name, if it is bound. A newer binding of another client stays."""
        path = self._node(name).path
        delete = partial(delete_first(path), self._client)
        await retry(self._client, lambda: self._client.sync(path))
        while True:
            try:
                return await retry(self._client, delete)
            except NotEmptyError:
                await retry(self._client, lambda: self._wait_for_markers(path))

    async def resolve(self, name: str) -> bytes | None:
        """Return the bytes that a name is bound to; None if it is free.

        Call `client.sync` first for the newest.
        """
        return (await self._node(name).read()).data

    async def names(self) -> list[str]:
        """Return all names that are bound, sorted."""
        return sorted(await retry(self._client, lambda: list_children(self._client, self._names)))

    def watch(self, name: str) -> AsyncIterator[bytes | None]:
        """Return a stream of the bytes that a name is bound to; None while it is free.

        Intermediate changes may be left out, the last one never. The stream survives lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return self._node(name).changes()

    async def new_id(self) -> int:
        """Return a unique number from 1 on, larger than all before."""
        while True:
            try:
                stat = await retry(self._client, lambda: self._client.set(self._ids, b""))
                break
            except NoNodeError:
                await make_node(self._client, self._ids)
        # Each write has a version of its own.
        if stat.version < 1:
            raise RecipeError(f"{self._ids}: all numbers were given")
        return stat.version

    def _node(self, name: str) -> VersionedNode:
        check_name("name", name)
        return VersionedNode(self._client, child_path(self._names, name), self._acl)

    async def _wait_for_markers(self, path: str) -> None:
        """Wait until the client that has bound it has deleted its marker."""
        with watch_signal(self._client) as signal:
            names = await list_children(self._client, path, signal)
            if not all(name.startswith(MARKER_PREFIX) for name in names):
                raise NotEmptyError("unbind", path)
            if names:
                await signal.wait()
