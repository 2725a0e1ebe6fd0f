"""A simulated process: code that runs on an event loop of its own within the world's.

All processes share the world's loop, which decides what happens next. A process sees a loop that is
its own: with a clock that may run fast or slow, and which can be paused or killed from outside at
any moment between two callbacks. The rules:

* Whatever its code schedules runs as the process, and finds the process's loop as the running one.
* A paused process runs nothing. What was to run meanwhile runs when it goes on: in its order, or
  timers last. Its clock goes on, and the network keeps what comes for it.
* A killed process never runs again: no callback, no `finally`, no destructor of a task.
* What would run in a thread of an executor runs at once. For other threads see `threads`.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from asyncio.events import _get_running_loop, _set_running_loop
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Final, Protocol, TypeVar, TypeVarTuple

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_DELAY_MIN: Final = 1e-6
# A world has about 20,000 calls, and none has as many as this.
_CALLS_MAX: Final = 1_000_000


class Thread(Protocol):
    """A thread of a process."""

    def kill(self) -> None: ...


class Network(Protocol):
    """The network that processes share."""

    processes: list[ProcessLoop]

    def bind(
        self,
        process: ProcessLoop,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
    ) -> asyncio.AbstractServer: ...

    async def connect(
        self,
        process: ProcessLoop,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]: ...


class EndlessError(Exception):
    """A world does not come to its end: something happens again and again, perhaps at no time."""


class _Call(asyncio.TimerHandle):
    """Something that is to be called. It is one of asyncio's, without what that does for debugging.

    There are hundreds of thousands of them in a world.
    """

    __slots__ = ()

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None
    ) -> None:
        self._callback = callback
        self._args = args
        self._context = copy_context() if context is None else context
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None


class WorldLoop(asyncio.AbstractEventLoop):
    """The loop of the world. Time moves when no process has anything to do.

    What was scheduled first is called first. It has no sockets, no threads and no real clock.
    """

    def __init__(self) -> None:
        self.now = 0.0
        # What is to be called now, and on whose behalf; and later, in the order of their times.
        self._ready: deque[tuple[WorldLoop | ProcessLoop, _Call]] = deque()
        self._timers: list[tuple[float, int, WorldLoop | ProcessLoop, _Call]] = []
        self._scheduled = 0
        self._is_closed = False

    def schedule(self, loop: WorldLoop | ProcessLoop, call: _Call, at: float = 0.0) -> None:
        """Have something called at a moment, or now if that is over."""
        if at <= self.now:
            self._ready.append((loop, call))
        else:
            self._scheduled += 1
            heapq.heappush(self._timers, (at, self._scheduled, loop, call))

    def run_until_complete(self, future: Coroutine[Any, Any, T]) -> T:  # type: ignore[override]
        """Run everything until a coroutine is through."""
        main = self.create_task(future)
        ready, timers = self._ready, self._timers
        running: WorldLoop | ProcessLoop = self
        _set_running_loop(self)
        try:
            for _ in range(_CALLS_MAX):
                if ready:
                    loop, call = ready.popleft()
                elif timers:
                    self.now, _, loop, call = heapq.heappop(timers)
                else:
                    raise RuntimeError("everything waits, and for no timer")
                if call._cancelled:
                    continue
                if loop is not self and not loop.may_run(call):  # type: ignore[union-attr]
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
                if main.done():
                    return main.result()
            raise EndlessError(f"no end after {_CALLS_MAX} calls, at {self.now:.3f} s")
        finally:
            _set_running_loop(None)

    def time(self) -> float:
        return self.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        call = _Call(callback, args, context)
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
        call = _Call(callback, args, context)
        call._when = when
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


class ProcessLoop(asyncio.AbstractEventLoop):
    """The event loop of one process: `rate` is how fast its clock runs, `start` where it began."""

    def __init__(
        self,
        world: WorldLoop,
        network: Network,
        name: str,
        host: str,
        *,
        rate: float = 1.0,
        start: float = 0.0,
    ) -> None:
        self.name = name
        self.host = host
        self.is_dead = False
        self.is_paused = False
        # What its callbacks raised.
        self.failures: list[dict[str, Any]] = []
        self._world = world
        self._network = network
        self._rate = rate
        self._start = start
        # What its clock has shown: it never goes back.
        self._floor = start
        # What was to run while it is paused.
        self._stalled: list[_Call] = []
        # Kept, so that nothing of a dead process is ever collected while the world runs.
        self._tasks: list[asyncio.Task[Any]] = []
        self.threads: list[Thread] = []
        self._debug = False

    # What the world does to it.

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        stalled, self._stalled = self._stalled, []
        if int(self._world.now * 1e6) % 2:
            # Some loops look at their sockets first, and then at their timers.
            stalled.sort(key=lambda call: call._when > 0)
        for call in stalled:
            self._world.schedule(self, call)

    def kill(self) -> None:
        self.is_dead = True
        self._stalled.clear()

    def bury(self) -> None:
        """Let go of everything that the process had, at the end of its world."""
        self.kill()
        for thread in self.threads:
            thread.kill()
        with self.enter():
            for task in self._tasks:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    with contextlib.suppress(BaseException):
                        task.get_coro().close()
        self._tasks.clear()

    def run_soon(self, callback: Callable[[*Arguments], object], *args: *Arguments) -> None:
        """Have something run as this process; the network calls this."""
        self.call_soon(callback, *args)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a task of this process, from outside."""
        return self.create_task(work)

    def enter(self) -> _Inside:
        """Return a scope in which this process's loop is the running one."""
        return _Inside(self)

    # Time.

    def time(self) -> float:
        now = self._start + self._world.now * self._rate
        return max(self._floor, now)

    def true_time(self) -> float:
        return self._world.now

    # Callbacks.

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        call = _Call(callback, args, context)
        call._when = 0.0
        if not self.is_dead:
            self._world.schedule(self, call)
        return call

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if delay > 0:
            # A real clock goes on between a look at it and the timer: ours would stand still.
            delay = max(delay, _DELAY_MIN)
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        call = _Call(callback, args, context)
        call._when = when
        if not self.is_dead:
            self._world.schedule(self, call, (when - self._start) / self._rate)
        return call

    def may_run(self, call: _Call) -> bool:
        """Return whether something may be called now; while the process is paused it is kept."""
        if self.is_dead:
            return False
        if self.is_paused:
            self._stalled.append(call)
            return False
        if call._when > self._floor:
            # By rounding, it may be early by a nanosecond.
            self._floor = max(self._floor, min(call._when, self.time() + _DELAY_MIN))
        return True

    # Tasks.

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Any = None
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def run_in_executor(
        self, executor: Any, func: Callable[[*Arguments], T], *args: *Arguments
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    # The network.

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        start_serving: bool = True,
        **_: Any,
    ) -> asyncio.AbstractServer:
        server = self._network.bind(self, protocol_factory, self.host, port or 0)
        if start_serving:
            await server.start_serving()
        return server

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        **_: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        return await self._network.connect(self, protocol_factory, host, port)

    # The rest of a loop.

    def get_debug(self) -> bool:
        return self._debug

    def set_debug(self, enabled: bool) -> None:
        self._debug = enabled

    def is_running(self) -> bool:
        return not self.is_dead

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.is_dead:
            self.failures.append(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def get_exception_handler(self) -> None:
        return None


def new_process(
    world: WorldLoop,
    network: Network,
    name: str,
    host: str,
    *,
    rate: float = 1.0,
) -> ProcessLoop:
    """Return the loop of a new process. It has all of a loop that our code uses."""
    process = ProcessLoop(world, network, name, host, rate=rate)  # type: ignore[abstract]
    network.processes.append(process)
    return process


class _Inside:
    """A scope in which a process's loop is the running one."""

    __slots__ = ("_before", "_loop")

    def __init__(self, loop: ProcessLoop) -> None:
        self._loop = loop

    def __enter__(self) -> None:
        self._before = _get_running_loop()
        _set_running_loop(self._loop)

    def __exit__(self, *details: object) -> None:
        _set_running_loop(self._before)
