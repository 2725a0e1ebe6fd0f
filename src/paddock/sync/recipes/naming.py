"""The blocking twin of `paddock.recipes.values.naming`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.values.naming import Naming as AsyncNaming
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class Naming(Twin[AsyncNaming]):
    """Names, each of which is bound to some bytes.

    A name has no slash. Its node is `names/<name>` below the base; `ids` counts the numbers.
    """

    def __init__(self, client: Client, base: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make("client", client, lambda bridge: AsyncNaming(client._inner, base, acl=acl))

    @property
    def base(self) -> str:
        """The node below which everything is."""
        return self._inner.base

    def bind(self, name: str, data: bytes) -> None:
        """Bind a free name to some bytes; raises NodeExistsError if it is bound."""
        self._bridge.call(self._inner.bind, name, data)

    def rebind(self, name: str, data: bytes) -> None:
        """Bind a name to some bytes, whether it is free or not."""
        self._bridge.call(self._inner.rebind, name, data)

    def unbind(self, name: str) -> None:
        """Unbind a name, if it is bound. A newer binding of another client stays."""
        self._bridge.call(self._inner.unbind, name)

    def resolve(self, name: str) -> bytes | None:
        """Return the bytes that a name is bound to; None if it is free.

        Call `client.sync` first for the newest.
        """
        return self._bridge.call(self._inner.resolve, name)

    def names(self) -> list[str]:
        """Return all names that are bound, sorted."""
        return self._bridge.call(self._inner.names)

    def watch(self, name: str) -> Stream[bytes | None]:
        """Return a stream of the bytes that a name is bound to; None while it is free.

        Intermediate changes may be left out, the last one never. The stream survives lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.watch, name))

    def new_id(self) -> int:
        """Return a unique number from 1 on, larger than all before."""
        return self._bridge.call(self._inner.new_id)
