"""Tells the operator what becomes of the members: who came and went, and why.

Each server writes it for itself. What a member told when it joined is remembered, because it is
gone from the roster when its end is to be told.
"""

from __future__ import annotations

import logging
from typing import Final

from paddock.server.cluster.shared_settings import differences
from paddock.state.roster import (
    DEPOSED,
    EPOCH_BEGUN,
    FORGOTTEN,
    JOINED,
    LEFT,
    REFUSED,
    RULES_RAISED,
    TOO_LATE,
    Roster,
    RosterChange,
)

logger: Final = logging.getLogger(__name__)


class Announcer:
    """Writes lines about one roster."""

    def __init__(self, roster: Roster, settings: str) -> None:
        self._roster = roster
        self._settings = settings
        # How each member is called, by its join number.
        self._names: dict[int, str] = {}
        for member in roster.members.values():
            self._names[member.number] = _name(member.number, member.address)

    def name(self, number: int) -> str:
        """Return how a member is called: by its number and, if it has one, its address."""
        return self._names.get(number) or _name(number, "")

    def tell(self, change: RosterChange, own_number: int, *, is_ours: bool) -> None:
        """Write a line about a change; `is_ours` says whether it is about this server."""
        if change.kind == JOINED:
            self._tell_joined(change, is_ours=is_ours)
        elif change.kind == LEFT:
            self._tell_gone(change, own_number, "has left", is_serious=False)
        elif change.kind == DEPOSED:
            self._tell_gone(change, own_number, "was deposed", is_serious=True)
        elif change.kind in (REFUSED, TOO_LATE) and not is_ours:
            # Of ours, the membership says more.
            logger.warning(
                "a server was refused: %s", change.reason, extra={"boot": change.boot.hex()}
            )
        elif change.kind in _DECISIONS:
            logger.warning(
                _DECISIONS[change.kind], self.name(change.number), change.reason, extra=_of(change)
            )

    def _tell_joined(self, change: RosterChange, *, is_ours: bool) -> None:
        member = self._roster.numbered(change.number)
        if member is None:
            return
        name = self._names[change.number] = _name(member.number, member.address)
        logger.info(
            "%s has joined%s: version %s; members: %s",
            name,
            " (this server)" if is_ours else "",
            member.version or "unknown",
            ", ".join(str(one.number) for one in self._roster.members.values()),
            extra={**_of(change), "address": member.address, "version": member.version},
        )
        if is_ours:
            self._tell_settings_of_others(member.number)
            return
        self._tell_differences(name, member.settings, change)

    def _tell_settings_of_others(self, own_number: int) -> None:
        for member in self._roster.members.values():
            if member.number != own_number:
                different = differences(self._settings, member.settings)
                if different:
                    _tell_different(self.name(member.number), different, member.number)

    def _tell_differences(self, name: str, settings: str, change: RosterChange) -> None:
        different = differences(self._settings, settings)
        if different:
            _tell_different(name, different, change.number)

    def _tell_gone(
        self, change: RosterChange, own_number: int, what: str, *, is_serious: bool
    ) -> None:
        name = self._names.pop(change.number, None) or _name(change.number, "")
        heir = ""
        if change.heir:
            heir = "; its sessions are with " + (
                "this server" if change.heir == own_number else self.name(change.heir)
            )
        logger.log(
            logging.WARNING if is_serious else logging.INFO,
            "%s %s%s%s",
            name,
            what,
            f": {change.reason}" if change.reason else "",
            heir,
            extra={**_of(change), "heir": change.heir},
        )


_DECISIONS: Final = {
    RULES_RAISED: "%s has raised the rules of the service: %s",
    EPOCH_BEGUN: "%s has begun a new epoch: %s",
    FORGOTTEN: "%s had a server forgotten, which is not in /zookeeper/config any more: %s",
}


def _tell_different(name: str, different: list[str], number: int) -> None:
    logger.warning(
        "%s has other settings than this server: %s",
        name,
        ", ".join(different),
        extra={"member": number},
    )


def _name(number: int, address: str) -> str:
    return f"member {number} ({address})" if address else f"member {number}"


def _of(change: RosterChange) -> dict[str, object]:
    return {"member": change.number, "boot": change.boot.hex(), "reason": change.reason}
