"""Who is there: the ephemeral nodes below a path, read again whenever something has changed.

Changes are told by comparison, never by events: the new list comes together with the watch for the
next change, and is compared with the old one. So nothing that happens in between is missed; only
who comes and goes again between two looks is never seen.
"""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from typing import Final

from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType
from paddock.errors import NoAuthError, NoNodeError
from paddock.recipes.common.retry import child, until_answered

# What containers have in the place of a session, and in its first byte nodes with a TTL.
_CONTAINER: Final = -(2**63)
_TTL: Final = -1


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody who is there, as everybody can see it."""

    name: str
    #: What the member says about itself.
    payload: bytes
    #: The session that it belongs to.
    session_id: int
    #: It is larger for whoever came later, and another one for whoever comes again.
    token: int
    #: How often it has changed what it says.
    version: int


class MembershipChange(enum.Enum):
    """What happens to a member."""

    #: It was there when we began to look.
    PRESENT = "present"
    JOINED = "joined"
    #: It says something else about itself.
    UPDATED = "updated"
    #: It has left, or its session is over.
    LEFT = "left"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class MembershipEvent:
    """A change, and the member as it is now; of one that has left, as it was."""

    change: MembershipChange
    member: Member


class Roster:
    """Everybody who is there, as it was read last; it is to be closed."""

    def __init__(self, client: Client, path: str, *, watches: bool = True) -> None:
        self._client = client
        self._path = path
        self._watcher = self if watches else None
        self._members: dict[str, Member] = {}
        # Of whom something was told that we have not read yet.
        self._unread: set[str] = set()
        self._is_news = asyncio.Event()

    def __call__(self, event: Event) -> None:
        """Take note of an event: it says where to look."""
        if event.type is not EventType.NONE:
            if event.path is not None and event.path != self._path:
                self._unread.add(event.path[event.path.rfind("/") + 1 :])
        elif not event.state.is_connected and not event.state.is_final:
            return
        self._is_news.set()

    @property
    def members(self) -> list[Member]:
        """Everybody, in the order in which they came."""
        return sorted(self._members.values(), key=lambda one: one.token)

    async def read(self) -> list[MembershipEvent]:
        """Look again; give what has changed since the last time."""
        before = self._members
        self._members = await until_answered(self._client, self._read)
        return _difference(before, self._members)

    async def wait(self) -> None:
        """Wait until it is time to look again."""
        await self._is_news.wait()
        self._is_news.clear()

    def close(self) -> None:
        """Hear of nothing any more."""
        self._client.forget_watcher(self)

    async def _read(self) -> dict[str, Member]:
        # What is told from here on is for the next time.
        unread, self._unread = self._unread, set()
        try:
            return await self._read_all_but({*self._members} - unread)
        except BaseException:
            self._unread |= unread
            raise

    async def _read_all_but(self, known: set[str]) -> dict[str, Member]:
        names = {*await self._list()}
        found = {name: self._members[name] for name in names & known}
        wanted = sorted(names - {*found})
        answers = await asyncio.gather(
            *(self._client.get(child(self._path, name), watch=self._watcher) for name in wanted),
            return_exceptions=True,
        )
        for name, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, NoNodeError | NoAuthError):
                # Gone meanwhile, as we will be told; or none of ours.
                continue
            if isinstance(answer, BaseException):
                raise answer
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
    """Give everybody who is there now, in the order in which they came."""
    roster = Roster(client, path, watches=False)
    await roster.read()
    return roster.members


def member_of(name: str, node: NodeData) -> Member | None:
    """Give the member that a node stands for; None if it is something else."""
    data, stat = node
    owner = stat.ephemeral_owner
    if owner in (0, _CONTAINER) or owner >> 56 == _TTL:
        return None
    return Member(name, data, owner, stat.czxid, stat.version)


def _difference(before: dict[str, Member], after: dict[str, Member]) -> list[MembershipEvent]:
    """Give what must have happened: first who left, then who joined and changed, in order."""
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
