"""Grants: that something is held, for as long as the session surely lives.

    async with Lock(client, "/locks/report") as grant:
        async with grant.guard() as transaction:
            transaction.set("/report", b"done")

No lock can promise that its holder is alone: the service can end a session that a paused process
still believes in. What can be promised is here. The holder is told in time: at the latest when
nothing was answered for a whole session timeout, by our own clock, a grant counts as lost, and the
scope that holds it cancels its body. And what the holder writes can be fenced: `guard` is a
transaction that fails once the grant is over, and for what is kept outside the service there is the
`token`, which is larger for every later grant: whoever remembers the largest token that it has seen
can refuse the work of an older holder.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, TypeAlias

from paddock.client.client import Client
from paddock.client.states import Event, EventType, SessionState
from paddock.client.transaction import Transaction
from paddock.errors import GrantLostError, LockStateError
from paddock.protocol.records import Stat
from paddock.recipes.common.listeners import Listeners
from paddock.recipes.common.retry import Departure


class GrantEvent(enum.Enum):
    """What happens to a grant."""

    ACQUIRED = "acquired"
    #: The connection is lost. It is still held, until the session may be over.
    SUSPENDED = "suspended"
    #: The connection is back in time.
    RESUMED = "resumed"
    RELEASED = "released"
    #: The session is over, or may be, or the node that stands for the grant is gone.
    LOST = "lost"

    def __str__(self) -> str:
        return self.value


# Called at once, in the order in which things happen.
GrantListener: TypeAlias = Callable[[GrantEvent], None]


class Held(Protocol):
    """What a grant stands for: an ephemeral node of ours."""

    client: Client
    path: str
    token: int

    @property
    def guarded(self) -> Sequence[str]:
        """What is there as long as it is held, and what a guarded write therefore checks."""

    def begin_to_leave(self) -> Departure:
        """Begin to give it up, for good; ends when it is gone, or the session is."""


class BaseGrant:
    """What a grant is whatever it stands for: a state, and those who hear how that changes."""

    def __init__(self) -> None:
        self._state = GrantEvent.ACQUIRED
        # Who waits until it is held no more, once there is somebody.
        self._over: asyncio.Event | None = None
        self._listeners: Listeners[GrantEvent] = Listeners()

    @property
    def is_lost(self) -> bool:
        """Whether it has ended before it was released."""
        return self._state is GrantEvent.LOST

    @property
    def is_released(self) -> bool:
        """Whether it has been released."""
        return self._state is GrantEvent.RELEASED

    async def release(self) -> None:
        """Give it up."""
        raise NotImplementedError

    async def wait_over(self) -> None:
        """Wait until it is held no more: released, or lost."""
        if self._is_over:
            return
        if self._over is None:
            self._over = asyncio.Event()
        await self._over.wait()

    def add_listener(self, listener: GrantListener) -> None:
        """Have something called with everything that happens to it from now on.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._listeners.add(listener)

    def remove_listener(self, listener: GrantListener) -> None:
        """Call it no more; that it was never called is fine."""
        self._listeners.remove(listener)

    def lost(self) -> GrantLostError:
        """Give the error that says that it is lost."""
        return GrantLostError(
            f"{self._name}: held no more, or maybe not; what was done under it may be done by"
            " others"
        )

    @property
    def _name(self) -> str:
        """What errors call it."""
        raise NotImplementedError

    @property
    def _is_over(self) -> bool:
        return self._state in (GrantEvent.RELEASED, GrantEvent.LOST)

    def _become(self, event: GrantEvent) -> None:
        if event is self._state:
            return
        self._state = event
        if self._over is not None and self._is_over:
            self._over.set()
        self._listeners.tell(event)


class Grant(BaseGrant):
    """Something that is held, until it is released or lost."""

    def __init__(
        self, held: Held, *, token: int | None = None, watch_after: float | None = None
    ) -> None:
        super().__init__()
        # The node that stands for it.
        self.path: str = held.path
        # The fencing token: it is larger for every later grant of the same thing.
        self.token: int = held.token if token is None else token
        self._held = held
        self._client = held.client
        self._loop = asyncio.get_running_loop()
        self._depth = 1
        self._alarm: asyncio.TimerHandle | None = None
        self._departure: Departure | None = None
        # What we have asked last of the node that stands for it, once it is watched.
        self._asked: asyncio.Future[Stat | None] | None = None
        self._client.add_listener(self._on_state)
        # What is held for a moment only, and is fenced, need not be watched in that moment.
        # Nor, fenced or not, what is released before anything else happens.
        self._delay: asyncio.Handle = (
            self._loop.call_soon(self._watch)
            if watch_after is None
            else self._loop.call_later(watch_after, self._watch)
        )
        self._on_state(self._client.state)

    def __repr__(self) -> str:
        return f"<Grant {self.path} {self._state} token {self.token}>"

    @property
    def is_held(self) -> bool:
        """Whether it is surely held, at this moment."""
        return not self._is_over and self._loop.time() < self._client.session_valid_until

    def check(self) -> None:
        """Raise GrantLostError unless it is surely held at this moment."""
        if self.is_released:
            raise LockStateError(f"{self.path}: it was released")
        if not self.is_held:
            raise self.lost()

    def guard(self) -> Transaction:
        """Begin a transaction that only succeeds while this is held.

            async with grant.guard() as transaction:
                transaction.set("/report", b"done")

        It begins with a check that the grant is held, whose result is None. Raises
        GrantLostError if it is lost already; the commit raises TransactionFailedError if the
        service finds that it is.
        """
        transaction = self._client.transaction()
        self.fence(transaction)
        return transaction

    def fence(self, transaction: Transaction) -> None:
        """Have a transaction succeed only while this is held, beside what else it needs.

        It adds what `guard` begins with. Raises GrantLostError if it is lost already.
        """
        self.check()
        for path in self._held.guarded:
            transaction.check(path)

    async def release(self) -> None:
        """Give it up; when this returns, the next one has it or can have it.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives: then it is others' anyway. If it is cancelled, the node is deleted all the
        same, as soon as a server can be reached. Releasing again, or what was lost, does nothing.
        """
        self._depth -= 1
        if self._depth > 0:
            return
        self._end(GrantEvent.RELEASED)
        if self._departure is not None and not self.is_lost:
            await self._departure.wait()

    def deepen(self) -> None:
        """Have it released only when it was released once more."""
        self._depth += 1

    @property
    def _name(self) -> str:
        return self.path

    def _on_state(self, state: SessionState) -> None:
        if state.is_final or state is SessionState.OVERDUE:
            self._give_up()
        elif state is SessionState.DISCONNECTED or state is SessionState.CONNECTED_READ_ONLY:
            # A server that can only be read from does not vouch for our session.
            self._set_alarm()
            if not self._is_over:
                self._become(GrantEvent.SUSPENDED)
        else:
            self._stop_alarm()
            if self._state is GrantEvent.SUSPENDED:
                self._become(GrantEvent.RESUMED)

    def _give_up(self) -> None:
        """Hold it no more, now that the session may be over, nor wait until it is left."""
        self._end(GrantEvent.LOST)
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
        if self._loop.time() >= self._client.session_valid_until:
            self._give_up()
        else:
            self._set_alarm()

    def _watch(self) -> None:
        self._asked = self._client.exists(self.path, watch=self._on_event)
        self._asked.add_done_callback(self._on_seen)

    def _on_seen(self, seen: asyncio.Future[Stat | None]) -> None:
        # Without an answer, the session is not valid for long, either.
        if not seen.cancelled() and seen.exception() is None:
            stat = seen.result()
            if stat is None or stat.czxid != self._held.token:
                self._end(GrantEvent.LOST)

    def _on_event(self, event: Event) -> None:
        if event.type is EventType.DELETED:
            self._end(GrantEvent.LOST)
        elif event.type is not EventType.NONE and not self._is_over:
            # A watch fires once, and somebody has changed what the node says.
            self._watch()

    def _end(self, event: GrantEvent) -> None:
        if self._is_over:
            return
        self._delay.cancel()
        if self._asked is not None:
            self._client.forget_watcher(self._on_event)
            # Or a watch would be left for a node that never comes back.
            self._asked.cancel()
        self._departure = self._held.begin_to_leave()
        if event is GrantEvent.LOST:
            self._stop_listening()
        else:
            # Who releases it waits until it is left, but not when the session may be over.
            self._departure.on_end = self._stop_listening
        self._become(event)


class GrantScope:
    """A grant, and the task that holds it: when the grant is lost, what the task does is cancelled.

    It is to a grant what `asyncio.timeout` is to a deadline.
    """

    def __init__(self, grant: BaseGrant) -> None:
        self.loop = asyncio.get_running_loop()
        task = asyncio.current_task(self.loop)
        assert task is not None, "a coroutine is always run by a task"
        self.grant = grant
        self.task: asyncio.Task[object] = task
        # How often the task had been cancelled when it came in.
        self._cancelled = task.cancelling()
        self._has_cancelled = False
        self._is_left = False
        grant.add_listener(self._on_event)
        if grant.is_lost:
            self._on_event(GrantEvent.LOST)

    async def leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the grant; raises GrantLostError if that is all there is to say."""
        self._is_left = True
        self.grant.remove_listener(self._on_event)
        is_ours = False
        if self._has_cancelled:
            is_ours = self.task.uncancel() <= self._cancelled
        await self.grant.release()
        if self.grant.is_lost and (error is None or (is_ours and _is_cancelled(error))):
            raise self.grant.lost() from error

    def _on_event(self, event: GrantEvent) -> None:
        if event is GrantEvent.LOST:
            # Not at once: it may be the task itself that has closed the client just now.
            self.loop.call_soon(self._cancel)

    def _cancel(self) -> None:
        if not self._is_left:
            self._has_cancelled = True
            self.task.cancel()


class GrantScopes:
    """The scopes of one lock, each to be left by the task that has entered it."""

    def __init__(self) -> None:
        self._entered: list[GrantScope] = []

    def enter(self, grant: BaseGrant) -> None:
        """Have this task hold a grant."""
        self._entered.append(GrantScope(grant))

    async def leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the scope that this task has entered last, if there is one."""
        task = asyncio.current_task(self._entered[-1].loop) if self._entered else None
        for number in reversed(range(len(self._entered))):
            if self._entered[number].task is task:
                await self._entered.pop(number).leave(kind, error, traceback)
                return
        raise LockStateError("this task has not entered the scope that it leaves")


def _is_cancelled(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError)
