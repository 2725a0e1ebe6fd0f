"""Key presses, one by one, without echo."""

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def listening(on_key: Callable[[str], None]) -> Iterator[None]:
    """Call a function for every key, if stdin is a terminal; Ctrl-C stays a signal."""
    if not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    loop = asyncio.get_running_loop()

    def read() -> None:
        keys = os.read(terminal, 64)
        if not keys:
            loop.remove_reader(terminal)
        for key in keys.decode("ascii", errors="replace"):
            on_key(key)

    tty.setcbreak(terminal)
    loop.add_reader(terminal, read)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
