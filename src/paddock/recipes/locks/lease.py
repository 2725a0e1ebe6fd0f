"""Leases: a lock that is held for so many seconds at most, unless it is renewed.

    async with Lease(client, "/leases/report", seconds=30) as grant:
        await grant.renew()
        print(grant.is_held)  # True

When its time is over a lease goes to the next one, although the session of its holder lives: the
holder may have hung, or was killed, and its session timeout may be long. It is fair, as a lock is.
Guaranteed is the service's order, whatever any clock says: a grant begins after the node of every
earlier one has gone, its token is larger, and a write under `grant.guard()` fails from the moment
the next one can have the lease.

By the clock nobody holds it at the same time either, if clocks run equally fast, to two parts in a
hundred. No clock is compared with another. A holder counts from before it has sent its last
request, and gives up when so many seconds have passed. Whoever waits counts from when it has seen
that request's effect, which is later, and if nothing has changed after so many seconds and a few
more, it deletes the holder's node; a renewal that comes before that counts, one that comes after it
finds nothing to renew. So who waits has the lease at most so many seconds after the last renewal
that it saw, or after it came.

* Suspension (the connection is lost): a holder is told, and its time goes on; a waiter keeps its
  place.
* Expiry of the session, nothing heard for a session timeout, or the end of its time: the holder's
  scope cancels its body and raises GrantLostError; a waiter gets SessionExpiredError.
* Cancellation: whoever is cancelled, while waiting or holding, leaves the line. Its node is deleted
  in the background for as long as that takes, so it never blocks the others.
* Never promised: that a process which was paused in the middle of something knows in time. What it
  does to the outside world then is told by its fencing token (`paddock.recipes.locks.grant` says
  how).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import check_positive_seconds
from paddock.errors import BadVersionError, LockStateError, NoNodeError
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.common.retry import Signal, child, until_answered
from paddock.recipes.locks.grant import Grant, GrantEvent
from paddock.recipes.locks.holder import Contending, Holder
from paddock.recipes.locks.line import Entry, Line, Place, the_one_before

# What the name of a contender's node says before its number.
_KIND: Final = "lease-"
# So much more than the holder's seconds others wait: a clock of theirs may be faster than its own.
_ALLOWANCE: Final = 1.02


class Lease(Holder):
    """One contender for a lease of so many seconds.

        lease = Lease(client, "/leases/report", seconds=30)
        grant = await lease.acquire()
        await grant.renew()
        await grant.release()

    Contenders need not agree on the seconds: those of its holder count.
    """

    def __init__(
        self, client: Client, path: str, *, seconds: float, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        check_positive_seconds("seconds", seconds)
        super().__init__(client, path)
        # How long it is held without being renewed.
        self.seconds: float = seconds
        self._line = Line(client, path, [_KIND], b"%r" % float(seconds), acl)

    async def acquire(self) -> LeaseGrant:
        """Wait until it is ours, as long as it takes; the grant is to be renewed or released.

        As a rule `async with lease` is better, since it ends what is done in it when the grant is
        lost. Who does not notice for too long that it is its turn loses its place, and waits again
        behind the others. Raises SessionExpiredError; and LockStateError if it is ours already.
        """
        grant = await super().acquire()
        assert isinstance(grant, LeaseGrant)
        return grant

    async def try_acquire(self) -> LeaseGrant | None:
        """Take it if it can be had at once; give None otherwise."""
        grant = await super().try_acquire()
        assert grant is None or isinstance(grant, LeaseGrant)
        return grant

    async def __aenter__(self) -> LeaseGrant:
        grant = await super().__aenter__()
        assert isinstance(grant, LeaseGrant)
        return grant

    def _new_place(self) -> _Tenancy:
        return _Tenancy(self._line, self.seconds)

    def _grant_of(self, place: Contending) -> LeaseGrant:
        assert isinstance(place, _Tenancy)
        return LeaseGrant(place)


class LeaseGrant(Grant):
    """That a lease is held, for some more seconds."""

    def __init__(self, tenancy: _Tenancy) -> None:
        self._tenancy = tenancy
        self._timer: asyncio.TimerHandle | None = None
        super().__init__(tenancy)
        if not self._is_over:
            self._set_timer()

    @property
    def is_held(self) -> bool:
        """Whether it is surely held, at this moment."""
        return super().is_held and self.remaining > 0

    @property
    def remaining(self) -> float:
        """The seconds that are left, by our own clock, until it is renewed."""
        return max(0.0, self._tenancy.until - self._loop.time())

    async def renew(self) -> None:
        """Have it for as long again, counted from now; raises GrantLostError if it is too late."""
        self.check()
        if not await self._tenancy.renew():
            self._end(GrantEvent.LOST)
        self.check()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._tenancy.until, self._run_out)

    def _run_out(self) -> None:
        if self.remaining > 0:
            self._set_timer()
        else:
            self._end(GrantEvent.LOST)

    def _end(self, event: GrantEvent) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super()._end(event)


class _Tenancy(Place):
    """A place in the line that is ours for some time once we are the first.

    Whoever is the first says so by writing to its node, and so does who renews. Those who wait look
    at the first one: if it says nothing for as long as its data tell, they delete its node.
    """

    def __init__(self, line: Line, seconds: float) -> None:
        super().__init__(line, _KIND, the_one_before)
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        # The time, by the event loop's clock, until which it is ours.
        self.until = -math.inf
        self._has_waited = False
        # Who was first when we looked last, as which version, and when we saw that for the first
        # time.
        self._seen_first: tuple[str, int] | None = None
        self._seen_at = 0.0

    async def enter(self) -> None:
        # Our node says that we are there, and nobody can have seen it before.
        begins_at = self._loop.time()
        await super().enter()
        self.until = begins_at + self._seconds

    async def reach(self) -> None:
        while True:
            try:
                before = await self.before()
            except LockStateError:
                # It was our turn, and nobody heard of us for too long: we were taken for dead.
                await self.enter()
                continue
            if before:
                self._has_waited = True
                await self._wait(before[0], before[-1])
            elif await self._begin():
                return

    async def is_reached(self) -> bool:
        return not await self.before() and await self._begin()

    async def renew(self) -> bool:
        """Say that we are there; tell whether that came in time."""

        async def write() -> bool:
            sent_at = self._loop.time()
            try:
                await self.client.set(self.path, self.line.data)
            except NoNodeError:
                return False
            self.until = sent_at + self._seconds
            return True

        return await until_answered(self.client, write)

    async def _begin(self) -> bool:
        """Have it begin; tell whether it is ours."""
        # Its time began when we entered the line; who has waited since wants all of it.
        while self._has_waited or self._loop.time() >= self.until:
            if not await self.renew():
                return False
            self._has_waited = False
        return True

    async def _wait(self, first: Entry, ahead: Entry) -> None:
        """Wait until the one ahead has gone, or the first one was silent for too long."""
        signal = Signal()
        try:
            watcher = signal if ahead == first else None
            deadline = await until_answered(self.client, lambda: self._judge(first, watcher))
            if watcher is None and not await until_answered(
                self.client, lambda: self._watch(ahead, signal)
            ):
                return
            try:
                async with asyncio.timeout_at(deadline):
                    await signal.wait()
            except TimeoutError:
                # It is looked at once more: there may be a newer version.
                pass
        finally:
            self.client.forget_watcher(signal)

    async def _watch(self, ahead: Entry, signal: Signal) -> bool:
        try:
            await self.client.get(child(self.line.path, ahead.name), watch=signal)
        except NoNodeError:
            return False
        return True

    async def _judge(self, first: Entry, watcher: Signal | None) -> float:
        """Give the time until which the first one may have it; delete its node if that is over."""
        path = child(self.line.path, first.name)
        try:
            data, stat = await self.client.get(path, watch=watcher)
            now = self._loop.time()
            if self._seen_first != (first.name, stat.version):
                self._seen_first, self._seen_at = (first.name, stat.version), now
            until = self._seen_at + _ALLOWANCE * _seconds_of(data, self._seconds)
            if now >= until:
                await self.client.delete(path, version=stat.version)
        except (NoNodeError, BadVersionError):
            return self._loop.time()
        return until


def _seconds_of(data: bytes, otherwise: float) -> float:
    """Give the seconds that a contender says it wants; a stranger gets as many as we."""
    try:
        seconds = float(data)
    except ValueError:
        return otherwise
    return seconds if seconds > 0 and math.isfinite(seconds) else otherwise
