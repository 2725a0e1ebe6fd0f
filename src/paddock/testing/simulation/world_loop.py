"""The loop of a world: what happens next, in virtual time.

It is the one loop that runs. Processes have loops of their own (`process`), which schedule what
they have to do here. What was scheduled first is called first; time moves when nothing is left to
be called now.
"""

from __future__ import annotations

import asyncio
import heapq
import sys
from asyncio.events import _get_running_loop, _set_running_loop
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Final, TypeVar

T = TypeVar("T")

# A world has about 20,000 calls, and none has as many as this.
_CALLS_MAX: Final = 1_000_000
# Nor so many at one moment.
_STILL_CALLS_MAX: Final = 200_000


class Scheduled(asyncio.AbstractEventLoop):
    """A loop on whose behalf something is called."""

    is_dead = False

    def may_run(self, call: Call) -> bool:
        """Return whether something may be called now; if not, it is theirs to keep."""
        return True


class EndlessError(Exception):
    """A world does not come to its end: something happens again and again, perhaps at no time."""


class Call(asyncio.TimerHandle):
    """Something that is to be called. It is one of asyncio's, without what that does for debugging.

    There are hundreds of thousands of them in a world.
    """

    __slots__ = ()

    # 0 if it was not for a moment.
    _when: float

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
        when: float = 0.0,
    ) -> None:
        self._callback = callback
        self._args = args
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._when = when

    def cancel(self) -> None:
        self._cancelled = True
        self._callback, self._args = _nothing, ()


def _nothing() -> None:
    """What is left of a call that was cancelled: it lets go of what it would have called."""


class WorldLoop(Scheduled):
    """The loop of the world. Time moves when no process has anything to do.

    What was scheduled first is called first. It has no sockets, no threads and no real clock.
    """

    def __init__(self) -> None:
        self.now = 0.0
        # What is to be called now, and on whose behalf; and later, in the order of their times.
        self._ready: deque[tuple[Scheduled, Call]] = deque()
        self._timers: list[tuple[float, int, Scheduled, Call]] = []
        self._scheduled = 0
        self._is_closed = False
        # The process that runs an async generator, by the generator's id.
        self._generators: dict[int, Scheduled] = {}

    def schedule(self, loop: Scheduled, call: Call, at: float = 0.0) -> None:
        """Have something called at a moment, or now if that is over."""
        if at <= self.now:
            self._ready.append((loop, call))
        else:
            self._scheduled += 1
            heapq.heappush(self._timers, (at, self._scheduled, loop, call))

    def run_until_complete(self, future: Coroutine[Any, Any, T]) -> T:  # type: ignore[override]
        """Run everything until a coroutine is through."""
        main = self.create_task(future)
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(self._begin_generator, self._end_generator)
        _set_running_loop(self)
        try:
            self._run(main)
        finally:
            _set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)
        return main.result()

    def _run(self, main: asyncio.Task[T]) -> None:
        ready, timers = self._ready, self._timers
        running: Scheduled = self
        # How many calls there were, and how many when time last went on.
        calls = still_since = 0
        while not main.done():
            calls += 1
            if ready:
                loop, call = ready.popleft()
                if calls - still_since > _STILL_CALLS_MAX:
                    raise self.stands_still()
            elif timers:
                self.now, _, loop, call = heapq.heappop(timers)
                still_since = calls
                if calls > _CALLS_MAX:
                    raise EndlessError(f"no end after {calls} calls, at {self.now:.3f} s")
            else:
                raise RuntimeError("everything waits, and for no timer")
            if call._cancelled or (loop is not self and not loop.may_run(call)):
                continue
            if loop is not running:
                running = loop
                _set_running_loop(loop)
            try:
                call._context.run(call._callback, *call._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                loop.call_exception_handler({"message": "in a callback", "exception": error})

    def stands_still(self) -> Exception:
        """Return what is raised when time does not go on: something never waits."""
        return EndlessError(f"time stands still at {self.now:.3f} s")

    # An async generator that is left in its middle is closed by the process that had it.

    def _begin_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        process = _get_running_loop()
        if isinstance(process, Scheduled) and process is not self:
            self._generators[id(generator)] = process

    def _end_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        process = self._generators.pop(id(generator), None)
        if process is not None and not process.is_dead:
            process.call_soon(process.create_task, generator.aclose())

    def time(self) -> float:
        return self.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        call = Call(callback, args, context)
        self._ready.append((self, call))
        return call

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        call = Call(callback, args, context, when)
        self.schedule(self, call, when)
        return call

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Any = None
    ) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        self._is_closed = True
        self._ready.clear()
        self._timers.clear()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Raise what was raised: in the world itself nothing may go wrong."""
        if "exception" in context:
            raise context["exception"]


def new_world() -> WorldLoop:
    """Return the loop of a new world. It has all of a loop that worlds use."""
    return WorldLoop()  # type: ignore[abstract]
