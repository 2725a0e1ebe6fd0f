"""Blocking code in a simulated world: a thread that runs only while the world waits for it.

A process of blocking code has one thread. The world and the thread pass a baton: the thread has it
until it waits for something, the world until that has come. So only one of them ever runs, and all
orders are still the world's. What the thread may wait for is `paddock.sync`, its client and its
recipes, and `time.sleep`. It has no other threads, locks, queues or sockets to wait for, so
callbacks of blocking clients (watches, listeners), which have a thread of their own, are refused.

A kill takes effect when the thread waits; its world unwinds it when everything is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar
from unittest.mock import patch

from paddock.errors import ConnectionLostError, SessionExpiredError
from paddock.sync import bridge
from paddock.sync import portal as portals
from paddock.sync.portal import Portal
from paddock.testing.simulation.user_process import (
    ProcessThread,
    UserProcess,
    as_thread_of,
    current_process,
)

T = TypeVar("T")


class _Buried(BaseException):
    """Unwinds a thread whose world is over."""


class BlockingThread(ProcessThread):
    """The thread of a process, and the baton."""

    def __init__(self, process: UserProcess) -> None:
        self._process = process
        self._thread: threading.Thread | None = None
        self._is_buried = False
        # Each is released to hand the baton over.
        self._turn = threading.Semaphore(0)
        self._world = threading.Semaphore(0)
        self._outcome: asyncio.Future[Any]
        self._portal: SimulatedPortal | None = None

    @property
    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    def portal(self) -> SimulatedPortal:
        """Return the portal of the process's blocking clients."""
        if self._portal is None or not self._portal.is_open:
            self._portal = SimulatedPortal(self, self._process)
        return self._portal

    def wrap(self, function: Callable[..., T]) -> Callable[..., Awaitable[T]]:
        """Return a coroutine function that runs a plain one in the thread."""

        async def run(*arguments: Any) -> T:
            self._outcome = self._process.create_future()
            self._thread = _RealThread(
                target=self._run, args=(function, arguments), name=self._process.name, daemon=True
            )
            _start(self._thread)
            self._step()
            return await self._outcome  # type: ignore[no-any-return]

        return run

    def wait(self, future: asyncio.Future[Any]) -> None:
        """Wait, in the thread, until a future of the process is done."""
        if self._is_buried:
            raise _Buried
        future.add_done_callback(lambda _: self._step())
        self._world.release()
        self._turn.acquire()
        if self._is_buried:
            raise _Buried

    def sleep(self, seconds: float) -> None:
        done = self._process.create_future()
        self._process.call_later(seconds, _finish, done)
        self.wait(done)

    def bury(self) -> None:
        """Unwind the thread, if it still waits, at the end of its world."""
        self._is_buried = True
        if self._thread is not None and self._thread.is_alive():
            self._turn.release()
            self._thread.join()

    def _step(self) -> None:
        """Let the thread run until it waits, or ends."""
        self._turn.release()
        self._world.acquire()

    def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._turn.acquire()
        with as_thread_of(self._process):
            try:
                result = function(*arguments)
            except _Buried:
                return
            except BaseException as error:
                if not self._is_buried:
                    self._outcome.set_exception(error)
            else:
                if not self._is_buried:
                    self._outcome.set_result(result)
        self._world.release()


class SimulatedPortal(Portal):
    """The portal of a process: its calls run on the process's loop, and the thread waits."""

    def __init__(self, thread: BlockingThread, process: UserProcess) -> None:
        self._lock = threading.RLock()
        self._holders = {}
        self._sources = weakref.WeakSet()
        self._is_over = False
        self._is_exiting = False
        self.is_left_behind = False
        self._under_way = set()
        self._kept = set()
        self._loop = process
        self._blocking = thread

    def end(self, seconds_max: float | None = None) -> None:
        if not self._is_over:
            self._is_over = True
            for task in [*self._kept]:
                task.cancel()

    def _ask(self, call: portals._Call[T], seconds: float | None) -> T:
        self._check()
        if self._is_over:
            raise SessionExpiredError(call.name, call.path, "the client is closed")
        settled: asyncio.Future[None] = self._loop.create_future()
        self._loop.call_soon(self._begin_watched, call, settled)
        timer = None if seconds is None else self._loop.call_later(seconds, _finish, settled)
        self._blocking.wait(settled)
        if timer is not None:
            timer.cancel()
        if not call.settled.acquire(blocking=False):
            self._wait_given_up(call)
            if isinstance(call.error, asyncio.CancelledError):
                whom = "".join(f", {one}" for one in getattr(call.error, "__notes__", ()))
                raise TimeoutError(f"{call.subject}: no answer in time{whom}")
        if isinstance(call.error, asyncio.CancelledError):
            raise ConnectionLostError(call.name, call.path)
        return call.outcome()

    def _wait_given_up(self, call: portals._Call[Any]) -> None:
        """Cancel a call whose time is over; it may clean up."""
        ended: asyncio.Future[None] = self._loop.create_future()
        if call.future is None:
            return
        call.future.add_done_callback(lambda _: _finish(ended))
        self._loop.call_soon(call.give_up)
        self._blocking.wait(ended)
        call.settled.acquire(blocking=False)

    def _begin_watched(self, call: portals._Call[Any], settled: asyncio.Future[None]) -> None:
        self._begin(call)
        if call.future is None:
            _finish(settled)
        else:
            call.future.add_done_callback(lambda _: _finish(settled))


@contextlib.contextmanager
def simulated_portals() -> Iterator[None]:
    """Have blocking clients of a world's processes use the processes' portals."""
    real = portals.open_portal

    def open_portal(holder: object) -> Portal:
        process = current_process()
        if process is None or process.thread is None or not process.thread.is_current:
            return real(holder)
        assert isinstance(process.thread, BlockingThread)
        portal = process.thread.portal()
        portal.hold(holder)
        return portal

    with patch.object(bridge, "open_portal", open_portal):
        yield


# As they are while nothing is replaced.
_RealThread = threading.Thread
_start = threading.Thread.start


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
