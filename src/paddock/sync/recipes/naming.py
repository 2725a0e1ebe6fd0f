"""The blocking twin of `paddock.recipes.values.naming`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.values.naming import Naming as AsyncNaming
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class Naming(Twin[AsyncNaming]):
    """A place for names, each of which stands for some bytes.

    A name has no slash. Its node is `names/<name>` below the base; `ids` counts the numbers.
    """

    def __init__(self, client: Client, base: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        bridge = bridge_of("client", client)
        super().__init__(bridge, bridge.run(AsyncNaming, client._inner, base, acl=acl), client)

    @property
    def base(self) -> str:
        """The node below which everything is."""
        return self._inner.base

    def bind(self, name: str, data: bytes) -> None:
        """Have a name that is free stand for something; raises NodeExistsError if it is taken."""
        self._bridge.call(self._inner.bind, name, data)

    def rebind(self, name: str, data: bytes) -> None:
        """Have a name stand for something, whether it is free or not."""
        self._bridge.call(self._inner.rebind, name, data)

    def unbind(self, name: str) -> None:
        """Have a name be free; that it is free already is fine.

        What somebody else binds it to once it was free stays.
        """
        self._bridge.call(self._inner.unbind, name)

    def resolve(self, name: str) -> bytes | None:
        """Give what a name stands for; None if it is free.

        `client.sync` before it makes sure that it is the newest.
        """
        return self._bridge.call(self._inner.resolve, name)

    def names(self) -> list[str]:
        """Give all names that are bound, in alphabetical order."""
        return self._bridge.call(self._inner.names)

    def watch(self, name: str) -> Stream[bytes | None]:
        """Give what a name stands for, then what it stands for next; None while it is free.

        Changes in quick succession may come as one; the last one always comes. It goes on over lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.watch, name))

    def new_id(self) -> int:
        """Give a number from 1 on that nobody has, larger than all that were given before."""
        return self._bridge.call(self._inner.new_id)
