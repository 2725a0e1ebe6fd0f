"""The blocking twin of `paddock.recipes.locks.lock`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.locks.line import Contender
from paddock.recipes.locks.lock import Lock as AsyncLock
from paddock.recipes.locks.lock import SimpleMutex as AsyncSimpleMutex
from paddock.sync.bridge import bridge_of
from paddock.sync.client import Client
from paddock.sync.recipes.holder import Holder


class Lock(Holder[AsyncLock]):
    """A fair lock, held at most as long as the client's session lives.

        lock = Lock(client, "/locks/report", data=b"worker 7")
        with lock as grant:
            print(grant.is_held)  # True

    A lock is one contender: whoever shares it shares its place. Taking it again while it is held
    raises LockStateError, unless it is `reentrant`: then it is held until it has been released as
    often as it was taken. `data` is what others read of us in `contenders`.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
        reentrant: bool = False,
    ) -> None:
        bridge = bridge_of("client", client)
        super().__init__(
            bridge,
            bridge.run(AsyncLock, client._inner, path, data=data, acl=acl, reentrant=reentrant),
            client,
        )

    def contenders(self) -> list[Contender]:
        """Give all who hold it or wait for it, in their order: the holder first."""
        return self._bridge.call(self._inner.contenders)


class SimpleMutex(Holder[AsyncSimpleMutex]):
    """A lock that is one ephemeral node: whoever creates it holds it, and all others race again.

        with SimpleMutex(client, "/mutexes", "report") as grant:
            print(grant.path)  # /mutexes/report

    It is neither fair nor without herd effect: a release wakes up everybody. It is for few
    contenders, and for those who want to see at one path who holds it. Whoever deletes that node by
    hand frees it; the holder hears of it, but may have written something under its guard meanwhile,
    unless the node beside it, with a mark in its name, is deleted first.
    """

    def __init__(
        self, client: Client, path: str, name: str, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        bridge = bridge_of("client", client)
        super().__init__(
            bridge, bridge.run(AsyncSimpleMutex, client._inner, path, name, acl=acl), client
        )
