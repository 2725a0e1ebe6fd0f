"""The portal: an event loop in a background thread, shared by all blocking clients of a process.

The loop runs from the first client until the last one is closed, since a session needs heartbeats
while its user computes. A call runs on the loop, and the calling thread waits for its result:

* A wait ends at its deadline, by Ctrl-C, or when the client is closed. The call is then cancelled
  on the loop, and the client stays usable.
* A thread with an event loop of its own gets a UsageError: the call would block that loop.
* So does a forked child, which does not have the parent's thread; it opens clients of its own.
* At exit of the interpreter, clients that are still open are closed, if that is quick.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import logging
import os
import threading
import weakref
from asyncio import _get_running_loop as running_loop
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, ParamSpec, TypeVar

from paddock._loops import new_event_loop
from paddock.errors import ConnectionLostError, SessionExpiredError, UsageError
from paddock.sync import deadline
from paddock.sync.threads import Thread, check_loop

logger: Final = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# How long a thread waits before it checks for signals.
_TURN_SECONDS: Final = 0.2
# How long the interpreter's exit waits for sessions to be closed, and in all.
_CLOSE_SECONDS_MAX: Final = 2.0
_EXIT_SECONDS_MAX: Final = 5.0
# How long the end of a portal waits for streams, which usually end with their client.
_DRAIN_SECONDS_MAX: Final = 1.0


class _Call(Generic[T]):
    """A call on the loop, and the lock that its thread waits for."""

    __slots__ = ("error", "future", "is_given_up", "result", "settled", "_arguments", "_function")

    def __init__(
        self,
        function: Callable[..., Awaitable[T]],
        arguments: tuple[tuple[Any, ...], dict[str, Any]],
    ) -> None:
        self._function = function
        self._arguments = arguments
        self.future: asyncio.Future[T] | None = None
        self.result: T | None = None
        self.error: BaseException | None = None
        # Whether its thread waits no more.
        self.is_given_up = False
        # Released when there is a result or an error.
        self.settled = threading.Lock()
        self.settled.acquire()

    @property
    def name(self) -> str:
        return str(getattr(self._function, "__name__", "call"))

    @property
    def path(self) -> str | None:
        """The path, which is the first argument of operations."""
        first = next(iter(self._arguments[0]), self._arguments[1].get("path"))
        return first if isinstance(first, str) and first.startswith("/") else None

    @property
    def subject(self) -> str:
        """The call in an error message."""
        return self.name if self.path is None else f"{self.name} {self.path}"

    def begin(self) -> asyncio.Future[T] | None:
        """Start it; return its future if it is in progress then."""
        positional, named = self._arguments
        try:
            if self.is_given_up:
                raise asyncio.CancelledError
            begun = self._function(*positional, **named)
            # Most operations of a client are futures, and need no task.
            future = begun if isinstance(begun, asyncio.Future) else asyncio.ensure_future(begun)
        except BaseException as error:
            self.error = error
            self.settled.release()
            return None
        if future.done():
            self.settle(future)
            return None
        self.future = future
        return future

    def settle(self, future: asyncio.Future[T]) -> None:
        """Keep the result or error, and wake the thread."""
        # It holds the error, whose traceback will hold us.
        self.future = None
        if future.cancelled():
            self.error = cancellation(future)
        else:
            self.error = future.exception()
            if self.error is None:
                self.result = future.result()
        self.settled.release()

    def wait(self, seconds: float | None) -> bool:
        """Wait until it is settled, or for some seconds; return whether it is.

        In turns: a signal that comes just before a wait is handled only after it.
        """
        while seconds is None or seconds > _TURN_SECONDS:
            if self.settled.acquire(timeout=_TURN_SECONDS):
                return True
            if seconds is not None:
                seconds -= _TURN_SECONDS
        return self.settled.acquire(timeout=max(seconds, 0))

    def give_up(self) -> None:
        """Cancel it, on the loop."""
        self.is_given_up = True
        if self.future is not None:
            self.future.cancel()

    def outcome(self) -> T:
        """Return the result, or raise the error without keeping a reference to it."""
        error, self.error = self.error, None
        if error is None:
            return self.result  # type: ignore[return-value]
        try:
            raise error
        finally:
            # The error's traceback holds this frame.
            del error


class Portal:
    """A thread with an event loop, which runs while something holds it open."""

    def __init__(self) -> None:
        # Reentrant: the garbage collector may finish a stream at any moment.
        self._lock = threading.RLock()
        # What holds it open, and how each is closed at exit.
        self._holders: dict[object, Callable[[], Awaitable[object]] | None] = {}
        # What streams read from: it is drained before the end.
        self._sources: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_over = False
        self._is_exiting = False
        # Whether this is a forked child's copy, without the thread.
        self.is_left_behind = False
        # Calls in progress, and tasks such as those of scopes; only for the loop's thread.
        self._under_way: set[_Call[Any]] = set()
        self._kept: set[asyncio.Task[Any]] = set()
        self._loop = new_event_loop()
        check_loop()
        self._end: asyncio.Future[None] = self._loop.create_future()
        self._thread = Thread(self._run, "paddock")
        self._thread.start()

    @property
    def is_open(self) -> bool:
        """Whether calls are accepted."""
        return not (self._is_over or self.is_left_behind)

    def hold(self, holder: object) -> bool:
        """Keep it open; return False if it has ended."""
        with self._lock:
            if not self._is_over:
                self._holders[holder] = None
            return not self._is_over

    def close_at_exit(self, holder: object, close: Callable[[], Awaitable[object]]) -> None:
        with self._lock:
            self._holders[holder] = close

    def drain_at_end(self, source: Any) -> None:
        with self._lock:
            self._sources.add(source)

    def release(self, holder: object) -> None:
        """Hold it no more; without a holder it ends."""
        with self._lock:
            self._holders.pop(holder, None)
            if self._holders:
                return
        self.end()

    def exit(self) -> None:
        """End because the interpreter exits.

        Threads that still wait end with the interpreter, and get no error about a closed client.
        """
        self._is_exiting = True
        self.end(_EXIT_SECONDS_MAX)

    def end(self, seconds_max: float | None = None) -> None:
        """Close what still holds it, cancel what is in progress, and end the thread."""
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self._loop.call_soon_threadsafe(self._end.set_result, None)
        if not self._thread.is_current:
            self._thread.join(seconds_max)

    def call(self, function: Callable[P, Awaitable[T]], *arguments: P.args, **named: P.kwargs) -> T:
        """Call a function on the loop, and wait for its result."""
        call = _Call(function, (arguments, named))
        seconds = deadline.remaining()
        if seconds is not None and seconds <= 0:
            self._check()
            raise TimeoutError(f"{call.subject}: the time is up")
        return self._ask(call, seconds)

    def conclude(
        self, function: Callable[P, Awaitable[T]], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """Do as `call`, also after the deadline: what was begun has to be concluded."""
        seconds = deadline.remaining()
        is_late = seconds is not None and seconds <= 0
        return self._ask(_Call(function, (arguments, named)), None if is_late else seconds)

    def run(self, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Call a plain function on the loop, and return its result."""
        return self.call(_at_once(function), *arguments, **named)

    def post(
        self, function: Callable[P, Awaitable[T]], *arguments: P.args, **named: P.kwargs
    ) -> None:
        """Call a function on the loop without waiting; from any thread, at any time."""
        if not self.is_left_behind:
            with self._lock:
                if not self._is_over:
                    call = _Call(_logged(function), (arguments, named))
                    self._loop.call_soon_threadsafe(self._begin, call)

    def _ask(self, call: _Call[T], seconds: float | None) -> T:
        self._check()
        try:
            with self._lock:
                is_over = self._is_over
                if not is_over:
                    self._loop.call_soon_threadsafe(self._begin, call)
            # The main thread outlives the exit; all others end with it, and are not told.
            is_told = not self._is_exiting or threading.current_thread() is threading.main_thread()
            if is_over and is_told:
                # All clients are closed, and their loop with them.
                raise SessionExpiredError(call.name, call.path, "the client is closed")
            if not call.wait(seconds):
                # It may clean up after the cancellation; or it is done by now, and has a result.
                self._give_up(call)
                call.wait(None)
                if isinstance(call.error, asyncio.CancelledError):
                    whom = "".join(f", {one}" for one in getattr(call.error, "__notes__", ()))
                    raise TimeoutError(f"{call.subject}: no answer in time{whom}")
        except BaseException:
            # Ctrl-C above all.
            self._give_up(call)
            raise
        if isinstance(call.error, asyncio.CancelledError):
            # Not by us: the client was closed by another thread.
            raise ConnectionLostError(call.name, call.path)
        return call.outcome()

    def _check(self) -> None:
        if running_loop() is not None:
            raise UsageError(
                "a blocking call would block the event loop that runs in this thread; use"
                " paddock.connect here, also for the recipes of paddock.recipes, or make the call"
                " in a thread of its own"
            )
        if self.is_left_behind:
            raise UsageError(
                "this client was opened before fork() and belongs to the parent process; "
                "open one in the child"
            )

    def _give_up(self, call: _Call[Any]) -> None:
        with self._lock:
            if not self._is_over:
                self._loop.call_soon_threadsafe(call.give_up)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Own a task until it has ended; the end of the portal cancels it.

        Only for the loop's thread. The result need not be retrieved.
        """
        self._kept.add(task)
        task.add_done_callback(self._let_go)

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self._kept.discard(task)
        if not task.cancelled():
            # Retrieved, or the loop would log it.
            task.exception()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        await self._end
        # All earlier calls have begun by now.
        with self._lock:
            closes = [close for close in self._holders.values() if close is not None]
        await _within(_CLOSE_SECONDS_MAX, closes)
        # The garbage collector may remove a stream, in any thread.
        with self._lock:
            drains = [] if self._is_exiting else [one.drain for one in self._sources]
        await _within(_DRAIN_SECONDS_MAX, drains)
        left = [call.future for call in self._under_way if call.future is not None]
        left += self._kept
        for future in left:
            future.cancel()
        if left:
            await asyncio.wait(left)

    def _begin(self, call: _Call[Any]) -> None:
        future = call.begin()
        if future is not None:
            self._under_way.add(call)
            future.add_done_callback(lambda future: self._finish(call, future))

    def _finish(self, call: _Call[Any], future: asyncio.Future[Any]) -> None:
        self._under_way.discard(call)
        if not self._is_exiting:
            call.settle(future)
        elif not future.cancelled():
            # Retrieved, or the loop would log it.
            future.exception()


def cancellation(future: asyncio.Future[Any]) -> asyncio.CancelledError:
    """Return the error of a cancelled future; its notes say what it waited for."""
    try:
        future.exception()
    except asyncio.CancelledError as error:
        return error
    raise AssertionError("it was cancelled")


async def _within(seconds: float, functions: Sequence[Callable[[], Awaitable[object]]]) -> None:
    """Call functions, and wait for all of them, at most some seconds."""
    begun = [asyncio.ensure_future(function()) for function in functions]
    if begun:
        await asyncio.wait(begun, timeout=seconds)


def _at_once(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Return a function that does the same, and returns a future that is done."""

    @functools.wraps(function)
    def at_once(*arguments: P.args, **named: P.kwargs) -> Awaitable[T]:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        done.set_result(function(*arguments, **named))
        return done

    return at_once


def _logged(function: Callable[P, Awaitable[object]]) -> Callable[P, Awaitable[None]]:
    """Return a function that does the same and logs its errors."""

    async def logged(*arguments: P.args, **named: P.kwargs) -> None:
        try:
            await function(*arguments, **named)
        except Exception:
            logger.debug("%r failed; it was not waited for", function, exc_info=True)

    return logged


# The portal of this process, if there is one; and all of them, also ended ones.
_portal: Portal | None = None
_portal_lock = threading.Lock()
_portals: weakref.WeakSet[Portal] = weakref.WeakSet()


def open_portal(holder: object) -> Portal:
    """Return the portal of this process, kept open until the holder releases it."""
    global _portal
    if running_loop() is not None:
        raise UsageError(
            "paddock.sync is for blocking code, and an event loop runs in this thread; "
            "use paddock.connect here"
        )
    with _portal_lock:
        if _portal is None or not _portal.hold(holder):
            _portal = Portal()
            _portals.add(_portal)
            _portal.hold(holder)
        return _portal


def _forked() -> None:
    """Forget the parent's portals, in a forked child."""
    global _portal, _portal_lock
    for portal in _portals:
        portal.is_left_behind = True
    _portal = None
    _portal_lock = threading.Lock()


def _exit() -> None:
    if _portal is not None:
        _portal.exit()


os.register_at_fork(after_in_child=_forked)
atexit.register(_exit)
