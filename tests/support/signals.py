"""Signals as a program finds them that is started on a terminal.

A shell ignores SIGINT and SIGQUIT in what it starts in the background, `nohup` ignores SIGHUP, and
a process hands ignored signals on to its children. A test that interrupts a child would then wait
for ever. So each process of a test run resets them first; its children inherit that.
"""

import signal
from typing import Final

INHERITED: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def restore_default_signals() -> None:
    """Handle signals that are ignored as Python does by default."""
    for one in INHERITED:
        if signal.getsignal(one) is signal.SIG_IGN:
            is_interrupt = one is signal.SIGINT
            signal.signal(one, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
