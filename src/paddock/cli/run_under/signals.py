"""Signals of a process that waits, and then runs a command, and the terminal that both share.

While it waits, signals end it in good order, so that it leaves the line of contenders. While the
command runs they are passed on to it, and it is not run again. A second signal while the first one
ends us ends us at once.

A command on a terminal stays in our process group: so Ctrl-C and Ctrl-Z reach it, it may read, and
pipelines work. One that is killed can leave the terminal in a mode of its own, or to a process
group that is no more.
"""

import asyncio
import contextlib
import os
import signal
import termios
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, Protocol

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


class Terminal:
    """Our controlling terminal, if we have one."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._modes: list[Any] = []
        with contextlib.suppress(OSError, termios.error):
            self._file = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            self._modes = termios.tcgetattr(self._file)

    @property
    def is_there(self) -> bool:
        return self._file is not None

    def mend(self) -> None:
        """Take it back from a command that was killed, with the modes that it had at first."""
        if self._file is None or not self._modes:
            return
        # A background process would be stopped otherwise.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            owner = os.tcgetpgrp(self._file)
            if owner != os.getpgrp() and not _is_alive(owner):
                os.tcsetpgrp(self._file, os.getpgrp())
            if os.tcgetpgrp(self._file) == os.getpgrp():
                termios.tcsetattr(self._file, termios.TCSADRAIN, self._modes)
        except (OSError, termios.error):
            # It was hung up.
            pass
        finally:
            signal.signal(signal.SIGTTOU, before)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
