"""A virtual clock: an event loop in which waiting takes no time.

Time stands still while there is something to do, and jumps to the next timer when there is not. So
a test of timeouts runs in milliseconds and does not depend on how busy the machine is.

    async def scenario() -> None:
        async with EmbeddedServer() as server:
            async with paddock.connect(server.hosts) as client:
                await asyncio.sleep(3600)  # with a ping every few seconds
                print(client.state)  # CONNECTED


    run_virtually(scenario())  # asyncio.run, in virtual time

Connections within the loop are virtual, too (`paddock.testing.network`): a server, its clients and
a proxy between them can all live in it. What work a thread does for the loop (`run_in_executor`) is
waited for while time stands still. Anything else from outside, such as a real socket or the thread
that writes a log to the disk, is not: time may jump before it comes.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, Final, TypeVar, TypeVarTuple

from paddock.testing.network import VirtualNetwork

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_DELAY_MIN: Final = 1e-9


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting, moves the clock on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        # What threads do for the loop just now: that is really waited for.
        self.awaited = 0
        # How often the loop has gone round, and what is to be called in which round.
        self.passes = 0
        self.planned: dict[int, list[Callable[[], object]]] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.passes += 1
        if self.passes in self.planned:
            for callback in self.planned.pop(self.passes):
                callback()
            # There may be something to do now.
            timeout = 0
        if self.awaited and timeout != 0:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("everything waits, and for no timer: it would wait for ever")
            self.now += max(timeout, 0)
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is virtual, and starts at 0."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        self._network = VirtualNetwork(self)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._jumping.now

    @property
    def _clock_resolution(self) -> float:
        """How early a timer may be: not at all.

        Time stands still while something is done. A timer that fires early would be set again by
        who looks at the clock, for the same moment, for ever.
        """
        return math.ulp(self._jumping.now)

    @_clock_resolution.setter
    def _clock_resolution(self, _: float) -> None:
        """Asyncio sets that of the real clock."""

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call something later; no delay is so short that it would be lost by rounding."""
        if delay > 0:
            delay = max(delay, _DELAY_MIN)
        return super().call_later(delay, callback, *args, context=context)

    def stall(self, seconds: float) -> None:
        """Let time pass in which the loop does nothing, as on a machine that is too busy."""
        self._jumping.now += seconds

    @property
    def passes(self) -> int:
        """The number of passes so far; each calls all that is ready."""
        return self._jumping.passes

    def call_at_pass(self, number: int, callback: Callable[[], object]) -> None:
        """Call something at the beginning of a pass, without taking part in any before it.

        What is played twice in virtual time takes the same passes, so something can be done to it
        after each of them in turn: the first play counts them.
        """
        if number <= self.passes:
            raise ValueError(f"number: pass {number} is over, this is {self.passes}")
        self._jumping.planned.setdefault(number, []).append(callback)

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[*Arguments], T],
        *args: *Arguments,
    ) -> asyncio.Future[T]:
        """Call something in a thread; no time passes before it is done."""
        future: asyncio.Future[T] = super().run_in_executor(executor, func, *args)
        self._jumping.awaited += 1
        future.add_done_callback(self._executed)
        return future

    async def shutdown_default_executor(self, *arguments: Any) -> None:
        """Wait for the threads to end, as a loop does that is run to its end."""
        self._jumping.awaited += 1
        try:
            await super().shutdown_default_executor(*arguments)
        finally:
            self._jumping.awaited -= 1

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        sock: socket.socket | None = None,
        start_serving: bool = True,
        **_: Any,
    ) -> asyncio.AbstractServer:
        """Listen at an address of the virtual network; a socket only says which one."""
        if sock is not None:
            host, port = sock.getsockname()[:2]
            sock.close()
        server = self._network.bind(protocol_factory, host or "127.0.0.1", port or 0)
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
        """Connect to a server of this loop; raises ConnectionRefusedError."""
        # A network takes a moment: a server that was about to listen does by then.
        await asyncio.sleep(0)
        return self._network.connect(protocol_factory, host, port)

    def _executed(self, _: asyncio.Future[T]) -> None:
        self._jumping.awaited -= 1


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main)
