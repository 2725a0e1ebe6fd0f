"""Semaphore: so many leases, given out in the order in which they were asked for.

    async with Semaphore(client, "/semaphores/printers", leases=3) as grant:
        print(grant.is_held)  # True

It is fair and has no herd effect. Whoever wants a lease stands in a line; only the first in it
looks at the leases, and each of the others at the one before it. Guaranteed is the service's order:
whoever has a lease saw, after its own node was there, fewer than `leases` before it. Nobody is ever
added before it, so there are never more. A write under `grant.guard()` fails from the moment the
service has ended the lease.

* Suspension (the connection is lost): a holder is told and goes on, a waiter keeps its place.
* Expiry, or nothing heard for a session timeout: the holder's scope cancels its body and raises
  GrantLostError; a waiter gets SessionExpiredError. The nodes go with the session, so nobody who
  dies is in the way of others, wherever it was.
* Cancellation: whoever is cancelled, while waiting or holding, gives up everything. Its nodes are
  deleted in the background for as long as that takes.
* Never promised: that there are no more by the clock. A process may be paused while its session
  ends, and know nothing of it. Tokens say in which order leases were given out, but the oldest may
  be held the longest: only `guard` tells whether one is over.

All should agree on the number of leases. If they do not, there are never more than the largest
number says; whoever goes by a smaller one waits, first in the line and with all others behind it,
until fewer than that are held.

The nodes are those of Curator's InterProcessSemaphoreV2, so both can be served together: the line
below `locks`, a node for each lease below `leases`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import check_count, checked_path
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.common.retry import Leaver, Signal, child
from paddock.recipes.locks.holder import Holder
from paddock.recipes.locks.line import Contender, Line

# What the names of the nodes say before their numbers, as in Curator's semaphore.
_TURN: Final = "lock-"
_LEASE: Final = "lease-"


class Semaphore(Holder):
    """One of those who share a number of leases; it holds one at a time.

        semaphore = Semaphore(client, "/semaphores/printers", leases=3, data=b"worker 7")
        async with semaphore as grant:
            print(len(await semaphore.holders()))  # 1

    `try_acquire` gives None also if somebody else is just being served. `data` is what others read
    of us in `holders`.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        leases: int,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        checked_path(path)
        check_count("leases", leases)
        super().__init__(client, path)
        self._count = leases
        self._turns = Line(client, child(path, "locks"), [_TURN], data, acl, within=path)
        self._leases = Line(client, child(path, "leases"), [_LEASE], data, acl, within=path)

    async def holders(self) -> list[Contender]:
        """Give all who hold a lease, in the order in which they got it."""
        # Behind them may be the one who waits for the next.
        return (await self._leases.contenders())[: self._count]

    def _new_place(self) -> _Turn:
        return _Turn(self._turns, self._leases, self._count)


class _Turn(Leaver):
    """One lease, from a place in the line to a place among those that are held.

    Nobody but the first in the line stands among the leases without holding one. That is for
    fairness, and for Curator's contenders, who count all of them. Whether a lease is ours we tell
    by those before it alone, so it does no harm if somebody deletes a place in the line.
    """

    def __init__(self, turns: Line, leases: Line, count: int) -> None:
        self.client = turns.client
        # Of the lease, once it is ours.
        self.path = ""
        self.token = 0
        self._count = count
        self._turn = turns.new_place(_TURN)
        self._lease = leases.new_place(_LEASE)
        # Which of the two there may be a node for.
        self._is_in_line = False
        self._is_among_leases = False

    @property
    def guarded(self) -> Sequence[str]:
        """What a guarded write checks."""
        return (self.path,)

    async def enter(self) -> None:
        """Stand at the end of the line. Whatever is raised, `leave` has to follow."""
        self._is_in_line = True
        await self._turn.enter()

    async def reach(self) -> None:
        """Wait until a lease is ours; raises LockStateError if a node of ours was deleted."""
        await self._turn.reach()
        if not await self._has_lease():
            signal = Signal()
            try:
                while len(await self._lease.before(signal)) >= self._count:
                    await signal.wait()
            finally:
                self.client.forget_watcher(signal)
        self._pass_on()

    async def is_reached(self) -> bool:
        """Tell whether a lease is ours now."""
        if not await self._turn.is_reached() or not await self._has_lease():
            return False
        self._pass_on()
        return True

    async def leave(self) -> None:
        """Give up everything, wherever our creates have got to; ends when it is gone."""
        try:
            if self._is_among_leases:
                await self._lease.leave()
        finally:
            if self._is_in_line:
                await self._turn.leave()

    async def _has_lease(self) -> bool:
        """Stand among the leases; tell whether one is ours at once."""
        self._is_among_leases = True
        await self._lease.enter()
        return len(await self._lease.before()) < self._count

    def _pass_on(self) -> None:
        """Let the next in the line have its turn: from now on our lease is all there is of us."""
        self.path, self.token = self._lease.path, self._lease.token
        self._is_in_line = False
        self.client.start_task(self._turn.leave())
