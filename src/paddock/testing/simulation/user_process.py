"""A user's process of a simulated world, and what of the standard library it sees as simulated.

While a world runs, some functions of the standard library are replaced. Inside the world's
processes they are simulated or refused; anywhere else they do what they always did:

* `time.time`, `time.monotonic`, `time.perf_counter` and their `_ns` twins show the process's clock.
* `random`, `os.urandom`, `secrets` and `uuid.uuid4` draw from the seed.
* Threads, child processes, real sockets and `time.sleep` raise SimulationError: they would wait
  for something outside of the world, whose time stands still meanwhile. In blocking code
  `time.sleep` is simulated (`blocking`).

A name that was imported from its module before (`from time import monotonic`) is not replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import subprocess
import threading
import time
from asyncio.events import _get_running_loop
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol
from unittest.mock import patch

from paddock.testing.simulation.process import Network, ProcessLoop
from paddock.testing.simulation.world_loop import WorldLoop

# The time of day at the beginning of every world, as the servers have it.
_EPOCH: Final = 1_700_000_000.0
# A monotonic clock begins anywhere.
_BOOTED: Final = 1000.0


class SimulationError(RuntimeError):
    """Something that a simulated world does not have, such as threads or real sockets."""


class ProcessThread(Protocol):
    """The thread of a process's blocking code (`blocking`)."""

    @property
    def is_current(self) -> bool: ...

    def sleep(self, seconds: float) -> None: ...

    def bury(self) -> None: ...


class UserProcess(ProcessLoop):
    """The event loop of a user's process. `jump` is how far its time of day is from the right one.

    Names of processes are names of hosts, so processes can connect to each other.
    """

    def __init__(
        self,
        world: WorldLoop,
        network: Network,
        name: str,
        host: str,
        *,
        draw: random.Random,
        hosts: dict[str, str],
        rate: float = 1.0,
        jump: float = 0.0,
    ) -> None:
        super().__init__(world, network, name, host, rate=rate)
        self.draw = draw
        self.jump = jump
        # Called with what its callbacks raise.
        self.on_error: Callable[[BaseException], None] | None = None
        # The thread of its blocking code, if it has any.
        self.thread: ProcessThread | None = None
        self._hosts = hosts
        # When it has last sent or received something.
        self.stepped_at = 0.0
        # What is to be done to it, and after how many steps.
        self._aims: list[tuple[int, Callable[[], object]]] = []

    def aim(self, steps: int, action: Callable[[], object]) -> None:
        """Have something done to it when it has sent or received something so many times."""
        self._aims.append((steps, action))

    def step(self) -> None:
        """Note that it sends or receives something."""
        self.stepped_at = self.true_time()
        if self._aims:
            aims = [(steps - 1, action) for steps, action in self._aims]
            self._aims = [aim for aim in aims if aim[0] > 0]
            for steps, action in aims:
                if steps <= 0:
                    # Not in the middle of what it does just now.
                    self._world.call_soon(action)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self.on_error is not None and not self.is_dead:
            self.on_error(context.get("exception") or RuntimeError(context["message"]))

    def time_of_day(self) -> float:
        return _EPOCH + self.time() + self.jump

    def failed_tasks(self) -> list[BaseException]:
        """Return what its tasks have raised and nobody has asked for."""
        return [
            error
            for task in self._tasks
            if task.done()
            and not task.cancelled()
            # Reset by whoever looks at the error, so before that.
            and task._log_traceback
            and (error := task.exception()) is not None
        ]

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: Any = None,
        **options: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        if ssl is not None:
            raise SimulationError("TLS is not simulated: connect without it in a simulated world")
        host = self._hosts.get(host, host)
        return await super().create_connection(protocol_factory, host, port, **options)

    async def getaddrinfo(  # type: ignore[override]
        self, host: str, port: int, **_: Any
    ) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        address = self._hosts.get(host, host)
        if not address[:1].isdigit():
            raise socket.gaierror(socket.EAI_NONAME, f"the simulated world has no host {host!r}")
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port))]


def _refuse(_: UserProcess, *arguments: Any, **options: Any) -> Any:
    raise SimulationError(
        "a simulated world has no real sockets, pipes, signals or child processes;"
        " connect to world.hosts, or to another process by its name"
    )


# What else a loop has, each of which raises a bare NotImplementedError.
for _name in (
    *("add_reader", "add_writer", "add_signal_handler"),
    *("sock_accept", "sock_connect", "sock_recv", "sock_sendall"),
    *("create_datagram_endpoint", "create_unix_connection", "create_unix_server"),
    *("subprocess_exec", "subprocess_shell", "connect_read_pipe", "connect_write_pipe"),
    "getnameinfo",
):
    setattr(UserProcess, _name, _refuse)


# The processes of blocking code, by their thread.
_of_threads: dict[int, UserProcess] = {}


def current_process() -> UserProcess | None:
    """Return the user's process that runs just now, if it is one."""
    loop = _get_running_loop()
    if isinstance(loop, UserProcess):
        return loop
    return _of_threads.get(threading.get_ident())


@contextlib.contextmanager
def as_thread_of(process: UserProcess) -> Iterator[None]:
    """Have this thread belong to a process."""
    _of_threads[threading.get_ident()] = process
    try:
        yield
    finally:
        del _of_threads[threading.get_ident()]


@contextlib.contextmanager
def simulated_library(seed: str) -> Iterator[None]:
    """Replace what the processes of a world may not have, or have from the seed."""
    state = random.getstate()
    random.seed(seed)
    with contextlib.ExitStack() as patches:
        for target, name, stand_in in _stand_ins():
            real = getattr(target, name)
            patches.enter_context(patch.object(target, name, stand_in(real)))
        try:
            yield
        finally:
            random.setstate(state)


def _stand_ins() -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    yield time, "time", _clock(UserProcess.time_of_day)
    yield time, "time_ns", _clock(lambda process: int(process.time_of_day() * 1e9))
    for name in ("monotonic", "perf_counter"):
        yield time, name, _clock(lambda process: _BOOTED + process.time())
        yield time, f"{name}_ns", _clock(lambda process: int((_BOOTED + process.time()) * 1e9))
    for module, name in ((os, "urandom"), (random, "_urandom")):
        yield module, name, _randomness
    yield time, "sleep", _sleep
    yield (
        threading.Thread,
        "start",
        _refused("threads are not simulated; use tasks, or several processes of the world"),
    )
    yield subprocess.Popen, "__init__", _refused("a simulated world has no child processes")
    yield (
        socket.socket,
        "connect",
        _refused("a simulated world has no real sockets; connect to world.hosts by asyncio"),
    )


def _clock(read: Callable[[UserProcess], float]) -> Callable[[Any], Any]:
    def stand_in(real: Callable[[], float]) -> Callable[[], float]:
        def now() -> float:
            process = current_process()
            return real() if process is None else read(process)

        return now

    return stand_in


def _randomness(real: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def randomness(size: int) -> bytes:
        process = current_process()
        return real(size) if process is None else process.draw.randbytes(size)

    return randomness


def _sleep(real: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(seconds: float) -> None:
        process = current_process()
        if process is None:
            real(seconds)
        elif process.thread is not None and process.thread.is_current:
            process.thread.sleep(seconds)
        else:
            raise SimulationError("time.sleep blocks the event loop; use asyncio.sleep")

    return sleep


def _refused(why: str) -> Callable[[Any], Any]:
    def stand_in(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if current_process() is not None:
                raise SimulationError(why)
            return real(*arguments, **named)

        return call

    return stand_in
