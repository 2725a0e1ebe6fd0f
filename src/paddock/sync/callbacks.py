"""Callbacks and handlers of blocking code, called on threads of their own.

The event loop must not wait for them, and they may make blocking calls, which wait for the event
loop. Callbacks return nothing: each client has one thread for them, from the first one on, which
calls them one after the other, in the order of the events. One that fails is logged, and the next
is called. The queue has no bound: an event may not be dropped, and the loop may not wait. Slow code
uses a stream instead, which merges changes in quick succession.

Handlers return a result that the loop awaits: each call has its own daemon thread. It cannot be
stopped: if the loop cancels the call, the handler goes on, and its result or error is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

from paddock.errors import InvalidArgumentError
from paddock.sync.portal import Portal
from paddock.sync.threads import Thread, new_queue

logger: Final = logging.getLogger(__name__)

Callback: TypeAlias = Callable[..., object]
# Returns the arguments of a callback as blocking code expects them.
Wrap: TypeAlias = Callable[..., tuple[Any, ...]]

# How long the end waits for callbacks, and for handlers, that are under way.
_END_SECONDS_MAX: Final = 5.0


class Callbacks:
    """The thread that runs callbacks, from the first one on."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callback, tuple[Any, ...]] | None] = new_queue()
        self._thread: Thread | None = None
        self._is_over = False

    def relay(self, value: object, wrap: Wrap | None = None) -> Any:
        """Return what the loop may call in the place of a callback, with wrapped arguments.

        Anything else is returned as it is, also a coroutine function: the client refuses it.
        """
        if not callable(value) or iscoroutinefunction(value):
            return value
        return Relay(self, value, wrap)

    def put(self, callback: Callback, arguments: tuple[Any, ...]) -> None:
        """Queue a callback. Only the loop's thread does this, so events keep their order."""
        if self._is_over:
            return
        if self._thread is None:
            self._thread = Thread(self._run, "paddock-callbacks")
            self._thread.start()
        self._queue.put((callback, arguments))

    def end(self) -> None:
        """Run the queued callbacks, and none after them."""
        self._is_over = True
        self._queue.put(None)

    def wait(self) -> None:
        """Wait until the queued callbacks have run, but not for ever."""
        thread = self._thread
        if thread is not None and not thread.is_current:
            thread.join(_END_SECONDS_MAX)

    def _run(self) -> None:
        while (due := self._queue.get()) is not None:
            callback, arguments = due
            try:
                callback(*arguments)
            except BaseException:
                # It must not end the calls of others.
                logger.exception("the callback %r failed", callback)
            # Nothing is kept alive until the next event.
            del due, callback, arguments


class Relay:
    """Stands for a callback on the loop's thread; two for the same callback are the same."""

    __slots__ = ("_callback", "_callbacks", "_wrap")

    def __init__(self, callbacks: Callbacks, callback: Callback, wrap: Wrap | None = None) -> None:
        self._callbacks = callbacks
        self._callback = callback
        self._wrap = wrap

    def __call__(self, *arguments: Any) -> None:
        told = arguments if self._wrap is None else self._wrap(*arguments)
        self._callbacks.put(self._callback, told)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relay) and self._callback == other._callback

    def __hash__(self) -> int:
        return hash(self._callback)

    def __repr__(self) -> str:
        return repr(self._callback)


class Handlers:
    """The threads on which handlers run at this moment."""

    def __init__(self, portal: Portal) -> None:
        self._portal = portal
        self._lock = threading.Lock()
        self._threads: set[Thread] = set()

    def relay(self, value: object, wrap: Wrap | None = None) -> Any:
        """Return what the loop may await in the place of a handler; or the value, if it is none."""
        if iscoroutinefunction(value):
            raise InvalidArgumentError(
                f"{value!r} is a coroutine function; blocking code has plain ones for handlers"
            )
        if not callable(value):
            return value
        return lambda *told: self._start(value, told if wrap is None else wrap(*told))

    def wait(self) -> None:
        """Wait until those that are under way have ended, but not for ever."""
        until = time.monotonic() + _END_SECONDS_MAX
        with self._lock:
            threads = [thread for thread in self._threads if not thread.is_current]
        for thread in threads:
            thread.join(max(until - time.monotonic(), 0))

    def _start(self, handler: Callable[..., Any], arguments: tuple[Any, ...]) -> Awaitable[Any]:
        """Run a handler on a new thread; only the loop's thread does this."""
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        thread = Thread(self._run, "paddock-handler", handler, arguments, outcome)
        with self._lock:
            self._threads.add(thread)
        thread.start()
        return outcome

    def _run(
        self, handler: Callable[..., Any], arguments: tuple[Any, ...], outcome: asyncio.Future[Any]
    ) -> None:
        result, failure = None, None
        try:
            result = handler(*arguments)
        except BaseException as error:
            failure = _as_outcome(handler, error)
        finally:
            with self._lock:
                self._threads = {one for one in self._threads if not one.is_current}
        self._portal.post(_settle, outcome, result, failure)


def _as_outcome(handler: Callable[..., Any], error: BaseException) -> Exception:
    """Return an error that a task may raise; SystemExit, for one, would end the loop."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    strange = RuntimeError(f"the handler {handler!r} ended with {error!r}")
    strange.__cause__ = error
    return strange


async def _settle(outcome: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
    if outcome.done():
        # The loop has given it up.
        return
    if failure is None:
        outcome.set_result(result)
    else:
        outcome.set_exception(failure)
