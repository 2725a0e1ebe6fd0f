"""What the generated classes stand on: an asyncio object of theirs, and the way to it.

Nothing here knows a particular class. A `Twin` is a blocking class whose asyncio object does the
work; all twins that come from one client share its `Bridge`.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, Final, Generic, ParamSpec, Protocol, Self, TypeVar, cast

from paddock.errors import ConnectionLostError, UsageError
from paddock.sync import deadline
from paddock.sync.callbacks import Callbacks
from paddock.sync.portal import Portal, open_portal

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
V = TypeVar("V")


class Closable(Protocol):
    """Something that has to be closed."""

    def close(self) -> Awaitable[None]: ...


C = TypeVar("C", bound=Closable)


class Bridge:
    """The way of one client to the loop, and back to its callbacks."""

    def __init__(self) -> None:
        self.portal: Final[Portal] = open_portal(self)
        self.callbacks: Final = Callbacks()
        self.is_over = False
        # What nearly every call of a user goes through, without a step in between.
        self.call = self.portal.call
        self.run = self.portal.run

    def own(self, make: Callable[P, C], *arguments: P.args, **named: P.kwargs) -> C:
        """Make the object that this is the way to; it is closed at exit at the latest."""
        try:
            owned = self.run(make, *arguments, **named)
        except BaseException:
            self.leave()
            raise
        self.portal.close_at_exit(self, owned.close)
        return owned

    def leave(self) -> None:
        """Let go of the loop, when those who are to be called have been."""
        self.is_over = True
        self.callbacks.end()
        self.callbacks.wait()
        self.portal.release(self)

    async def abandon(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close, on the loop, what nobody refers to any more."""
        try:
            await close()
        finally:
            self.is_over = True
            self.callbacks.end()
            self.portal.release(self)


class Twin(Generic[T]):
    """A blocking class; everything it does its asyncio object does."""

    def __init__(self, bridge: Bridge, inner: T) -> None:
        self._bridge = bridge
        self._inner = inner
        # The scopes that each thread has entered and not left.
        self._scopes: dict[int, list[Scope[Any]]] = {}

    @classmethod
    def _of(cls, bridge: Bridge, inner: T) -> Self:
        """Give the twin of an asyncio object that exists, whatever the constructor takes."""
        twin = cls.__new__(cls)
        Twin.__init__(twin, bridge, inner)
        return twin

    def _enter_scope(self, manager: AbstractAsyncContextManager[V, bool | None]) -> V:
        scope = Scope(self._bridge, manager)
        value = scope.__enter__()
        self._scopes.setdefault(threading.get_ident(), []).append(scope)
        return value

    def _leave_scope(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        thread = threading.get_ident()
        scope = self._scopes[thread].pop()
        if not self._scopes[thread]:
            del self._scopes[thread]
        return scope.__exit__(kind, error, traceback)


class Owner(Twin[C]):
    """A twin that everything else comes from, such as a client; it keeps the loop running."""

    def _open(self, enter: Callable[[], Awaitable[object]]) -> Self:
        try:
            self._bridge.call(enter)
        except UsageError:
            # Not from here, or not again; what there is stays as it is.
            raise
        except BaseException:
            self._bridge.leave()
            raise
        return self

    def _close(self) -> None:
        if self._bridge.is_over or self._bridge.portal.is_left_behind:
            # It is closed, or the session is the parent's.
            return
        try:
            self._bridge.portal.conclude(self._inner.close)
        finally:
            self._bridge.leave()

    def __del__(self) -> None:
        # At exit the portal closes what is open, and a forked child has nothing to close.
        if not self._bridge.is_over and self._bridge.portal.is_open:
            text = f"a {type(self).__name__} was not closed"
            warnings.warn(text, ResourceWarning, stacklevel=2, source=self)
            self._bridge.portal.post(self._bridge.abandon, self._inner.close)


class _End:
    """Stands for the end of a stream."""


_END: Final = _End()
# How much of a stream is kept when the loop ends.
_DRAINED_MAX: Final = 10_000


class _Source(Generic[T]):
    """The asyncio side of a stream: what it iterates over, and the step that is under way.

    The items are numbered. An item is there until the next number is asked for, so none is lost
    when whoever waited for it has given up.
    """

    def __init__(self, iterator: AsyncIterator[T]) -> None:
        self._iterator = iterator
        self._step: asyncio.Task[T | _End] | None = None
        # Of the item that the step brings.
        self._number = 0
        # What was left when the loop came to its end, by number.
        self.rest: dict[int, T | _End | Exception] = {}

    async def next(self, number: int) -> T | _End:
        if self._step is None or number > self._number:
            self._number = number
            self._step = asyncio.create_task(self._take())
        step = self._step
        await asyncio.wait([step])
        if step.cancelled():
            return _END
        if step.exception() is not None:
            # Once; after that there is nothing.
            if self._step is not step:
                return _END
            self._step = None
        return step.result()

    async def drain(self) -> None:
        for number in range(self._number, self._number + _DRAINED_MAX):
            try:
                self.rest[number] = await self.next(number)
            except Exception as error:
                self.rest[number] = error
                self.rest[number + 1] = _END
                return
            if self.rest[number] is _END:
                return

    async def finish(self) -> None:
        if self._step is not None:
            self._step.cancel()
            await asyncio.wait([self._step])
        close = getattr(self._iterator, "aclose", None)
        if close is not None:
            await close()

    async def _take(self) -> T | _End:
        try:
            return await anext(self._iterator)
        except StopAsyncIteration:
            return _END


class Stream(Iterator[T]):
    """What comes one after the other, as a plain iterator that waits for the next.

    It ends when it is closed, when its scope is left, or when nobody refers to it any more, as
    after a `break`. A wait that was given up, by `timeout` or Ctrl-C, loses nothing: the next one
    goes on. Threads that share a stream take turns.

        with client.watch("/config") as changes:
            for change in changes:
                print(change.data)
                break
    """

    def __init__(self, bridge: Bridge, iterator: AsyncIterator[T]) -> None:
        self._portal = bridge.portal
        self._source = _Source(iterator)
        self._portal.drain_at_end(self._source)
        # How many items have arrived here.
        self._taken = 0
        self._turn = threading.Lock()
        self._is_over = False

    def __next__(self) -> T:
        seconds = deadline.remaining()
        if not self._turn.acquire(timeout=-1 if seconds is None else max(seconds, 0)):
            raise TimeoutError("next: another thread waits for it")
        try:
            if self._is_over:
                raise StopIteration
            item = self._next()
            if isinstance(item, _End):
                raise StopIteration
            self._taken += 1
        finally:
            self._turn.release()
        return item

    def _next(self) -> T | _End:
        item: T | _End | Exception
        try:
            item = self._portal.call(self._source.next, self._taken)
        except ConnectionLostError:
            if self._taken not in self._source.rest:
                raise
            item = _END
        if item is _END:
            # Or the loop has ended, and this is what was left.
            item = self._source.rest.get(self._taken, _END)
        if isinstance(item, Exception):
            self._taken += 1
            raise item
        return item

    def close(self) -> None:
        """End it; whoever waits for the next finds that there is none."""
        if not self._is_over and self._portal.is_open:
            self._is_over = True
            self._portal.conclude(self._source.finish)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._is_over:
            self._portal.post(self._source.finish)


class _Held(Generic[T]):
    """The asyncio side of a scope: one task that enters it, waits, and leaves it.

    One, because what a scope holds may belong to the task that entered it.
    """

    def __init__(self, manager: AbstractAsyncContextManager[T, bool | None]) -> None:
        self._manager = manager
        self._task: asyncio.Task[bool] | None = None
        self._value: T | None = None
        self._is_entered = asyncio.Event()
        self._is_left = asyncio.Event()
        # What the body raised.
        self._error: BaseException | None = None

    async def enter(self) -> T:
        self._task = task = asyncio.create_task(self._run())
        entered = asyncio.create_task(self._is_entered.wait())
        try:
            await asyncio.wait((entered, task), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.abandon()
            raise
        finally:
            entered.cancel()
        if not self._is_entered.is_set():
            # It failed, and raises here what was wrong.
            task.result()
        return cast(T, self._value)

    async def leave(self, error: BaseException | None) -> bool:
        """Leave it; tell whether it took care of what the body raised."""
        assert self._task is not None, "it was entered"
        self._error = error
        self._is_left.set()
        return await self._task

    async def abandon(self) -> None:
        """Leave it, or enter it no more: nobody knows of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> bool:
        try:
            async with self._manager as self._value:
                self._is_entered.set()
                await self._is_left.wait()
                if self._error is not None:
                    raise self._error
        except BaseException as error:
            if error is self._error:
                # The body has raised it, and raises it again.
                return False
            raise
        return self._error is not None


class Scope(AbstractContextManager[T, bool | None]):
    """A scope that the loop holds while the body runs in this thread."""

    def __init__(
        self, bridge: Bridge, manager: AbstractAsyncContextManager[T, bool | None]
    ) -> None:
        self._portal = bridge.portal
        self._held = _Held(manager)

    def __enter__(self) -> T:
        try:
            return self._portal.call(self._held.enter)
        except BaseException:
            # It may have been entered just when the wait was given up.
            self._portal.post(self._held.abandon)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            return self._portal.conclude(self._held.leave, error)
        finally:
            if error is not None:
                # Without the frames that it passed through on the loop.
                error.__traceback__ = traceback
