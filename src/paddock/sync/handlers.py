"""Handlers of blocking code: functions that the loop awaits, run on threads.

A handler may block and make calls, and others have to go on meanwhile; so each call of one has a
thread of its own, as many at a time as the loop has under way. Such a thread cannot be stopped: if
the loop gives up the call, the handler goes on, and what it gives or raises is dropped. It is not
kept from ending with the interpreter, either.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, Final

from paddock.errors import InvalidArgumentError
from paddock.sync.callbacks import Wrap
from paddock.sync.portal import Portal
from paddock.sync.threads import Thread

logger: Final = logging.getLogger(__name__)

# How long the end waits for handlers that are under way.
_END_SECONDS_MAX: Final = 5.0


class Handlers:
    """The threads on which handlers run at this moment."""

    def __init__(self, portal: Portal) -> None:
        self._portal = portal
        self._lock = threading.Lock()
        self._threads: set[Thread] = set()

    def relay(self, value: object, wrap: Wrap | None = None) -> Any:
        """Return what the loop may await in the place of a handler; what is none stays as it is."""
        if iscoroutinefunction(value):
            raise InvalidArgumentError(
                f"{value!r} is a coroutine function; blocking code has plain ones for handlers"
            )
        if not callable(value):
            return value
        handler: Callable[..., Any] = value

        def handled(*arguments: Any) -> Awaitable[Any]:
            told = arguments if wrap is None else wrap(*arguments)
            return self._start(handler, told)

        return handled

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
        self,
        handler: Callable[..., Any],
        arguments: tuple[Any, ...],
        outcome: asyncio.Future[Any],
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
