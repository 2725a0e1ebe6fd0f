"""The blocking twin of `paddock.recipes.locks.lock`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.locks.line import Contender
from paddock.recipes.locks.lock import Lock as AsyncLock
from paddock.recipes.locks.lock import SimpleMutex as AsyncSimpleMutex
from paddock.sync.client import Client
from paddock.sync.recipes.holder import Holder


class Lock(Holder):
    """A fair lock, held at most as long as the client's session lives.

        lock = Lock(client, "/locks/report", data=b"worker 7")
        with lock as grant:
            print(grant.is_held)  # True

    A `Lock` object is one contender, with one place in the line. Acquiring it again while it is
    held raises LockStateError, unless it is `reentrant`: then it has to be released as often as it
    was acquired. Others read `data` in `contenders`.
    """

    _inner: AsyncLock

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
        reentrant: bool = False,
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: AsyncLock(client._inner, path, data=data, acl=acl, reentrant=reentrant),
        )

    def contenders(self) -> list[Contender]:
        """Return all who hold it or wait for it, in order: the holder first."""
        return self._bridge.call(self._inner.contenders)


class SimpleMutex(Holder):
    """A lock that is one ephemeral node: its creator holds it, and all others race again.

        with SimpleMutex(client, "/mutexes", "report") as grant:
            print(grant.path)  # /mutexes/report

    It is not FIFO, and it has a herd effect: a release wakes every waiter. It is for few
    contenders, and where one path must show the holder. To free it by hand, delete the node beside
    it, with a mark in its name, first: it is what a guarded write of the holder checks.
    """

    _inner: AsyncSimpleMutex

    def __init__(
        self, client: Client, path: str, name: str, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        self._make(
            "client", client, lambda bridge: AsyncSimpleMutex(client._inner, path, name, acl=acl)
        )
