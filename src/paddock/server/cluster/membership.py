"""The membership of this server: it joins, renews its lease, leaves, and starts again.

A boot is one incarnation of a server in the log: eight random bytes. The rules:

* A boot begins with a JOIN. The port opens when that is applied and the lease holds. After a JOIN
  that came too late, or was skipped, the next boot replaces the same member: this one was none.
* A batch renews the lease, and so one is proposed each T/4 that states what our clock says
  (`paddock.server.cluster.clocks`); an empty one, if that could not go.
* A member that was silent for T is deposed (`paddock.server.cluster.silence`).
* Without a lease we propose nothing but a JOIN. The boot ends: all connections are aborted, nothing
  of it is sent again, and a new boot joins, which replaces the former one at once.
* A server that stops drains first, then leaves. Its sessions are handed on, and none is expired.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from paddock.log.interface import LogError, SharedLog
from paddock.server.cluster.announcer import Announcer
from paddock.server.cluster.clocks import Clocks
from paddock.server.cluster.disputes import Disputes
from paddock.server.cluster.former_boot import new_boot
from paddock.server.cluster.silence import Silence
from paddock.server.connections.core import Core
from paddock.server.replication.proposals import AwaitedOutcome, Submitter
from paddock.server.replication.shared_records import SharedRecords
from paddock.state.entry import JOIN, LEAVE, RULES, Entry
from paddock.state.roster import (
    CLOCK_STATED,
    DEPOSED,
    JOINED,
    LEFT,
    REFUSED,
    TOO_LATE,
    VOTED,
    Roster,
    RosterChange,
)
from paddock.state.roster_bodies import JoinRequest
from paddock.storage import events

logger: Final = logging.getLogger(__name__)

# In shares of T: how often we look, when we renew our lease at the next look, and how long we wait
# for a sign of life of others before we join.
_LOOK: Final = 1 / 16
_RENEWAL: Final = 1 / 4 - _LOOK
_SIGN_OF_LIFE: Final = 1 / 2

_EVENTS: Final = {
    JOINED: events.MEMBER_JOINED,
    LEFT: events.MEMBER_LEFT,
    DEPOSED: events.MEMBER_DEPOSED,
}


class JoinRefusedError(LogError):
    """The service does not take this server in. Its text says why, and what to do."""


class _JoinVoidError(LogError):
    """A JOIN had no effect, but another one may."""


class Membership:
    """Keeps this server a member of its service. It is a `RosterListener`."""

    def __init__(
        self,
        core: Core,
        records: SharedRecords,
        log: SharedLog,
        random_bytes: Callable[[int], bytes],
        *,
        version: str,
        settings: str = "",
    ) -> None:
        # Called with our boot when it has become a member.
        self.on_admitted: Callable[[bytes], None] | None = None
        # Called when the service does not take us in again.
        self.on_refused: Callable[[LogError], None] | None = None
        # Called regularly while we are a member.
        self.on_look: Callable[[], None] | None = None
        self._core = core
        self._journal = core.replica.journal
        self._records = records
        self._lease = records.lease
        self._log = log
        self._random_bytes = random_bytes
        self._version = version
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        # Our number in the roster; 0 while we are no member.
        self.number = 0
        self._boot = b""
        self._joined: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._return: asyncio.Task[None] | None = None
        self._stopping = False
        # Whether a boot has begun, and is no member with a lease yet.
        self.is_joining = False
        # Why the log is followed no more, if that came while we joined.
        self._failure: LogError | None = None
        # When the last outage began.
        self._lost_at = 0.0
        # Since when the work that one server does for all is ours; None while it is not.
        self._on_duty_since: float | None = None
        self.announcer = Announcer(self.roster, settings)
        self.clocks = Clocks(
            self.roster, self._lease, core.wall_clock_ms, self._propose, self.announcer.name
        )
        self.silence = Silence(
            self.roster, self._lease, self._propose, self.announcer.name, self._journal
        )
        assert core.proposer.pacing is not None
        self.disputes = Disputes(
            self.roster,
            core.proposer.pacing,
            records.digest_at,
            self._propose_soon,
            self.announcer.name,
        )
        records.members = self

    # The life of a boot.

    async def join(self, replaces: bytes = b"") -> None:
        """Join the service; return when we are a member and have a lease. Raises LogError."""
        await self._join(replaces, is_start=True)
        self._look_later()

    async def leave(self) -> bool:
        """Leave the service, and wait until that has come out of the log, or the lease is over.

        Returns whether we have surely left.
        """
        self._stopping = True
        if self._return is not None:
            self._return.cancel()
            await asyncio.wait([self._return])
        has_left = False
        if self.number and not self._lease.is_over():
            departure = AwaitedOutcome()
            self._core.proposer.submit(Entry(LEAVE, b""), departure)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._lease.left()):
                    has_left = await departure.wait() is not None
        # What is in flight may still come out, and has no submitter any more.
        self._records.boot = b""
        self._log.withdraw()
        self._core.proposer.abandon()
        self.stop()
        return has_left

    def stop(self) -> None:
        """Do nothing any more."""
        self._stopping = True
        self._lease.end()
        if self._timer is not None:
            self._timer.cancel()
        if self._return is not None:
            self._return.cancel()

    def is_on_duty(self) -> bool:
        """Return whether the work that one server does for all is ours."""
        duty = self.roster.duty()
        return self.number != 0 and duty is not None and duty.number == self.number

    def duty_seconds(self) -> float:
        """Return for how long that work has been ours; 0 if it is not."""
        since = self._on_duty_since
        return 0.0 if since is None else self._lease.now() - since

    @property
    def roster(self) -> Roster:
        roster = self._core.machine.roster
        assert roster is not None
        return roster

    # What the records tell, in the middle of a batch.

    def heard(self, boot: bytes, index: int) -> None:
        self.silence.heard(boot)

    def changed(self, change: RosterChange) -> None:
        kind, is_ours = change.kind, change.boot == self._boot
        if kind == VOTED:
            assert change.ballot is not None
            self.disputes.voted(change.boot, change.ballot)
            return
        if kind in (JOINED, CLOCK_STATED) and not is_ours:
            self.clocks.stated(change)
        if kind == CLOCK_STATED:
            return
        if kind == JOINED and is_ours:
            self._journal.server = change.number
        if kind in _EVENTS:
            heir = change.heir or None
            self._journal.add(_EVENTS[kind], member=change.number, heir=heir, text=change.reason)
        if kind == JOINED:
            # Its JOIN is its first batch: when that came out of the log, it was no member yet.
            self.silence.heard(change.boot)
        if kind in (LEFT, DEPOSED):
            self._gone(change)
        elif kind == JOINED and is_ours:
            self._admitted(change)
        elif kind == REFUSED and is_ours:
            self._settle(JoinRefusedError(f"the JOIN of this server was refused: {change.reason}"))
        elif kind == TOO_LATE and is_ours:
            self._settle(_JoinVoidError(change.reason))
        self._note_duty()
        self.announcer.tell(change, self.number, is_ours=is_ours)

    def differs(self, boot: bytes, index: int) -> None:
        self.disputes.differs(boot, index)

    def passed_over(self, index: int) -> None:
        self._settle(_JoinVoidError(f"batch {index} is skipped, as it was decided"))

    def _admitted(self, change: RosterChange) -> None:
        self.number = change.number
        self.silence.joined()
        self.clocks.joined()
        self.disputes.joined(change.boot)
        self._core.lifecycle.adopt(change.number)
        if self.on_admitted is not None:
            self.on_admitted(change.boot)
        self._settle(None)

    def _note_duty(self) -> None:
        if not self.is_on_duty():
            self._on_duty_since = None
        elif self._on_duty_since is None:
            self._on_duty_since = self._lease.now()

    def _gone(self, change: RosterChange) -> None:
        self.silence.gone(change.boot)
        self.clocks.gone(change.boot)
        self.disputes.gone(change.boot, change.successor)
        if self.number and change.number == self.number:
            # At once: nothing may be sent any more.
            self._lease.end()
            self.number = 0
            self._loop.call_soon(self.lose, "it was deposed")
        elif self.number and change.heir == self.number:
            self._core.lifecycle.adopt(self.number)

    def _propose(self, entry: Entry) -> None:
        self._core.proposer.submit(entry, Submitter())

    def _propose_soon(self, entry: Entry) -> None:
        """Propose an entry when the batch is through that is being applied."""
        self._loop.call_soon(self._propose, entry)

    def _settle(self, error: LogError | None) -> None:
        joined, self._joined = self._joined, None
        if joined is not None and not joined.done():
            if error is None:
                joined.set_result(None)
            else:
                joined.set_exception(error)

    # Joining.

    async def _join(self, replaces: bytes, *, is_start: bool = False) -> None:
        self.is_joining = True
        try:
            if is_start:
                await self.clocks.check(replaces, self._lease.seconds * _SIGN_OF_LIFE)
                self._check_log()
            while True:
                if await self._begin_boot(replaces):
                    if await self._await_lease():
                        return
                    replaces = self._boot
        finally:
            self.is_joining = False

    async def _await_lease(self) -> bool:
        """Wait until the lease holds: it may have taken longer than that to come here.

        Returns False if we are no member any more. Raises LogError.
        """
        self._check_log()
        self._core.proposer.resume()
        while self.number and self._lease.is_over():
            self._core.proposer.renew()
            await asyncio.sleep(self._lease.seconds * _LOOK)
            self._check_log()
        return self.number != 0

    def _check_log(self) -> None:
        if self._failure is not None:
            raise self._failure

    def fail(self, error: LogError) -> None:
        """End the joining, which raises the error: this state follows the log no more."""
        self._failure = error
        # What is in flight may still come out, and has no submitter any more.
        self._records.boot = b""
        self._log.withdraw()
        self._core.proposer.abandon()
        # Nothing more of this state is told: it may be wrong, or that of another history.
        self._core.is_read_only = False
        self._abort_connections(events.NOT_SERVING)
        self._settle(error)

    async def _begin_boot(self, replaces: bytes) -> bool:
        """Propose a JOIN under a new name, and wait for it. Raises JoinRefusedError.

        Returns False if it was void, so that another one is needed.
        """
        core, records = self._core, self._records
        self._boot = boot = new_boot(self.roster, self._random_bytes)
        self.number = 0
        # The boot before may have ended while we joined: its sessions are with others.
        core.lifecycle.release()
        self._joined = joined = self._loop.create_future()
        self._log.begin(boot)
        self._lease.begin()
        records.boot = boot
        request = JoinRequest(
            core.replica.applied,
            RULES,
            core.config.advertise or "",
            self._settings,
            self._version,
            replaces,
            core.wall_clock_ms(),
        )
        core.proposer.join(Entry(JOIN, request.encode()))
        try:
            await joined
        except _JoinVoidError as error:
            logger.warning("the JOIN of this server had no effect, and is proposed anew: %s", error)
            return False
        return True

    # Looking after leases, ours and those of others.

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(self._lease.seconds * _LOOK, self._look)

    def _look(self) -> None:
        if self._stopping or self._core.replica.is_dead():
            return
        if self.number and not self.is_joining:
            if self._lease.is_over():
                self.lose("its lease is over: no batch of it came out of the log in time")
            else:
                pause = self._lease.seconds * _RENEWAL
                self.clocks.look(pause)
                if self._core.proposer.idle_seconds() >= pause:
                    self._core.proposer.renew()
                self.silence.look(self.number)
                if self.on_look is not None:
                    self.on_look()
        self._look_later()

    # Outages.

    def lose(self, reason: str, *, for_good: bool = False) -> None:
        """End the boot: nothing of it is sent any more, and no client is served.

        Unless for good, a new boot joins as soon as that is possible.
        """
        if self._stopping or self.is_joining:
            return
        core = self._core
        logger.error(
            "%s is out of service, and %d clients are disconnected: %s",
            self.announcer.name(self.number) if self.number else "this server",
            len(core.connections),
            reason,
            extra={"member": self.number, "reason": reason},
        )
        self._journal.add(events.OUT_OF_SERVICE, text=reason, connections=len(core.connections))
        self._lost_at = self._lease.now()
        core.is_open = False
        self._lease.end()
        self.number = 0
        self._records.boot = b""
        self.disputes.suspend()
        self._log.withdraw()
        self._abort_connections(events.NOT_SERVING)
        core.proposer.abandon()
        core.lifecycle.release()
        # Not for good: the state may be wrong, or that of another history.
        core.is_read_only = core.config.read_only_mode_enabled and not for_good
        if not for_good and not core.replica.is_dead():
            self._return = self._loop.create_task(self._come_back())

    async def _come_back(self) -> None:
        core = self._core
        try:
            await self._join(self._boot)
        except LogError as error:
            if self.on_refused is not None:
                self.on_refused(error)
            return
        finally:
            self._return = None
        core.is_read_only = False
        self._abort_connections(events.SERVING_AGAIN)
        core.is_open = not self._stopping
        seconds = self._lease.now() - self._lost_at
        logger.warning(
            "in service again after %.1f s, as %s",
            seconds,
            self.announcer.name(self.number),
            extra={"member": self.number, "seconds": seconds},
        )
        self._journal.add(events.IN_SERVICE, seconds=seconds)

    def _abort_connections(self, reason: str) -> None:
        for connection in list(self._core.connections):
            connection.abort(reason)
