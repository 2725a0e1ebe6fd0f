"""Holds writers back a little while a member cannot keep up.

A member that applies slower than others write falls behind until its lease ends. The rules:

* The lag of a member is fixed when its batch arrives: by how many records its state was behind.
  Silence is no lag: a member that was not heard of for T/2 is not waited for.
* Above `LAG_MAX` every server leaves a pause between two of its batches, the longer the further
  the member is behind. Batches grow meanwhile, so that less is lost than the pause says.
* It ends when all members are behind by less than half of that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from paddock.server.replication.pacing import LAG_MAX, Pacing
from paddock.state.roster import Member, Roster

logger: Final = logging.getLogger(__name__)

# The pause between two batches for each thousand records of lag, and at most, in seconds.
_PAUSE_A_THOUSAND: Final = 0.002
PAUSE_MAX: Final = 0.1


class Laggards:
    """Decides how long the pause between two batches is."""

    def __init__(
        self,
        roster: Roster,
        pacing: Pacing,
        lease_seconds: float,
        silent_seconds: Callable[[bytes], float],
        name: Callable[[int], str],
    ) -> None:
        self._roster = roster
        self._pacing = pacing
        self._lease_seconds = lease_seconds
        self._silent_seconds = silent_seconds
        self._name = name

    def look(self) -> None:
        """Bring the pause up to date."""
        slowest: Member | None = None
        for member in self._roster.members.values():
            is_heard = self._silent_seconds(member.boot) < self._lease_seconds / 2
            if is_heard and (slowest is None or member.lag > slowest.lag):
                slowest = member
        lag = 0 if slowest is None else slowest.lag
        was_held = self._pacing.hold_seconds > 0
        if lag > (LAG_MAX // 2 if was_held else LAG_MAX):
            assert slowest is not None
            self._pacing.hold_seconds = min(_PAUSE_A_THOUSAND * lag / 1000, PAUSE_MAX)
            if not was_held:
                logger.warning(
                    "writers are held back: %s is %d batches behind",
                    self._name(slowest.number),
                    lag,
                    extra={"member": slowest.number, "lag": lag},
                )
        elif was_held:
            self._pacing.hold_seconds = 0.0
            logger.info("writers are not held back any more: all members keep up")
