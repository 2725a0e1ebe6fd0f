"""Elections: one leader at a time, and when it goes, the next in line leads.

    async with Election(client, "/election", data=b"worker 7").lead() as leadership:
        token = leadership.token  # larger than that of every leader before

Candidates stand in a line, as contenders for a lock, and the first one leads. Each watches only the
one before it. Guaranteed is the service's order: a leadership begins after the node of every
earlier leader has gone, its token is larger, and a write under `leadership.guard()` fails from the
moment the next one leads.

There are two styles. The scope of `lead` waits to be elected, leads, and steps down at its end.
`start` stands in the line in the background, over any number of leaderships, until `stop`.

* Suspension (the connection is lost): a leader is told and goes on, a candidate keeps its place.
* Expiry, or nothing heard for a session timeout: the leadership is lost. A scope cancels its body
  and raises GrantLostError. In the background we stand in the line again if the session lives after
  all, or if only our node was deleted; if it is over, the election has failed and says so.
* Cancellation: a cancelled candidate or leader leaves the line. Its node is deleted in the
  background for as long as that takes, so it never blocks the others.
* Never promised: that a leader is alone by the clock. A process may be paused while its session
  ends, and not know it. Fencing tokens protect storage outside the service from its late writes
  (`paddock.recipes.locks.grant` says how).

The nodes are those of Curator's LeaderLatch, with `data` as the id of its participant, so both can
stand in one line. With `layout="kazoo"` they are those of kazoo's Election, which is its Lock.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self, TypeAlias

from paddock.client.client import Client
from paddock.errors import LockStateError, SessionExpiredError
from paddock.layouts import KAZOO_LOCK, LATCH
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.common.background import Recipe
from paddock.recipes.common.listeners import Feed, Listeners
from paddock.recipes.common.retry import wait_in_session
from paddock.recipes.locks.grant import Grant, GrantEvent
from paddock.recipes.locks.grant_scope import GrantScope
from paddock.recipes.locks.line import Contender, LayoutName, Line

# The part of a candidate's name before the number, as in Curator's latch and in kazoo's election.
_KINDS: Final[dict[LayoutName, str]] = {"curator": LATCH, "kazoo": KAZOO_LOCK}


class ElectionEvent(enum.StrEnum):
    """A step of a candidate. Every event after ELECTED means that it leads no more."""

    START = "start"
    #: It is about to stand at the end of the line.
    OFFER = "offer"
    #: It stands in the line, and reads who is before it.
    DETERMINING = "determining"
    #: It waits for the candidate before it.
    READY = "ready"
    ELECTED = "elected"
    #: The session is over, a scope has lost its leadership, the ACL does not permit it, or others
    #: stand there in another layout.
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def is_final(self) -> bool:
        """Whether it is the last event, until the next start."""
        return self in (ElectionEvent.FAILED, ElectionEvent.STOPPED)


# Called at once, in order.
ElectionListener: TypeAlias = Callable[[ElectionEvent], None]


class Election(Recipe):
    """One candidate, which leads at most as long as the client's session lives.

        election = Election(client, "/election", data=b"worker 7")
        await election.start()
        leadership = await election.wait_leader()
        print(election.is_leader, leadership.is_held)  # True True
        await election.stop()

    `async with election` starts it, and stops it at the end. Others read `data` in `candidates`.
    `layout` is for a path at which programs with kazoo's Election stand, too; then `data` is UTF-8.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
        layout: LayoutName = "curator",
    ) -> None:
        super().__init__(client, path, acl)
        self._kind = _KINDS.get(layout, LATCH)
        self._line = Line(client, path, [self._kind], data, acl, layout=layout)
        self._state: ElectionEvent | None = None
        # Whether we wait or lead, in a scope or in the background.
        self._is_standing = False
        self._is_stopped = False
        self._background: asyncio.Task[None] | None = None
        # The deletion of our node, in the background.
        self._leaving: asyncio.Task[None] | None = None
        self._leadership: Grant | None = None
        self._failure: Exception | None = None
        self._listeners = Listeners[ElectionEvent]()
        self._feed = Feed[ElectionEvent]()

    def __repr__(self) -> str:
        return f"<Election {self._path} {self._state or 'not started'}>"

    @property
    def is_leader(self) -> bool:
        """Whether we surely lead, at this moment."""
        return self._leadership is not None and self._leadership.is_held

    # In a scope.

    @asynccontextmanager
    async def lead(self) -> AsyncIterator[Grant]:
        """Wait to be elected, and lead; the end of the scope steps down.

            async with election.lead() as leadership:
                print(leadership.is_held)  # True

        When the leadership is lost, it cancels its body and raises GrantLostError. Raises
        SessionExpiredError; and LockStateError if it stands in the line already, or if our node was
        deleted while we waited.
        """
        self._begin()
        try:
            try:
                leadership = await self._be_elected()
            except Exception as error:
                self._fail(error)
                raise
            async with GrantScope(leadership):
                leadership.add_listener(self._on_leadership)
                if leadership.is_lost:
                    self._fail(leadership.lost())
                yield leadership
        finally:
            self._is_standing = False
            if self._state is not ElectionEvent.FAILED:
                self._become(ElectionEvent.STOPPED)

    # In the background.

    async def start(self) -> None:
        """Stand in the line from now on; returns when we do.

        After a leadership is lost, or stepped down from, we stand at the end of the line again.
        Raises SessionExpiredError, NoAuthError and the like; and LockStateError if we stand there
        already, or have stopped. If it is cancelled, the election is stopped.
        """
        self._begin()
        self._background = background = self._client.start_task(self._stand())
        background.add_done_callback(self._on_end)
        try:
            async for event in self.events():
                if event is ElectionEvent.DETERMINING:
                    return
        except asyncio.CancelledError:
            self._is_stopped = True
            background.cancel()
            raise
        raise self._ended()

    async def wait_leader(self) -> Grant:
        """Wait until we lead; return the leadership.

        It may be called before `start`. Raises the error that the election has failed with, and
        LockStateError if it was stopped.
        """
        async for event in self.events():
            leadership = self._leadership
            if event is ElectionEvent.ELECTED and leadership is not None and leadership.is_held:
                return leadership
        raise self._ended()

    async def stop(self) -> None:
        """Step down, or leave the line, for good; when this returns, our node is gone.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives. If it is cancelled, the node is deleted all the same. Stopping again does
        nothing. Raises LockStateError while a scope of `lead` is open.
        """
        background = self._background
        if self._is_standing and background is None:
            raise LockStateError(f"{self._path}: a scope waits or leads; leave it")
        self._is_stopped = True
        if background is not None:
            background.cancel()
            await asyncio.wait([background])
        elif self._state is not ElectionEvent.STOPPED:
            self._become(ElectionEvent.STOPPED)
        if self._leaving is not None:
            await wait_in_session(self._client, self._leaving)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # In both styles.

    async def step_down(self) -> None:
        """Give up the leadership; when this returns, the next candidate leads or can.

        In the background we stand at the end of the line then. The body of a scope goes on, but
        leads no more. Raises LockStateError if we do not lead, but not if the leadership was lost.
        """
        leadership = self._leadership
        if leadership is None or leadership.is_released:
            raise LockStateError(f"{self._path}: we do not lead")
        await leadership.release()

    async def leader(self) -> Contender | None:
        """Return the leader, or None if there is none."""
        while first := (await self._line.entries())[:1]:
            if found := await self._line.contenders(first):
                return found[0]
        return None

    async def candidates(self) -> list[Contender]:
        """Return all candidates, in order: the leader first."""
        return await self._line.contenders()

    def events(self) -> AsyncIterator[ElectionEvent]:
        """Return a stream of events: the last one, then every later one, until FAILED or STOPPED.

            await election.start()
            async for event in election.events():
                print(event)  # ...elected
                if event is ElectionEvent.ELECTED:
                    break

        For a slow reader, the last thousand are kept.
        """
        return self._feed.stream(lambda event: event.is_final)

    def add_listener(self, listener: ElectionListener) -> None:
        """Call a function with every later event.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._listeners.add(listener)

    def remove_listener(self, listener: ElectionListener) -> None:
        """Remove a listener, if it is there."""
        self._listeners.remove(listener)

    def _begin(self) -> None:
        if self._is_stopped:
            raise LockStateError(f"{self._path}: it was stopped; make another one")
        if self._is_standing:
            raise LockStateError(f"{self._path}: it stands in the line already; make another one")
        self._is_standing = True
        self._failure = None
        self._become(ElectionEvent.START)

    async def _be_elected(self) -> Grant:
        self._become(ElectionEvent.OFFER)
        place = self._line.new_place(self._kind)
        try:
            await place.enter()
            while True:
                self._become(ElectionEvent.DETERMINING)
                ahead = await place.look()
                if ahead is None:
                    break
                self._become(ElectionEvent.READY)
                await place.wait_gone(ahead)
        except BaseException as error:
            if place.blocked_by:
                error.add_note(f"waiting for {place.blocked_by}")
            # Not awaited: a cancelled task must not wait for the service.
            self._leaving = self._client.start_task(place.leave())
            raise
        self._leadership = leadership = Grant(place)
        if not leadership.is_lost:
            self._become(ElectionEvent.ELECTED)
        return leadership

    async def _stand(self) -> None:
        while True:
            try:
                leadership = await self._be_elected()
            except LockStateError:
                # Our node was deleted, but the session lives.
                continue
            try:
                await leadership.wait_over()
            except BaseException:
                self._leaving = self._client.start_task(leadership.release())
                raise

    def _on_end(self, background: asyncio.Task[Any]) -> None:
        """Publish how the background task ended."""
        self._background = None
        self._is_standing = False
        error = None if background.cancelled() else background.exception()
        if self._is_stopped:
            self._become(ElectionEvent.STOPPED)
        else:
            # Only the client cancels it, when it is closed.
            closed = SessionExpiredError("elect", self._path)
            self._fail(error if isinstance(error, Exception) else closed)

    def _on_leadership(self, event: GrantEvent) -> None:
        """Publish at once that a scope has lost its leadership."""
        if event is GrantEvent.LOST and self._leadership is not None:
            self._fail(self._leadership.lost())

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._become(ElectionEvent.FAILED)

    def _ended(self) -> Exception:
        """Return the error to raise after the end."""
        return self._failure or LockStateError(f"{self._path}: it was stopped")

    def _become(self, event: ElectionEvent) -> None:
        self._state = event
        self._feed.publish(event)
        self._listeners.notify(event)
