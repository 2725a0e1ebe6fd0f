"""A virtual clock: an event loop in which waiting takes no time.

Time stands still while there is something to do, and jumps to the next timer when there is not. So
a test of timeouts runs in milliseconds and does not depend on how busy the machine is.

    run_virtually(scenario())          # asyncio.run, in virtual time

What comes from outside the loop, a socket or a thread, is not waited for: virtual time is for code
that only waits for timers and for itself.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting, moves the clock on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
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

    def time(self) -> float:
        """Give the virtual time in seconds."""
        return self._jumping.now

    def stall(self, seconds: float) -> None:
        """Let time pass in which the loop does nothing, as on a machine that is too busy."""
        self._jumping.now += seconds


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main)
