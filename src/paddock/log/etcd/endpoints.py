"""Which member of etcd is asked next.

* One member is used at a time. They are tried in the given order, beginning behind the one that
  failed last, without those that rest. If all rest, it is the one whose rest ends first.
* A member that answers, but cannot serve (it has no leader), rests for 0.1 s: so often all of them
  are asked during an election.
* One that cannot be reached rests for 0.1 s, which doubles up to 1 s as long as it does not answer.
* One that was silent, paused or cut off, costs time whenever it is asked. So it rests for 4 s,
  which doubles up to 16 s, as long as any other member answers: one of those has a leader first.
  If none answers, it rests for 0.1 s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

PAUSE_S_MIN: Final = 0.1
PAUSE_S_MAX: Final = 1.0
# Longer than an election takes, usually.
SILENT_S_MIN: Final = 4.0
SILENT_S_MAX: Final = 16.0


class Failure(Enum):
    """How a member failed."""

    ANSWERED = "it said that it cannot serve"
    UNREACHABLE = "there was no connection"
    SILENT = "there was no answer"


@dataclass(slots=True, eq=False)
class EtcdMember:
    """A member of etcd, as it was found last."""

    endpoint: str
    # Whether it has failed since it last served.
    has_failed: bool = False
    # Whether the last that came of it was an answer, though it be an error.
    is_answering: bool = False
    # When it may be asked again; and when, as long as any other answers.
    again_at: float = 0.0
    rested_at: float = 0.0
    # For how long it rests at the next failure, if it cannot be reached, and if it is silent.
    pause_s: float = PAUSE_S_MIN
    silent_s: float = SILENT_S_MIN


class Endpoints:
    """The members of etcd, in the given order."""

    def __init__(self, endpoints: Sequence[str], clock: Callable[[], float]) -> None:
        self._members = [EtcdMember(endpoint) for endpoint in endpoints]
        self._clock = clock
        # The first one to look at.
        self._first = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member: EtcdMember) -> bool:
        return member in self._members

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.endpoint for member in self._members)

    def next(self) -> EtcdMember:
        """Return the member to ask next."""
        now = self._clock()
        order = self._members[self._first :] + self._members[: self._first]
        # The first of those that do not rest; or else the first to end its rest.
        return min(order, key=lambda member: max(self._free_at(member), now))

    def free(self) -> list[EtcdMember]:
        """Return all that may be asked now, in order; at least the next one."""
        now = self._clock()
        order = self._members[self._first :] + self._members[: self._first]
        return [one for one in order if self._free_at(one) <= now] or [self.next()]

    def wait_s(self) -> float:
        """Return how long the next one rests still."""
        return max(self._free_at(self.next()) - self._clock(), 0.0)

    def have_all_failed(self) -> bool:
        """Return whether none has served since it failed."""
        return all(member.has_failed for member in self._members)

    def has_any_failed(self) -> bool:
        """Return whether any has failed since it last served."""
        return any(member.has_failed for member in self._members)

    def is_any_answering(self) -> bool:
        """Return whether any has answered when it was last asked."""
        return any(member.is_answering for member in self._members)

    def served(self, member: EtcdMember) -> None:
        """Take note that a member does what it should."""
        member.has_failed = False
        self.heard(member)

    def heard(self, member: EtcdMember) -> None:
        """Take note that a member has answered, whatever it was."""
        member.is_answering = True
        member.pause_s, member.silent_s = PAUSE_S_MIN, SILENT_S_MIN

    def failed(self, member: EtcdMember, how: Failure) -> None:
        """Take note that a member was left, and go on behind it."""
        if member not in self._members:
            return
        self._first = (self._members.index(member) + 1) % len(self._members)
        now = self._clock()
        member.has_failed = True
        if how is Failure.ANSWERED:
            self.heard(member)
            member.again_at = member.rested_at = now + PAUSE_S_MIN
            return
        member.is_answering = False
        if how is Failure.SILENT:
            member.again_at, member.rested_at = now + PAUSE_S_MIN, now + member.silent_s
            member.silent_s = min(2 * member.silent_s, SILENT_S_MAX)
        else:
            member.again_at = member.rested_at = now + member.pause_s
            member.pause_s = min(2 * member.pause_s, PAUSE_S_MAX)

    def replace(self, endpoints: Sequence[str]) -> None:
        """Use other members from now on; what is known of those that stay is kept."""
        known = {member.endpoint: member for member in self._members}
        self._members = [known.get(one) or EtcdMember(one) for one in endpoints]
        self._first = 0

    def _free_at(self, member: EtcdMember) -> float:
        return member.rested_at if self.is_any_answering() else member.again_at
