"""Signals of a process that waits for something, and then runs a command.

While it waits they end it in good order, so that it leaves the line of contenders. While the
command runs they are passed on to it, and it is for the command to end, or not; but it is not run
again then. A second signal while the first one ends us ends us at once.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, Protocol

_PASSED_ON: Final = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2),
)
_ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
# A terminal sends them to its whole foreground, which the command is in as well.
_FROM_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT)


class Receiver(Protocol):
    """Who gets signals from us: a command that runs."""

    def pass_on(self, number: int) -> None: ...


async def run_with_signals(work: Callable[["Signals"], Awaitable[int]]) -> int:
    """Do something; give its status, or the one of the signal that has ended it."""
    signals = Signals()
    try:
        return await work(signals)
    except asyncio.CancelledError:
        if signals.number is None:
            raise
        return 128 + signals.number


class Signals:
    """Made by the task that is to be cancelled."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "a coroutine is always run by a task"
        self._task: asyncio.Task[object] = task
        # The one that ends us.
        self.number: int | None = None
        # The first one that came, while a command ran, to ask for the end of what is done.
        self.asked_to_end: int | None = None
        self._command: Receiver | None = None
        self._shares_terminal = False
        loop = asyncio.get_running_loop()
        for number in _PASSED_ON:
            # A signal that is ignored, as under nohup, stays ignored, also by the command.
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._on_signal, number)

    @contextlib.contextmanager
    def passed_on_to(self, command: Receiver, *, shares_terminal: bool) -> Iterator[None]:
        """Pass signals on to a command in this scope."""
        self._command = command
        self._shares_terminal = shares_terminal
        try:
            yield
        finally:
            self._command = None

    def _on_signal(self, number: signal.Signals) -> None:
        if self._command is not None:
            if number in _ENDING and self.asked_to_end is None:
                self.asked_to_end = number
            if not (self._shares_terminal and number in _FROM_TERMINAL):
                self._command.pass_on(number)
        elif self.number is None:
            self.number = number
            self._task.cancel()
        else:
            os._exit(128 + number)
