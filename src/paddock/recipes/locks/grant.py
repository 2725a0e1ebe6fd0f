"""Grants: proof that something is held, for as long as the session surely lives.

    async with Lock(client, "/locks/report") as grant:
        async with grant.guard() as transaction:
            transaction.set("/report", b"done")

No lock can promise that its holder is alone: the service can end the session of a process that is
paused and does not know. Two things are promised instead:

* The holder is told in time. When nothing was answered for a whole session timeout, by our own
  clock, the grant counts as lost, and the scope that holds it cancels its body.
* The holder's writes can be fenced. `guard` is a transaction that fails once the grant is over. For
  storage outside the service there is the `token`, which is larger for every later grant: storage
  that remembers the largest token it has seen can refuse an older holder.

Others may ask the holder of a lock to let go: `asked`, `wait_asked` and the event ASKED say so, and
by whom (`paddock.recipes.locks.revocation`).
"""

from __future__ import annotations

import asyncio
import enum
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType, SessionState
from paddock.client.transaction import Transaction
from paddock.errors import ConnectionLostError, GrantLostError, LockStateError
from paddock.layouts import REQUESTS_MAX, read_requests
from paddock.protocol.records import Stat
from paddock.recipes.common.departure import Departure, OwnedNode
from paddock.recipes.common.listeners import Listeners

# A grant that is held longer is watched. For a shorter one that would be a request and an event for
# nothing. If its node is deleted in this time, that is noticed when it is over.
_WATCH_SECONDS: Final = 0.005
# Why a grant was lost.
DELETED: Final = "its node was deleted"
_OVERDUE: Final = "nothing was heard from the service for a session timeout"
_REASONS: Final = {
    SessionState.EXPIRED: "the session has expired",
    SessionState.CLOSED: "the client was closed",
    SessionState.AUTH_FAILED: "authentication failed",
}


class GrantEvent(enum.StrEnum):
    """A change of a grant's state."""

    ACQUIRED = "acquired"
    #: The connection is lost. It is still held, until the session may be over.
    SUSPENDED = "suspended"
    #: The connection is back in time.
    RESUMED = "resumed"
    #: Somebody asks us to release it: `asked` of the grant says who. It is held as before.
    ASKED = "asked"
    RELEASED = "released"
    #: The session is over, or may be, or the node that stands for the grant is gone.
    LOST = "lost"


# Called at once, in order.
GrantListener: TypeAlias = Callable[[GrantEvent], None]


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """A request to release what is held."""

    #: What the asker says about itself, at most 1,000 bytes; nothing if it is Curator's Revoker.
    data: bytes
    #: The session of the asker; 0 if it is Curator's Revoker.
    session_id: int


class BaseGrant(ABC):
    """The state of a grant, whatever is held, and its listeners."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._state = GrantEvent.ACQUIRED
        # Set at the end; created for the first waiter.
        self._over: asyncio.Event | None = None
        # Set with the first request, or at the end; created for the first waiter.
        self._asked_or_over: asyncio.Event | None = None
        self._asked: tuple[ReleaseRequest, ...] = ()
        self._listeners: Listeners[GrantEvent] = Listeners()

    @property
    def is_held(self) -> bool:
        """Whether it is surely held, at this moment."""
        return not self._is_over and self._is_valid()

    @property
    def is_lost(self) -> bool:
        """Whether it has ended before it was released."""
        return self._state is GrantEvent.LOST

    @property
    def is_released(self) -> bool:
        """Whether it has been released."""
        return self._state is GrantEvent.RELEASED

    @property
    def asked(self) -> tuple[ReleaseRequest, ...]:
        """The requests to release it, the oldest first; a hundred are kept."""
        return self._asked

    def check(self) -> None:
        """Raise GrantLostError unless it is surely held at this moment."""
        if self.is_released:
            raise LockStateError(f"{self._name}: it was released")
        if not self.is_held:
            raise self.lost()

    def guard(self) -> Transaction:
        """Begin a transaction that only succeeds while this is held.

            async with grant.guard() as transaction:
                transaction.set("/report", b"done")

        It begins with a check of each node that stands for the grant, whose result is None. Raises
        GrantLostError if it is lost already; the commit raises TransactionFailedError if the
        service finds that it is.
        """
        transaction = self._client.transaction()
        self.fence(transaction)
        return transaction

    def fence(self, transaction: Transaction) -> None:
        """Make a transaction succeed only while this is held, in addition to its own checks.

        It adds the checks that `guard` begins with. Raises GrantLostError if it is lost already.
        """
        self.check()
        self._fence(transaction)

    async def release(self) -> None:
        """Release it; when this returns, the next contender holds it or can.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives. If it is cancelled, the node is deleted all the same, as soon as a server can
        be reached. Releasing again, or after a loss, does nothing.
        """
        leaving = self._release()
        if leaving is not None:
            await leaving

    async def wait_over(self) -> None:
        """Wait until it is released or lost."""
        if not self._is_over:
            self._over = self._over or asyncio.Event()
            await self._over.wait()

    async def wait_asked(self) -> tuple[ReleaseRequest, ...]:
        """Wait until somebody asks us to release it, or it is over; return the requests.

            grant = await Lock(client, "/locks/report").acquire()
            await Lock(client, "/locks/report", data=b"worker 9").ask_to_release()
            asked = await grant.wait_asked()
            print(asked[0].data)  # b'worker 9'
            await grant.release()

        It is up to us whether we release it. The grants of `Lock` and of both sides of a
        `ReadWriteLock` can be asked for.
        """
        if not self._asked and not self._is_over:
            self._asked_or_over = self._asked_or_over or asyncio.Event()
            await self._asked_or_over.wait()
        return self._asked

    def add_listener(self, listener: GrantListener) -> None:
        """Call a function with every later event of this grant.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._listeners.add(listener)

    def remove_listener(self, listener: GrantListener) -> None:
        """Remove a listener, if it is there."""
        self._listeners.remove(listener)

    def lost(self) -> GrantLostError:
        """Return the error that says that it is lost, and why."""
        error = GrantLostError(
            f"{self._name}: held no more: {self._why_lost()}; others may hold it by now"
        )
        error.session_may_be_over = self._is_lost_with_session()
        return error

    @abstractmethod
    def _is_valid(self) -> bool:
        """Return whether it is held if it has not ended."""

    @abstractmethod
    def _fence(self, transaction: Transaction) -> None:
        """Add the checks of `guard`."""

    @abstractmethod
    def _release(self) -> Awaitable[None] | None:
        """Begin to release it; return what there is to wait for."""

    @abstractmethod
    def _why_lost(self) -> str:
        """Return the reason, for errors."""

    @abstractmethod
    def _is_lost_with_session(self) -> bool:
        """Return whether the reason is that the session is over, or may be."""

    @property
    @abstractmethod
    def _name(self) -> str:
        """The node, for errors."""

    @property
    def _is_over(self) -> bool:
        return self._state in (GrantEvent.RELEASED, GrantEvent.LOST)

    def _become(self, event: GrantEvent) -> None:
        if event is self._state:
            return
        self._state = event
        if self._is_over:
            for waited_for in (self._over, self._asked_or_over):
                if waited_for is not None:
                    waited_for.set()
        self._listeners.notify(event)

    def _become_asked(self, asked: Sequence[ReleaseRequest]) -> None:
        """Publish all requests so far."""
        self._asked = tuple(asked[-REQUESTS_MAX:])
        if self._asked_or_over is not None:
            self._asked_or_over.set()
        self._listeners.notify(GrantEvent.ASKED)


class Grant(BaseGrant):
    """Proof that something is held, until it is released or lost."""

    def __init__(
        self, held: OwnedNode, *, token: int | None = None, watch_after: float = _WATCH_SECONDS
    ) -> None:
        super().__init__(held.client)
        # The node that stands for it.
        self.path: str = held.path
        # The fencing token: it is larger for every later grant of the same thing.
        self.token: int = held.token if token is None else token
        self._held = held
        self._why = ""
        self._is_given_up = False
        self._loop = asyncio.get_running_loop()
        self._depth = 1
        self._alarm: asyncio.TimerHandle | None = None
        self._departure: Departure | None = None
        # Our last request for the node, once it is watched.
        self._looked: asyncio.Future[Stat | None] | None = None
        # The version of the node's data that we know; our own is the first.
        self._version = 0
        # The marks of the requests in these data.
        self._marks: set[str] = set()
        # Who is told of the time that it is held, if the client has an observer.
        self._hold = None if held.wait is None else held.wait.granted(self.path, self.token)
        self._client.add_listener(self._on_state)
        context = None if self._hold is None else self._hold.context
        self._delay = self._loop.call_later(watch_after, self._watch, context=context)
        self._on_state(self._client.state)

    def __repr__(self) -> str:
        return f"<Grant {self.path} {self._state} token {self.token}>"

    def deepen(self) -> None:
        """Require one more release."""
        self._depth += 1

    def _is_valid(self) -> bool:
        return self._loop.time() < self._client.session_valid_until

    def _fence(self, transaction: Transaction) -> None:
        for path in self._held.guarded:
            transaction.check(path)

    def _release(self) -> Awaitable[None] | None:
        self._depth -= 1
        if self._depth > 0:
            return None
        self._end(GrantEvent.RELEASED)
        return None if self._departure is None or self.is_lost else self._departure.wait()

    def _why_lost(self) -> str:
        # Without a reason of ours the service has refused a write, since the node is gone.
        return self._why or (DELETED if self._is_valid() else _OVERDUE)

    def _is_lost_with_session(self) -> bool:
        return self._is_given_up or not Grant._is_valid(self)

    @property
    def _name(self) -> str:
        return self.path

    def _on_state(self, state: SessionState) -> None:
        if state.is_final or state is SessionState.OVERDUE:
            self._give_up(_REASONS.get(state, _OVERDUE))
        elif state is SessionState.DISCONNECTED or state is SessionState.CONNECTED_READ_ONLY:
            # A read-only server does not vouch for our session.
            self._set_alarm()
            if not self._is_over:
                self._become(GrantEvent.SUSPENDED)
        else:
            self._stop_alarm()
            if self._state is GrantEvent.SUSPENDED:
                self._become(GrantEvent.RESUMED)

    def _give_up(self, why: str) -> None:
        """End it, now that the session may be over, and a release that is under way."""
        self._is_given_up |= not self._is_over
        self._lose(why)
        self._stop_listening()
        if self._departure is not None:
            self._departure.end()

    def _stop_listening(self) -> None:
        self._client.remove_listener(self._on_state)
        self._stop_alarm()

    def _set_alarm(self) -> None:
        self._stop_alarm()
        self._alarm = self._loop.call_at(self._client.session_valid_until, self._look)

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _look(self) -> None:
        if Grant._is_valid(self):
            self._set_alarm()
        else:
            self._give_up(_OVERDUE)

    def _watch(self) -> None:
        self._looked = self._client.exists(self.path, watch=self._on_event)
        self._looked.add_done_callback(self._on_seen)

    def _on_seen(self, seen: asyncio.Future[Stat | None]) -> None:
        if not self._is_answered(seen):
            return
        stat = seen.result()
        if stat is None or stat.czxid != self._held.token:
            self._lose(DELETED)
        elif self._held.is_revocable and stat.version != self._version:
            self._version = stat.version
            self._client.get(self.path).add_done_callback(self._on_data)

    def _on_data(self, read: asyncio.Future[NodeData]) -> None:
        if not self._is_answered(read):
            return
        # A change after this read has an event of its own.
        requests = read_requests(read.result().data).requests
        new = [one for one in requests if one.mark not in self._marks]
        self._marks = {one.mark for one in requests}
        if new:
            added = [ReleaseRequest(one.data, one.session_id) for one in new]
            self._become_asked([*self._asked, *added])

    def _is_answered(self, read: asyncio.Future[Any]) -> bool:
        """Return whether a read of the node was answered, and still matters."""
        if read.cancelled():
            return False
        error = read.exception()
        if isinstance(error, ConnectionLostError) and not self._is_over:
            # The client has lost many connections in a row, and the session lives.
            self._version = -1
            self._watch()
        return error is None and not self._is_over

    def _on_event(self, event: Event) -> None:
        if event.type is EventType.DELETED:
            self._lose(DELETED)
        elif event.type is not EventType.NONE and not self._is_over:
            # A watch fires once, and the node's data were changed.
            self._watch()

    def _lose(self, why: str) -> None:
        if not self._is_over:
            self._why = why
            self._end(GrantEvent.LOST)

    def _end(self, event: GrantEvent) -> None:
        if self._is_over:
            return
        self._delay.cancel()
        if self._looked is not None:
            self._client.forget_watcher(self._on_event)
            # Or a watch would be left for a node that never comes back.
            self._looked.cancel()
        self._departure = self._begin_to_leave(event)
        if event is GrantEvent.LOST:
            self._stop_listening()
        else:
            # A release waits for the departure, but not when the session may be over.
            self._departure.on_end.append(lambda _: self._stop_listening())
        self._become(event)

    def _begin_to_leave(self, event: GrantEvent) -> Departure:
        if self._hold is None:
            return self._held.begin_to_leave()
        with self._hold.end(self._why if event is GrantEvent.LOST else None) as on_end:
            departure = self._held.begin_to_leave()
        departure.on_end.append(on_end)
        return departure

    def _become(self, event: GrantEvent) -> None:
        if self._hold is not None and event in (GrantEvent.SUSPENDED, GrantEvent.RESUMED):
            self._hold.change(event)
        super()._become(event)
