"""Deposes members that were silent for T: T since their last batch came here, and since we joined.

Members take turns by rank, so that usually one does it. The DEPOSE names the member's last batch,
and is void if there is a later one. T is that of the member, if its settings say that it has a
longer lease than we.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from paddock.server.cluster.shared_settings import lease_seconds
from paddock.server.journal.journal import Journal
from paddock.server.replication.lease import Lease
from paddock.state.entry import DEPOSE, Entry
from paddock.state.roster import Member, Roster
from paddock.state.roster_bodies import DeposeRequest
from paddock.storage.events import MEMBER_SILENT

logger: Final = logging.getLogger(__name__)

# How much longer each member of a higher rank waits before it deposes another, in shares of T.
_STAGGER: Final = 1 / 4


class Silence:
    """When each member was last heard of, by the clock of our lease."""

    def __init__(
        self,
        roster: Roster,
        lease: Lease,
        propose: Callable[[Entry], None],
        name: Callable[[int], str],
        journal: Journal,
    ) -> None:
        self._roster = roster
        self._lease = lease
        self._propose = propose
        self._name = name
        self._journal = journal
        self._joined_at = 0.0
        # When each member's last batch came, and when we last proposed to depose one.
        self._heard: dict[bytes, float] = {}
        self._deposing: dict[bytes, float] = {}

    def joined(self) -> None:
        """Begin to count: this server is a member now."""
        self._joined_at = self._lease.now()

    def heard(self, boot: bytes) -> None:
        """Take the news that a batch of a member has come."""
        self._heard[boot] = self._lease.now()

    def gone(self, boot: bytes) -> None:
        """Take the news that a member is one no more."""
        self._heard.pop(boot, None)
        self._deposing.pop(boot, None)

    def seconds(self, boot: bytes) -> float:
        """Return for how long no batch of a member has come: since we joined, at most."""
        return self._lease.now() - max(self._heard.get(boot, 0.0), self._joined_at)

    def look(self, own_number: int) -> None:
        """Propose to depose who was silent for too long."""
        now, seconds = self._lease.now(), self._lease.seconds
        for member in self._roster.members.values():
            if member.number == own_number:
                continue
            silent = self.seconds(member.boot)
            lease = lease_seconds(member.settings, seconds)
            patience = lease * (1 + _STAGGER * self._rank(own_number, member))
            if silent >= patience and now - self._deposing.get(member.boot, 0.0) >= seconds:
                self._deposing[member.boot] = now
                logger.warning(
                    "%s has been silent for %.1f s, and is to be deposed",
                    self._name(member.number),
                    silent,
                    extra={"member": member.number, "seconds": silent},
                )
                self._journal.add(MEMBER_SILENT, member=member.number, seconds=silent)
                body = DeposeRequest(member.boot, member.last_index).encode()
                self._propose(Entry(DEPOSE, body))

    def _rank(self, own_number: int, silent: Member) -> int:
        """Return how many members come before us who may depose this one."""
        return sum(
            one.number < own_number and one is not silent for one in self._roster.members.values()
        )
