"""Locks: one holder at a time, in the order in which they came.

    async with Lock(client, "/locks/report") as grant:
        token = grant.token  # larger than that of every holder before

A `Lock` is fair and has no herd effect: each contender watches only the one before it. Guaranteed
is the service's order: a grant begins after the node of every earlier one has gone, its token is
larger, and a write under `grant.guard()` fails from the moment the next one holds the lock.

* Suspension (the connection is lost): a holder is told and goes on, a waiter keeps its place.
* Expiry, or nothing heard for a session timeout: the holder's scope cancels its body and raises
  GrantLostError; a waiter gets SessionExpiredError.
* Cancellation: whoever is cancelled, while waiting or holding, leaves the line. Its node is deleted
  in the background for as long as that takes, so it never blocks the others.
* Never promised: that a holder is alone by the clock. A process may be paused while its session
  ends, and know nothing of it. What it does to the outside world then is told by its fencing token
  (`paddock.recipes.locks.grant` says how).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import check_flag
from paddock.errors import InvalidArgumentError
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.common.retry import child
from paddock.recipes.locks.claim import Claim
from paddock.recipes.locks.holder import Holder
from paddock.recipes.locks.line import Contender, Line, Place

# What the name of a contender's node says before its number, as in Curator's lock.
_KIND: Final = "lock-"


class Lock(Holder):
    """A fair lock, held at most as long as the client's session lives.

        lock = Lock(client, "/locks/report", data=b"worker 7")
        async with lock as grant:
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
        check_flag("reentrant", reentrant)
        super().__init__(client, path, reentrant=reentrant)
        self._line = Line(client, path, [_KIND], data, acl)

    async def contenders(self) -> list[Contender]:
        """Give all who hold it or wait for it, in their order: the holder first."""
        return await self._line.contenders()

    def _new_place(self) -> Place:
        return self._line.new_place(_KIND)


class SimpleMutex(Holder):
    """A lock that is one ephemeral node: whoever creates it holds it, and all others race again.

        async with SimpleMutex(client, "/mutexes", "report") as grant:
            print(grant.path)  # /mutexes/report

    It is neither fair nor without herd effect: a release wakes up everybody. It is for few
    contenders, and for those who want to see at one path who holds it. Whoever deletes that node by
    hand frees it; the holder hears of it, but may have written something under its guard meanwhile,
    unless the node beside it, with a mark in its name, is deleted first.
    """

    def __init__(
        self, client: Client, path: str, name: str, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        if "/" in name:
            raise InvalidArgumentError(f"name: {name!r} has a slash")
        super().__init__(client, child(path, name))
        self._acl = acl
        # Anything else that cannot be used is refused now, and not when it is taken.
        self._new_place()

    def _new_place(self) -> Claim:
        return Claim(self.client, self.path, self._acl)
