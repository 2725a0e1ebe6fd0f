"""Compares the clocks of the members: a server that is far off does not join, others are told of.

Times of nodes and TTLs go by the servers' clocks. A member states what its clock says in its JOIN,
and in a CLOCK each T/4. A statement may come here late, and never early. The rules:

* A statement from our future proves that the other clock is ahead, by so much at least. One from
  our past proves nothing. So a difference is told by the server that is behind, within T/4, and a
  statement that was late is never taken for one.
* Before a server joins, it compares its clock with what the other members have stated last. If all
  are within `SKEW_MS_MAX`, it joins at once. Otherwise its clock is wrong, or others are, or they
  have been dead for long. It waits until they speak again, for T/2: who is alive speaks each T/4.
  If nobody does, there is nobody to differ from. If one agrees, it joins. Otherwise it does not.

The check is for the start of a process. Its clock may jump later; that is what
`paddock.server.replication.service_clock` is for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from paddock.log.interface import LogError
from paddock.server.replication.lease import Lease
from paddock.state.entry import CLOCK, Entry
from paddock.state.roster import CLOCK_STATED, Roster, RosterChange
from paddock.state.roster_bodies import clock_body

logger: Final = logging.getLogger(__name__)

SKEW_MS_TOLD: Final = 1_000
"""How far a clock may be ahead of ours before that gets a line."""
SKEW_MS_MAX: Final = 60_000
"""How far apart clocks may be for a server to join."""


_NEVER: Final = float("-inf")


class ClockError(LogError):
    """The clock of this server is too far off for it to join. Its text says what to do."""


class Clocks:
    """States what our clock says, and compares it with those of the other members."""

    def __init__(
        self,
        roster: Roster,
        lease: Lease,
        wall_clock_ms: Callable[[], int],
        propose: Callable[[Entry], None],
        name: Callable[[int], str],
    ) -> None:
        self._roster = roster
        self._lease = lease
        self._wall_clock_ms = wall_clock_ms
        self._propose = propose
        self._name = name
        # When we last stated what our own says.
        self._stated_at = _NEVER
        # How far each member is known to be ahead of us, as it was told.
        self._told_ms: dict[bytes, int] = {}
        # While we wait for members to speak: how far each that did is ahead, negative if behind.
        self._spoken_ms: dict[bytes, int] | None = None
        self._has_spoken = asyncio.Event()

    def joined(self) -> None:
        """Have our clock stated at the next look: the JOIN may have been on its way for long."""
        self._stated_at = _NEVER

    def look(self, pause: float) -> None:
        """State what our clock says, if we did not for so many seconds."""
        now = self._lease.now()
        if now - self._stated_at >= pause:
            self._stated_at = now
            self._propose(Entry(CLOCK, clock_body(self._wall_clock_ms())))

    def stated(self, change: RosterChange) -> None:
        """Take what another member has stated."""
        if not change.time_ms:
            # A former version, or a command that does not say.
            return
        ahead_ms = change.time_ms - self._wall_clock_ms()
        if self._spoken_ms is None:
            self._tell(change, ahead_ms)
        elif change.kind == CLOCK_STATED:
            # A JOIN may have been on its way for long.
            self._spoken_ms[change.boot] = ahead_ms
            self._has_spoken.set()

    def gone(self, boot: bytes) -> None:
        """Take the news that a member is one no more."""
        self._told_ms.pop(boot, None)
        self._has_spoken.set()

    async def check(self, replaces: bytes, seconds: float) -> None:
        """Return when this server may join. Raises ClockError.

        `replaces` is its own former boot. Members that do not speak for so many seconds are dead.
        """
        now_ms = self._wall_clock_ms()
        if all(
            abs(member.time_ms - now_ms) <= SKEW_MS_MAX
            for member in self._roster.members.values()
            if member.time_ms and member.boot != replaces
        ):
            return
        spoken_ms: dict[bytes, int] = {}
        self._spoken_ms = spoken_ms
        try:
            async with asyncio.timeout(seconds):
                while self._is_awaited(replaces, spoken_ms):
                    self._has_spoken.clear()
                    await self._has_spoken.wait()
        except TimeoutError:
            # Nobody else is alive.
            pass
        finally:
            self._spoken_ms = None
        if spoken_ms and not _has_agreeing(spoken_ms):
            raise ClockError(self._refusal(spoken_ms))

    def _is_awaited(self, replaces: bytes, spoken_ms: dict[bytes, int]) -> bool:
        """Return whether more has to be known before it can be decided."""
        return not _has_agreeing(spoken_ms) and any(
            member.time_ms and member.boot != replaces and member.boot not in spoken_ms
            for member in self._roster.members.values()
        )

    def _refusal(self, spoken_ms: dict[bytes, int]) -> str:
        differences = []
        for boot, ahead_ms in spoken_ms.items():
            member = self._roster.members.get(boot)
            name = "a member that has left" if member is None else self._name(member.number)
            differences.append(
                f"{abs(ahead_ms) / 1000:.1f} s {_direction(-ahead_ms)} that of {name}"
            )
        return (
            f"this server does not join, since its clock is {', '.join(differences)}: more than"
            f" {SKEW_MS_MAX // 1000} s. Set the clocks by the same time server, and start it again"
        )

    def _tell(self, change: RosterChange, ahead_ms: int) -> None:
        """Tell that a member is ahead: once, and again if that gets serious."""
        told_ms = self._told_ms.get(change.boot, 0)
        is_serious = ahead_ms > SKEW_MS_MAX
        if ahead_ms <= (SKEW_MS_TOLD if told_ms == 0 else SKEW_MS_MAX) or told_ms > SKEW_MS_MAX:
            return
        self._told_ms[change.boot] = ahead_ms
        logger.log(
            logging.ERROR if is_serious else logging.WARNING,
            "the clock of %s is %.1f s ahead of the one of this server; set them by the same time"
            " server",
            self._name(change.number),
            ahead_ms / 1000,
            extra={
                "member": change.number,
                "boot": change.boot.hex(),
                "seconds": ahead_ms / 1000,
            },
        )


def _has_agreeing(spoken_ms: dict[bytes, int]) -> bool:
    return any(abs(ahead_ms) <= SKEW_MS_MAX for ahead_ms in spoken_ms.values())


def _direction(ahead_ms: int) -> str:
    return "ahead of" if ahead_ms > 0 else "behind"
