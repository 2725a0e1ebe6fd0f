"""Membership: a group of members, each with an ephemeral node; the session is its heartbeat.

    membership = Membership(client, "/workers")
    mates = await membership.join("worker 7", b"10.0.0.7:80")
    print(mates, membership.is_member)  # [] True
    await membership.leave()

`join` returns the mates that were there before, and calls listeners for every member that comes or
goes from then on: none twice, and none is missed in between. `events` is the same for readers that
do not join. Every reader is woken by every change, but reads only the changed nodes.

A name has one member at a time. If it is taken, `join` waits: for another process as long as it
takes, for an older session of our own until the service has ended that.

* Suspension (the connection is lost): we stay a member, and events come when it is back.
* Expiry, or nothing heard for a session timeout: we are no member any more, or may not be. The
  scope of `joined` cancels its body and raises GrantLostError; events end with
  SessionExpiredError. For others we leave when the service ends our session.
* Cancellation: a cancelled `join` does not join. If a node was created, it is deleted in the
  background for as long as that takes.
* Never promised: that a listed member is alive. It was, at most a session timeout ago.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

from paddock.client.client import Client
from paddock.client.requests.arguments import check_watcher, checked_bytes
from paddock.errors import LockStateError, SessionExpiredError
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.common.background import Recipe
from paddock.recipes.common.listeners import Listeners
from paddock.recipes.common.retry import check_name
from paddock.recipes.groups.presence import Presence
from paddock.recipes.groups.roster import (
    Member,
    MembershipChange,
    MembershipEvent,
    Roster,
    read_members,
)
from paddock.recipes.locks.grant import Grant, GrantEvent
from paddock.recipes.locks.grant_scope import GrantScope

# Called at once, in order.
MemberListener: TypeAlias = Callable[[Member], None]


class Membership(Recipe):
    """The members at a path, of which we may be one.

        membership = Membership(client, "/workers")
        async with membership.joined("worker 7", b"idle") as mates:
            await membership.update(b"busy")
            print([one.payload for one in await membership.members()])  # [b'busy']

    A `Membership` object is one member at most.
    """

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        super().__init__(client, path, acl)
        self._is_joining = False
        self._presence: Presence | None = None
        self._grant: Grant | None = None
        # One update at a time, or a retry could bring back an older one.
        self._updating = asyncio.Lock()

    def __repr__(self) -> str:
        state = "member" if self.is_member else "joining" if self._is_joining else "no member"
        return f"<Membership {self._path} {state}>"

    @property
    def is_member(self) -> bool:
        """Whether we surely are a member, at this moment."""
        return self._grant is not None and self._grant.is_held

    async def join(
        self,
        name: str,
        payload: bytes = b"",
        *,
        on_connect: MemberListener | None = None,
        on_disconnect: MemberListener | None = None,
    ) -> list[Member]:
        """Become a member; return the mates that were there before, in the order they came.

        While we are a member, `on_connect` is called with every member that joins after us, and
        `on_disconnect` with every member that leaves: a listener is called at once, in order. It
        must not block. What it raises goes to the event loop's exception handler.

        Waits as long as another member has the name. Raises SessionExpiredError; and LockStateError
        if we are a member already.
        """
        check_name("name", name)
        checked_bytes("payload", payload)
        told: dict[MembershipChange, Listeners[Member]] = {}
        for key, listener, change in (
            ("on_connect", on_connect, MembershipChange.JOINED),
            ("on_disconnect", on_disconnect, MembershipChange.LEFT),
        ):
            if listener is not None:
                check_watcher(key, listener)
                told[change] = Listeners()
                told[change].add(listener)
        if self._is_joining or (self._grant is not None and not _is_over(self._grant)):
            raise LockStateError(f"{self._path}: we have joined already; make another one")
        self._is_joining = True
        presence = Presence(self._client, child_path(self._path, name), payload, self._acl)
        roster = Roster(self._client, self._path, watches=bool(told))
        try:
            await presence.enter()
            await roster.read()
            grant = Grant(presence)
        except BaseException:
            roster.close()
            # Not awaited: a cancelled task must not wait for the service.
            self._client.start_task(presence.leave())
            raise
        finally:
            self._is_joining = False
        self._presence, self._grant = presence, grant
        if told:
            notifying = self._client.start_task(_notify(roster, presence.token, told))
            # Its last request may set a watch before it ends.
            notifying.add_done_callback(lambda _: roster.close())

            def stop(event: GrantEvent) -> None:
                if _is_over(grant):
                    roster.close()
                    notifying.cancel()

            grant.add_listener(stop)
            stop(GrantEvent.ACQUIRED)
        return [one for one in roster.members if one.token < presence.token]

    @asynccontextmanager
    async def joined(
        self,
        name: str,
        payload: bytes = b"",
        *,
        on_connect: MemberListener | None = None,
        on_disconnect: MemberListener | None = None,
    ) -> AsyncIterator[list[Member]]:
        """Join for the length of a scope, whose value is the mates that were there before.

            async with membership.joined("worker 7") as mates:
                print(membership.is_member)  # True

        When we are a member no more, it cancels its body and raises GrantLostError. See also
        `join`.
        """
        mates = await self.join(name, payload, on_connect=on_connect, on_disconnect=on_disconnect)
        assert self._grant is not None, "we have joined"
        async with GrantScope(self._grant):
            yield mates

    async def leave(self) -> None:
        """Leave the group; when this returns, our node is gone.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives. If it is cancelled, the node is deleted all the same. Raises LockStateError if
        we have not joined, but not if the membership was lost.
        """
        if self._grant is None or self._grant.is_released:
            raise LockStateError(f"{self._path}: we have not joined")
        await self._grant.release()

    async def wait_left(self) -> None:
        """Wait until we have left, or the membership is lost."""
        if self._grant is not None:
            await self._grant.wait_over()

    async def update(self, payload: bytes) -> None:
        """Change our payload.

        Raises GrantLostError if we are a member no more, and LockStateError if we have not joined.
        """
        checked_bytes("payload", payload)
        async with self._updating:
            if self._grant is None or self._presence is None or self._grant.is_released:
                raise LockStateError(f"{self._path}: we have not joined")
            grant = self._grant
            if grant.is_lost or not await self._presence.update(payload):
                raise grant.lost()

    async def members(self) -> list[Member]:
        """Return all members, in the order in which they came."""
        return await read_members(self._client, self._path)

    async def events(self) -> AsyncGenerator[MembershipEvent, None]:
        """Yield all members, as PRESENT, then who joins, leaves, or changes.

            await membership.join("worker 7")
            async for event in membership.events():
                print(event.change, event.member.name)  # present worker 7
                break

        Intermediate changes may be left out, and so may a member that comes and goes at once. But
        JOINED and LEFT alternate for each member. The stream survives lost connections, and raises
        SessionExpiredError when the session is over. It does not need a `join`.
        """
        roster = Roster(self._client, self._path)
        try:
            await roster.read()
            for member in roster.members:
                yield MembershipEvent(MembershipChange.PRESENT, member)
            while True:
                await roster.wait()
                for event in await roster.read():
                    yield event
        finally:
            roster.close()


async def _notify(
    roster: Roster, own: int, told: Mapping[MembershipChange, Listeners[Member]]
) -> None:
    """Call the listeners of a member, by its token, while others come and go."""
    # Members that came after we had joined, and before we read.
    events = [MembershipEvent(MembershipChange.JOINED, one) for one in roster.members]
    events = [event for event in events if event.member.token > own]
    # When the session is over, we are no member, either.
    with suppress(SessionExpiredError):
        while True:
            for event in events:
                if event.member.token != own and event.change in told:
                    told[event.change].notify(event.member)
            await roster.wait()
            events = await roster.read()


def _is_over(grant: Grant) -> bool:
    return grant.is_released or grant.is_lost
