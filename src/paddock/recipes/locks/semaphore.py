"""Semaphore: a number of leases, given out in FIFO order.

    async with Semaphore(client, "/semaphores/printers", leases=3) as grant:
        print(grant.is_held)  # True

There is no herd effect: contenders stand in a line; only the first looks at the leases, and each of
the others at the one before it. Guaranteed is the service's order: a holder has seen, after its own
node was created, fewer than `leases` nodes before it. None is ever added before it, so there are
never more. A write under `grant.guard()` fails from the moment the service has ended the lease.

* Suspension (the connection is lost): the holder is told and goes on, a waiter keeps its place.
* Expiry, or nothing heard for a session timeout: the holder's scope cancels its body and raises
  GrantLostError; a waiter gets SessionExpiredError. The nodes go with the session, so a contender
  that dies blocks nobody.
* Cancellation: a cancelled waiter or holder gives up everything. Its nodes are deleted in the
  background for as long as that takes.
* Never promised: that there are no more holders by the clock. A process may be paused while its
  session ends, and not know it. Tokens are ordered, but the oldest lease may be held the longest:
  only `guard` tells whether one is over.

All should agree on the number of leases. If they do not, there are never more than the largest
number; a contender with a smaller one waits, first in the line, until fewer than that are held.

The nodes are those of Curator's InterProcessSemaphoreV2, so both can be served together: the line
below `locks`, a node for each lease below `leases`. With `layout="kazoo"` they are those of kazoo's
Semaphore (`paddock.recipes.locks.kazoo_semaphore`); there all have to agree on the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import check_count
from paddock.layouts import KAZOO_LOCK, LEASE, LOCK
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.common.retry import watch_signal
from paddock.recipes.locks.holder import Contending, Holder
from paddock.recipes.locks.kazoo_semaphore import KazooSemaphorePlace, lease_holders, line_path
from paddock.recipes.locks.line import Contender, LayoutName, Line

# The prefixes of the nodes, as in Curator's semaphore.
_TURN: Final = LOCK
_LEASE: Final = LEASE


class Semaphore(Holder):
    """One contender for a number of leases; it holds one at a time.

        semaphore = Semaphore(client, "/semaphores/printers", leases=3, data=b"worker 7")
        async with semaphore as grant:
            print(len(await semaphore.holders()))  # 1

    `try_acquire` returns None also while another contender is first in the line. Others read `data`
    in `holders`. `layout` is for a path at which programs with kazoo's Semaphore contend, too; then
    `data` is UTF-8.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        leases: int,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
        layout: LayoutName = "curator",
    ) -> None:
        super().__init__(client, path)
        check_count("leases", leases)
        self._count = leases
        # None in kazoo's layout, where leases are no line.
        self._leases: Line | None = None
        if layout == "kazoo":
            self._turns = Line(client, line_path(path), [KAZOO_LOCK], data, acl, layout=layout)
            return
        self._turns = Line(
            client, child_path(path, "locks"), [_TURN], data, acl, within=path, layout=layout
        )
        self._leases = Line(client, child_path(path, "leases"), [_LEASE], data, acl, within=path)

    async def holders(self) -> list[Contender]:
        """Return all who hold a lease, in the order in which they got it."""
        if self._leases is None:
            return await lease_holders(self.client, self.path)
        # Behind them may be the contender that waits for the next.
        return (await self._leases.contenders())[: self._count]

    def _new_place(self) -> _SemaphorePlace | KazooSemaphorePlace:
        if self._leases is None:
            return KazooSemaphorePlace(self._turns, self.path, self._count)
        return _SemaphorePlace(self._turns, self._leases, self._count)


class _SemaphorePlace(Contending):
    """One lease, from a place in the line to a place among the leases.

    Only the first in the line stands among the leases without holding one. That is for fairness,
    and for Curator's contenders, which count all of them. Whether a lease is ours depends on those
    before it alone, so it does no harm if a place in the line is deleted.
    """

    def __init__(self, turns: Line, leases: Line, count: int) -> None:
        # The path will be that of the lease.
        super().__init__(turns.client)
        self._count = count
        self._turn = turns.new_place(_TURN)
        self._lease = leases.new_place(_LEASE)
        # Which of the two may have a node.
        self._is_in_line = False
        self._is_among_leases = False

    async def enter(self) -> None:
        """Stand at the end of the line. Whatever is raised, `leave` has to follow."""
        self._is_in_line = True
        await self._turn.enter()

    async def reach(self) -> None:
        """Wait until a lease is ours; raise LockStateError if a node of ours was deleted."""
        await self._turn.reach()
        if not await self._has_lease():
            with watch_signal(self.client) as signal:
                while len(before := await self._lease.before(signal)) >= self._count:
                    self.blocked_by = f"{len(before)} holders, first {before[0].name}"
                    await signal.wait()
        self._pass_on()

    def abandon(self, error: BaseException) -> None:
        self.blocked_by = self.blocked_by or self._turn.blocked_by
        super().abandon(error)

    async def is_reached(self) -> bool:
        """Return whether a lease is ours now."""
        if not await self._turn.is_reached() or not await self._has_lease():
            return False
        self._pass_on()
        return True

    async def leave(self) -> None:
        """Delete both nodes, even if the replies to their creates were lost."""
        try:
            if self._is_among_leases:
                await self._lease.leave()
        finally:
            if self._is_in_line:
                await self._turn.leave()

    async def _has_lease(self) -> bool:
        """Stand among the leases; return whether one is ours at once."""
        self._is_among_leases = True
        await self._lease.enter()
        return len(await self._lease.before()) < self._count

    def _pass_on(self) -> None:
        """Leave the line to the next contender: from now on we have only our lease."""
        self.path, self.token = self._lease.path, self._lease.token
        self._is_in_line = False
        self.client.start_task(self._turn.leave())
