"""Membership: who is there, by one ephemeral node for each member; the session is its heartbeat.

    membership = Membership(client, "/workers")
    mates = await membership.join("worker 7", b"10.0.0.7:80")
    print(mates, membership.is_member)  # [] True
    await membership.leave()

Whoever joins learns of the mates who were there before, and may be told of everybody who comes and
goes from then on: nobody is told twice, and between the two nobody is missed. The same for those
who only look is `events`. Everybody hears of every change, since that is what it is for, but then
reads only what has changed.

A name has one member at a time. Who finds it taken waits: for another process as long as it takes,
for an older session of our own until the service has ended that.

* Suspension (the connection is lost): we stay a member, and events come when it is back.
* Expiry, or nothing heard for a session timeout: we are no member any more, or may not be. The
  scope of `joined` cancels its body and raises GrantLostError; events end with
  SessionExpiredError. For others we leave when the service ends our session.
* Cancellation: whoever is cancelled while joining does not join. If a node was created, it is
  deleted in the background for as long as that takes.
* Never promised: that a member who is listed is alive. It was, at most a session timeout ago.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

from paddock.client.client import Client
from paddock.client.requests.arguments import check_watcher, checked_acl, checked_path
from paddock.errors import InvalidArgumentError, LockStateError, SessionExpiredError
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.common.listeners import Listeners
from paddock.recipes.common.retry import child
from paddock.recipes.groups.presence import Presence
from paddock.recipes.groups.roster import (
    Member,
    MembershipChange,
    MembershipEvent,
    Roster,
    read_members,
)
from paddock.recipes.locks.grant import Grant, GrantEvent, GrantScope

# Called at once, in the order in which members come and go.
MemberListener: TypeAlias = Callable[[Member], None]


class Membership:
    """Those who are at a path, of whom we may be one.

        membership = Membership(client, "/workers")
        async with membership.joined("worker 7", b"idle") as mates:
            await membership.update(b"busy")
            print([one.payload for one in await membership.members()])  # [b'busy']

    It is one member at most: whoever wants to be two makes two.
    """

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        checked_path(path)
        checked_acl(acl)
        self._client = client
        self._path = path
        self._acl = acl
        self._is_joining = False
        self._presence: Presence | None = None
        self._grant: Grant | None = None
        # One update after the other, or a lost reply could bring back an older one.
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
        """Become a member; give the mates who were there before, in the order in which they came.

        While we are a member, `on_connect` is called with everybody who joins after us, and
        `on_disconnect` with everybody who leaves: a listener is called at once, in order. It must
        not block. What it raises goes to the event loop's exception handler.

        Waits as long as another member has the name. Raises SessionExpiredError; and LockStateError
        if we are a member already.
        """
        node = _checked_node(self._path, name)
        _check_payload(payload)
        connected, disconnected = Listeners[Member](), Listeners[Member]()
        for key, listener, listeners in (
            ("on_connect", on_connect, connected),
            ("on_disconnect", on_disconnect, disconnected),
        ):
            if listener is not None:
                check_watcher(key, listener)
                listeners.add(listener)
        if self._is_joining or (self._grant is not None and not _is_over(self._grant)):
            raise LockStateError(f"{self._path}: we have joined already; make another one")
        self._is_joining = True
        presence = Presence(self._client, node, payload, self._acl)
        is_told = on_connect is not None or on_disconnect is not None
        roster = Roster(self._client, self._path, watches=is_told)
        try:
            await presence.enter()
            await roster.read()
            grant = Grant(presence)
        except BaseException:
            roster.close()
            # Not awaited: whoever is cancelled must not wait for the service.
            self._client.start_task(presence.leave())
            raise
        finally:
            self._is_joining = False
        self._presence, self._grant = presence, grant
        mates = [one for one in roster.members if one.token < presence.token]
        if is_told:
            telling = _Telling(roster, presence.token, connected, disconnected)
            telling.start(self._client, grant)
        return mates

    @asynccontextmanager
    async def joined(
        self,
        name: str,
        payload: bytes = b"",
        *,
        on_connect: MemberListener | None = None,
        on_disconnect: MemberListener | None = None,
    ) -> AsyncIterator[list[Member]]:
        """Be a member in a scope, which has the mates who were there before.

            async with membership.joined("worker 7") as mates:
                print(membership.is_member)  # True

        When we are a member no more, it cancels its body and raises GrantLostError. For the rest
        see `join`.
        """
        mates = await self.join(name, payload, on_connect=on_connect, on_disconnect=on_disconnect)
        assert self._grant is not None, "we have joined"
        scope = GrantScope(self._grant)
        try:
            yield mates
        except BaseException as error:
            await scope.leave(type(error), error, error.__traceback__)
            raise
        await scope.leave(None, None, None)

    async def leave(self) -> None:
        """Be a member no more; when this returns, nobody sees us any more.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives. If it is cancelled, the node is deleted all the same. Raises LockStateError if
        we have not joined; that the membership was lost meanwhile is fine.
        """
        if self._grant is None or self._grant.is_released:
            raise LockStateError(f"{self._path}: we have not joined")
        await self._grant.release()

    async def wait_left(self) -> None:
        """Wait until we are a member no more: we have left, or the membership is lost."""
        if self._grant is not None:
            await self._grant.wait_over()

    async def update(self, payload: bytes) -> None:
        """Say something else about us to everybody.

        Raises GrantLostError if we are a member no more, and LockStateError if we have not joined.
        """
        _check_payload(payload)
        async with self._updating:
            if self._grant is None or self._presence is None or self._grant.is_released:
                raise LockStateError(f"{self._path}: we have not joined")
            grant = self._grant
            if grant.is_lost or not await self._presence.update(payload):
                raise grant.lost()

    async def members(self) -> list[Member]:
        """Give everybody who is there now, in the order in which they came."""
        return await read_members(self._client, self._path)

    def events(self) -> AsyncGenerator[MembershipEvent, None]:
        """Give everybody who is there, as PRESENT, and then who joins, leaves, or changes.

            await membership.join("worker 7")
            async for event in membership.events():
                print(event.change, event.member.name)  # present worker 7
                break

        Changes in quick succession may come as one: of who comes and goes again at once nothing may
        be heard. But who was told of as there is there until it is told to have left, and whoever
        left and came again has done both. The stream goes on over lost connections, and raises
        SessionExpiredError when the session is over. Members need not be joined to look.
        """
        return _events(self._client, self._path)


class _Telling:
    """Tells one member of all the others who come and go."""

    def __init__(
        self,
        roster: Roster,
        own: int,
        connected: Listeners[Member],
        disconnected: Listeners[Member],
    ) -> None:
        self._roster = roster
        self._own = own
        self._connected = connected
        self._disconnected = disconnected
        self._task: asyncio.Task[None] | None = None

    def start(self, client: Client, grant: Grant) -> None:
        """Tell in the background, as long as we are a member."""
        self._task = client.start_task(self._run())
        # What it has asked for may be answered before it ends.
        self._task.add_done_callback(lambda _: self._roster.close())
        grant.add_listener(self._on_grant)
        if _is_over(grant):
            self._stop()

    def _on_grant(self, event: GrantEvent) -> None:
        if event in (GrantEvent.RELEASED, GrantEvent.LOST):
            self._stop()

    def _stop(self) -> None:
        self._roster.close()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        # Who came when we had joined, and had not looked yet.
        for member in self._roster.members:
            if member.token > self._own:
                self._connected.tell(member)
        try:
            while True:
                await self._roster.wait()
                for event in await self._roster.read():
                    self._tell_of(event)
        except SessionExpiredError:
            # So are we, and nothing more is known of the others.
            pass

    def _tell_of(self, event: MembershipEvent) -> None:
        if event.member.token == self._own:
            return
        if event.change is MembershipChange.JOINED:
            self._connected.tell(event.member)
        elif event.change is MembershipChange.LEFT:
            self._disconnected.tell(event.member)


async def _events(client: Client, path: str) -> AsyncGenerator[MembershipEvent, None]:
    roster = Roster(client, path)
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


def _is_over(grant: Grant) -> bool:
    return grant.is_released or grant.is_lost


def _checked_node(path: str, name: object) -> str:
    if not isinstance(name, str) or not name or "/" in name:
        raise InvalidArgumentError(f"name: expected text without a slash, not {name!r}")
    node = child(path, name)
    try:
        checked_path(node)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"name: {error}") from None
    return node


def _check_payload(payload: object) -> None:
    if not isinstance(payload, bytes):
        hint = ": encode it" if isinstance(payload, str) else ""
        raise InvalidArgumentError(f"payload: expected bytes, not {type(payload).__name__}{hint}")
