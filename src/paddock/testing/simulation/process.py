"""A simulated process: code that runs on an event loop of its own within the world's.

All processes share the world's loop, which decides what happens next. A process sees a loop that is
its own: with a clock that may run fast or slow, and which can be paused or killed from outside at
any moment between two callbacks. The rules:

* Whatever its code schedules runs as the process, and finds the process's loop as the running one.
* A paused process runs nothing. What was to run meanwhile runs when it goes on: in its order, or
  timers last. Its clock goes on, and the network keeps what comes for it.
* A killed process never runs again: no callback, no `finally`, no destructor of a task.
* What would run in a thread of an executor runs at once, and its result comes a moment later. For
  other threads see `threads`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from asyncio.events import _get_running_loop, _set_running_loop
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, Protocol, TypeVar, TypeVarTuple

from paddock.testing.simulation.world_loop import Call, Scheduled, WorldLoop

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_DELAY_MIN: Final = 1e-6
# What may pass until the result of a thread is known.
_EXECUTOR_SECONDS: Final = (0.0, 0.0, 0.001, 0.05)


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


class ProcessLoop(Scheduled):
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
        self._stalled: list[Call] = []
        # Kept, so that nothing of a dead process is ever collected while the world runs.
        self._tasks: list[asyncio.Task[Any]] = []
        self.threads: list[Thread] = []
        # When the last thing that a thread of an executor has done is known.
        self._executed_at = 0.0
        # What is called when an event of the process is set, by its number.
        self._readers: dict[int, Callable[[], object]] = {}
        self._events = 0
        self._random = random.Random(f"{name} {world.now}")
        self._debug = False

    # What the world does to it.

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        stalled, self._stalled = self._stalled, []
        if self._random.random() < 0.5:
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
        call = Call(callback, args, context)
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
        call = Call(callback, args, context, when)
        if not self.is_dead:
            self._world.schedule(self, call, (when - self._start) / self._rate)
        return call

    def may_run(self, call: Call) -> bool:
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

    # Events: descriptors that become readable.

    def new_event(self) -> int:
        """Return the number of a new event, which stands for a descriptor."""
        self._events += 1
        return self._events

    def set_event(self, number: int) -> None:
        """Have the loop notice that an event is set."""
        self.call_soon(self._notice, number)

    def _notice(self, number: int) -> None:
        reader = self._readers.get(number)
        if reader is not None:
            reader()

    def add_reader(  # type: ignore[override]
        self, fd: int, callback: Callable[[], object]
    ) -> None:
        self._readers[fd] = callback

    def remove_reader(self, fd: int) -> bool:  # type: ignore[override]
        return self._readers.pop(fd, None) is not None

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
        delay = self._random.choice(_EXECUTOR_SECONDS)
        self._executed_at = max(self._executed_at, self.time() + delay)
        try:
            self.call_at(self._executed_at, _settle, future, func(*args), None)
        except Exception as error:
            self.call_at(self._executed_at, _settle, future, None, error)
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


def _settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


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
