"""Threads of simulated processes.

They are real threads, of which one runs at a time, and only while the world's loop waits for it: a
thread has the loop's turn until it waits itself, for something to do or for time to pass. So they
change nothing of the order of things. The code that starts them is that which ships:

* `SimulatedThread` stands for `threading.Thread`, `SimulatedQueue` for `queue.SimpleQueue`.
* `pause` lets virtual time pass in a thread, as a slow disk does; on the loop it does nothing.
* A thread of a process that was killed never goes on. It ends when its world does.
"""

from __future__ import annotations

import threading
from asyncio.events import _get_running_loop
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from paddock.testing.simulation.process import ProcessLoop

T = TypeVar("T")

_local = threading.local()


class _KilledError(BaseException):
    """The process of this thread is dead."""


class SimulatedThread:
    """A thread of the process that makes it."""

    def __init__(
        self,
        *,
        target: Callable[..., object],
        args: tuple[Any, ...] = (),
        name: str = "",
        daemon: bool = True,
    ) -> None:
        process = _get_running_loop()
        assert isinstance(process, ProcessLoop), "a thread belongs to a process"
        self.process = process
        self._target = target
        self._args = args
        self._is_over = False
        self._is_killed = False
        # Whether somebody waits for its end, so that no time passes any more.
        self._is_joined = False
        self._turn = threading.Semaphore(0)
        self._handed_back = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self.process.threads.append(self)
        self._thread.start()
        self.resume()

    def join(self) -> None:
        self._is_joined = True
        while not self._is_over:
            self.resume()
        self._thread.join()

    def kill(self) -> None:
        """End it wherever it is."""
        self._is_killed = True
        self.join()

    def resume(self) -> None:
        """Let it run until it waits."""
        if not self._is_over:
            self._turn.release()
            self._handed_back.acquire()

    # In the thread.

    def wait(self) -> None:
        """Give the turn back, until it is resumed."""
        self._handed_back.release()
        self._turn.acquire()
        if self._is_killed:
            raise _KilledError

    def sleep(self, seconds: float) -> None:
        if not self._is_joined:
            self.process.call_later(seconds, self.resume)
            self.wait()

    def _run(self) -> None:
        _local.thread = self
        self._turn.acquire()
        try:
            if not self._is_killed:
                self._target(*self._args)
        except _KilledError:
            pass
        finally:
            self._is_over = True
            self._handed_back.release()


class SimulatedQueue(Generic[T]):
    """A queue from a process to one of its threads."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._reader: SimulatedThread | None = None

    def put(self, item: T) -> None:
        self._items.append(item)
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.process.call_soon(reader.resume)

    def get(self) -> T:
        while not self._items:
            self._reader = _current()
            assert self._reader is not None, "the loop never waits for a queue"
            self._reader.wait()
        return self._items.popleft()


def pause(seconds: float) -> None:
    """Let time pass, if this is a thread of a process."""
    thread = _current()
    if thread is not None:
        thread.sleep(seconds)


def _current() -> SimulatedThread | None:
    thread: SimulatedThread | None = getattr(_local, "thread", None)
    return thread
