"""The terminal that a command shares with us, and what has to be mended when it is killed.

A command on a terminal stays in the process group that its user's shell has made for us: so Ctrl-C
and Ctrl-Z reach it, it may read, and pipelines work, as if we were not there. One that is killed
can leave the terminal in a mode of its own, or to a process group that is no more.
"""

import contextlib
import os
import signal
import termios
from typing import Any


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
