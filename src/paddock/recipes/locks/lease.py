"""Leases: a lock that is held for a limited time, unless it is renewed.

    async with Lease(client, "/leases/report", seconds=30) as grant:
        await grant.renew()
        print(grant.is_held)  # True

When its time is over, a lease goes to the next contender although the session of its holder lives:
the holder may hang, or was killed and has a long session timeout. It is FIFO, as a lock is.
Guaranteed is the service's order, whatever any clock says: a grant begins after the node of every
earlier one has gone, its token is larger, and a write under `grant.guard()` fails from the moment
the next contender can have the lease.

Two holders do not overlap by the clock either, if clocks run equally fast, to two percent. No clock
is compared with another. A holder counts from before it has sent its last renewal. A waiter counts
from when it has seen that renewal's effect, which is later; if there is no other within the lease's
seconds and a few more, it deletes the holder's node. A renewal that comes before that counts, one
that comes after it finds nothing to renew.

* Suspension (the connection is lost): the holder is told, its time goes on; a waiter keeps its
  place.
* Expiry of the session, nothing heard for a session timeout, or the end of its time: the holder's
  scope cancels its body and raises GrantLostError; a waiter gets SessionExpiredError.
* Cancellation: a cancelled waiter or holder leaves the line. Its node is deleted in the background
  for as long as that takes, so it never blocks the others.
* Never promised: that a paused process knows in time. Fencing tokens protect storage outside the
  service from its late writes (`paddock.recipes.locks.grant` says how).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import check_positive_seconds
from paddock.client.time_limits import limited
from paddock.errors import BadVersionError, LockStateError, NoNodeError
from paddock.layouts import LEASE
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.common.retry import Signal, read_node, retry, watch_signal
from paddock.recipes.locks.grant import DELETED, Grant, GrantEvent
from paddock.recipes.locks.holder import Contending, Holder
from paddock.recipes.locks.line import Entry, Line, Place, predecessor

# The prefix of a contender's node.
_KIND: Final = LEASE
# Others wait longer than the holder's seconds by this factor: their clocks may be faster.
_ALLOWANCE: Final = 1.02
_RUN_OUT: Final = "its time was over, and it was not renewed"


class Lease(Holder):
    """One contender for a lease.

        lease = Lease(client, "/leases/report", seconds=30)
        grant = await lease.acquire()
        await grant.renew()
        await grant.release()

    Contenders need not agree on the seconds: those of the holder count.
    """

    def __init__(
        self, client: Client, path: str, *, seconds: float, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        check_positive_seconds("seconds", seconds)
        super().__init__(client, path)
        # How long it is held without being renewed.
        self.seconds: float = seconds
        self._line = Line(client, path, [_KIND], b"%r" % float(seconds), acl)

    async def acquire(self, *, timeout: float | None = None) -> LeaseGrant:  # noqa: ASYNC109
        """Wait until it is ours; the grant is to be renewed or released.

        As a rule `async with lease` is better, since it ends what is done in it when the grant is
        lost. A waiter that does not notice its turn for too long waits again, behind the others.
        Raises TimeoutError, which names the holder, after `timeout` seconds; SessionExpiredError;
        and LockStateError if it is ours already.
        """
        return _lease(await super().acquire(timeout=timeout))

    async def try_acquire(self) -> LeaseGrant | None:
        """Acquire it if that is possible at once; return None otherwise."""
        grant = await super().try_acquire()
        return None if grant is None else _lease(grant)

    async def __aenter__(self) -> LeaseGrant:
        return _lease(await super().__aenter__())

    def _new_place(self) -> _LeasePlace:
        return _LeasePlace(self._line, self.seconds)

    def _grant_of(self, place: Contending) -> LeaseGrant:
        assert isinstance(place, _LeasePlace)
        return LeaseGrant(place)


class LeaseGrant(Grant):
    """Proof that a lease is held, for some more seconds."""

    def __init__(self, place: _LeasePlace) -> None:
        self._place = place
        self._timer: asyncio.TimerHandle | None = None
        super().__init__(place)
        if not self._is_over:
            self._set_timer()

    @property
    def remaining(self) -> float:
        """The seconds that are left, by our own clock, until it is renewed."""
        return max(0.0, self._place.until - self._loop.time())

    async def renew(self) -> None:
        """Hold it for as long again, counted from now; raises GrantLostError if it is too late."""
        self.check()
        if not await self._place.renew():
            self._lose(DELETED)
        self.check()
        self._set_timer()

    def _is_valid(self) -> bool:
        return super()._is_valid() and self.remaining > 0

    def _why_lost(self) -> str:
        is_run_out = not self._why and super()._is_valid() and self.remaining == 0
        return _RUN_OUT if is_run_out else super()._why_lost()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._place.until, self._run_out)

    def _run_out(self) -> None:
        if self.remaining > 0:
            self._set_timer()
        else:
            self._lose(_RUN_OUT)

    def _end(self, event: GrantEvent) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super()._end(event)


def _lease(grant: Grant) -> LeaseGrant:
    assert isinstance(grant, LeaseGrant), "`_grant_of` makes it"
    return grant


class _LeasePlace(Place):
    """A place in the line that is ours for some time once we are the first.

    The first contender writes to its node when its turn begins and to renew. The others watch it:
    if it writes nothing for the seconds in its data, they delete its node.
    """

    def __init__(self, line: Line, seconds: float) -> None:
        super().__init__(line, _KIND, predecessor)
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        # When its time is over, by the event loop's clock.
        self.until = -math.inf
        self._has_waited = False
        # The first contender's name and version, and when we saw these first.
        self._seen_first: tuple[str, int] | None = None
        self._seen_at = 0.0

    async def enter(self) -> None:
        # Nobody can have seen our node before.
        begins_at = self._loop.time()
        await super().enter()
        self.until = begins_at + self._seconds

    async def reach(self) -> None:
        while True:
            try:
                before = await self.before()
            except LockStateError:
                # It was our turn, and we wrote nothing for too long.
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
        """Write to our node; return whether it still exists."""

        async def write() -> bool:
            sent_at = self._loop.time()
            try:
                await self.client.set(self.path, self.line.data)
            except NoNodeError:
                return False
            self.until = sent_at + self._seconds
            return True

        return await retry(self.client, write)

    async def _begin(self) -> bool:
        """Begin our turn; return whether our node still exists."""
        # Its time began when we entered the line; after a wait it begins anew.
        while self._has_waited or self._loop.time() >= self.until:
            if not await self.renew():
                return False
            self._has_waited = False
        return True

    async def _wait(self, first: Entry, ahead: Entry) -> None:
        """Wait until the one ahead has gone, or the time of the first one is over."""
        self.blocked_by = child_path(self.line.path, first.name)
        with watch_signal(self.client) as signal:
            watcher = signal if ahead == first else None
            deadline = await retry(self.client, lambda: self._judge(first, watcher))
            path = child_path(self.line.path, ahead.name)
            if watcher is None and not await retry(
                self.client, lambda: read_node(self.client, path, signal)
            ):
                return
            self.tell_blocked(path)
            # At the deadline it is looked at once more: there may be a newer version.
            with suppress(TimeoutError):
                async with limited(asyncio.timeout_at(deadline)):
                    await signal.wait()
            self.tell_woken(signal.zxid)

    async def _judge(self, first: Entry, watcher: Signal | None) -> float:
        """Return when the time of the first one is over; delete its node if it is."""
        path = child_path(self.line.path, first.name)
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
    """Return the seconds in a contender's data; ours if there are none."""
    try:
        seconds = float(data)
    except ValueError:
        return otherwise
    return seconds if seconds > 0 and math.isfinite(seconds) else otherwise
