"""The roster of a group: the ephemeral nodes below a path, read again after each change.

Changes are found by comparing each list with the one before; it comes with a watch for the next
change. So only a member that comes and goes between two reads is never seen.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType
from paddock.errors import NoAuthError, NoNodeError
from paddock.protocol.paths import child_path
from paddock.recipes.common.retry import Signal, name_of, request_each, retry

# The owner of a container, and the first byte of the owner of a node with a TTL.
_CONTAINER: Final = -(2**63)
_TTL: Final = -1


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group."""

    name: str
    #: What the member says about itself.
    payload: bytes
    #: The session that it belongs to.
    session_id: int
    #: The zxid of its node: larger for a later member, and new for one that comes again.
    token: int
    #: How often it has changed its payload.
    version: int


class MembershipChange(enum.StrEnum):
    """A change of a member."""

    #: It was a member when we began to read.
    PRESENT = "present"
    JOINED = "joined"
    #: It has another payload.
    UPDATED = "updated"
    #: It has left, or its session is over.
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class MembershipEvent:
    """A change, and the member as it is now; or as it was, if it has left."""

    change: MembershipChange
    member: Member


class Roster(Signal):
    """The members at the last read; it is to be closed."""

    def __init__(self, client: Client, path: str, *, watches: bool = True) -> None:
        super().__init__()
        self._client = client
        self._path = path
        self._watcher = self if watches else None
        self._members: dict[str, Member] = {}
        # Members with an event that we have not read yet.
        self._unread: set[str] = set()

    def __call__(self, event: Event) -> None:
        """Note which member an event is about."""
        if event.type is not EventType.NONE and event.path not in (None, self._path):
            self._unread.add(name_of(event.path or ""))
        super().__call__(event)

    @property
    def members(self) -> list[Member]:
        """All members, in the order in which they came."""
        return sorted(self._members.values(), key=lambda one: one.token)

    async def read(self) -> list[MembershipEvent]:
        """Read again; return the changes since the last read."""
        before = self._members
        self._members = await retry(self._client, self._read)
        return _difference(before, self._members)

    def close(self) -> None:
        """Remove the watches."""
        self._client.forget_watcher(self)

    async def _read(self) -> dict[str, Member]:
        # Later events are for the next read.
        unread, self._unread = self._unread, set()
        try:
            return await self._read_all_but({*self._members} - unread)
        except BaseException:
            self._unread |= unread
            raise

    async def _read_all_but(self, known: set[str]) -> dict[str, Member]:
        names = {*await self._list()}
        found = {name: self._members[name] for name in names & known}
        # A node may be gone by now, as an event will tell; or not be readable.
        answers = await request_each(
            lambda name: self._client.get(child_path(self._path, name), watch=self._watcher),
            sorted(names - {*found}),
            (NoNodeError, NoAuthError),
        )
        for name, answer in answers.items():
            if (member := member_of(name, answer)) is not None:
                found[name] = member
        return found

    async def _list(self) -> list[str]:
        while True:
            try:
                return await self._client.children(self._path, watch=self._watcher)
            except NoNodeError:
                if await self._client.exists(self._path, watch=self._watcher) is None:
                    return []
                # It came in between.


async def read_members(client: Client, path: str) -> list[Member]:
    """Return all members, in the order in which they came."""
    roster = Roster(client, path, watches=False)
    await roster.read()
    return roster.members


def member_of(name: str, node: NodeData) -> Member | None:
    """Return the member that a node stands for; None for another kind of node."""
    data, stat = node
    owner = stat.ephemeral_owner
    if owner in (0, _CONTAINER) or owner >> 56 == _TTL:
        return None
    return Member(name, data, owner, stat.czxid, stat.version)


def _difference(before: dict[str, Member], after: dict[str, Member]) -> list[MembershipEvent]:
    """Return the changes: first who left, then who joined and changed, in order."""
    events = [
        MembershipEvent(MembershipChange.LEFT, old)
        for old in sorted(before.values(), key=lambda one: one.token)
        if old.name not in after or after[old.name].token != old.token
    ]
    for new in sorted(after.values(), key=lambda one: one.token):
        known = before.get(new.name)
        if known is None or known.token != new.token:
            events.append(MembershipEvent(MembershipChange.JOINED, new))
        elif known != new:
            events.append(MembershipEvent(MembershipChange.UPDATED, new))
    return events
