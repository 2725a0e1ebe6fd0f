"""Locks: one holder at a time, in the order in which they came.

    async with Lock(client, "/locks/report") as grant:
        token = grant.token  # larger than that of every holder before

A `Lock` is FIFO and has no herd effect: each contender watches only the one before it. Guaranteed
is the service's order: a grant begins after the node of every earlier one has gone, its token is
larger, and a write under `grant.guard()` fails from the moment the next contender holds the lock.

A `Lock` shares its line with Curator's `InterProcessMutex` on the same path: they exclude each
other, in one order.

* Suspension (the connection is lost): the holder is told and goes on, a waiter keeps its place.
* Expiry, or nothing heard for a session timeout: the holder's scope cancels its body and raises
  GrantLostError; a waiter gets SessionExpiredError. A body that has not ended after a session
  timeout is cancelled again, since `asyncio.wait_for` of Python 3.11 may swallow a cancellation.
* Deletion of its node by others: the holder's scope does the same, at once; a grant of less than 5
  ms is not watched, so what happens in that time is noticed after it. A waiter gets LockStateError
  when it looks at the line the next time: when the contender before it has gone, or after a
  reconnect.
* Cancellation: a cancelled waiter or holder leaves the line. Its node is deleted in the background
  for as long as that takes, so it never blocks the others.
* Never promised: that a holder is alone by the clock. A process may be paused while its session
  ends, and not know it. Fencing tokens protect storage outside the service from its late writes
  (`paddock.recipes.locks.grant` says how).

The nodes of a `Lock` are named as those of Curator's InterProcessMutex, so both can stand in one
line. With `layout="kazoo"` they are named as those of kazoo's Lock, and stand in line with these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import check_flag
from paddock.errors import InvalidArgumentError
from paddock.layouts import KAZOO_LOCK, LOCK
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.locks.claim import Claim
from paddock.recipes.locks.holder import Holder
from paddock.recipes.locks.line import Contender, LayoutName, Line, Place
from paddock.recipes.locks.revocation import ask, check_own_data

# The part of a contender's name before the number, as in Curator's lock and in kazoo's.
_KINDS: Final[dict[LayoutName, str]] = {"curator": LOCK, "kazoo": KAZOO_LOCK}


class Lock(Holder):
    """A fair lock, held at most as long as the client's session lives.

        lock = Lock(client, "/locks/report", data=b"worker 7")
        async with lock as grant:
            print(grant.is_held)  # True

    A `Lock` object is one contender, with one place in the line. Acquiring it again while it is
    held raises LockStateError, unless it is `reentrant`: then it has to be released as often as it
    was acquired. Others read `data` in `contenders`, and in a request of ours to let go. `layout`
    is for a path at which programs with kazoo's Lock contend, too; then `data` is UTF-8.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
        reentrant: bool = False,
        layout: LayoutName = "curator",
    ) -> None:
        check_flag("reentrant", reentrant)
        super().__init__(client, path, reentrant=reentrant)
        self._kind = _KINDS.get(layout, LOCK)
        self._line = Line(client, path, [self._kind], data, acl, layout=layout)
        check_own_data(data)

    async def contenders(self) -> list[Contender]:
        """Return all who hold it or wait for it, in order: the holder first."""
        return await self._line.contenders()

    async def ask_to_release(self) -> list[Contender]:
        """Ask the holder to let go; return it in a list, which is empty if nobody else holds it.

            await lock.ask_to_release()
            grant = await lock.acquire(timeout=10)

        The holder learns of our `data` and of our session, by `asked` of its grant, and decides: it
        may go on. A holder of Curator's learns only that it is asked, if it listens. After a
        release the next in line holds the lock, who was not asked. Raises NoAuthError if the ACL of
        the holder's node does not permit it, and UsageError in kazoo's layout, which has no such
        thing.
        """
        first = (await self._line.entries())[:1]
        if first and self._place is not None and self._place.is_own(first[0].name):
            return []
        return await ask(self._line, first)

    def _new_place(self) -> Place:
        return self._line.new_place(self._kind, is_revocable=True)


class SimpleMutex(Holder):
    """A lock that is one ephemeral node: its creator holds it, and all others race again.

        async with SimpleMutex(client, "/mutexes", "report") as grant:
            print(grant.path)  # /mutexes/report

    It is not FIFO, and it has a herd effect: a release wakes every waiter. It is for few
    contenders, and where one path must show the holder. To free it by hand, delete the node beside
    it, with a mark in its name, first: it is what a guarded write of the holder checks.
    """

    def __init__(
        self, client: Client, path: str, name: str, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        if "/" in name:
            raise InvalidArgumentError(f"name: {name!r} has a slash")
        super().__init__(client, child_path(path, name))
        self._acl = acl
        # Refuses other bad arguments now, and not when it is acquired.
        self._new_place()

    def _new_place(self) -> Claim:
        return Claim(self.client, self.path, self._acl)
