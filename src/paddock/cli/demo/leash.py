"""A leash: a process that ends when whoever started it does, however that came.

Whoever starts us holds the other end of our stdin, and never writes to it. When it lets go of it,
on purpose or because it was killed, we read the end of the file. That needs no help of the system,
and there is no moment in which it could be missed.

As a program it runs a command of `paddock` on a leash: `python -m paddock.cli.demo.leash serve`.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

# How long a process may take to end in good order, in seconds.
_GRACE: Final = 2.0


def hold(on_end: Callable[[], object]) -> None:
    """Have a function called, in a thread, when the leash is let go; then the process ends."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        try:
            on_end()
            time.sleep(_GRACE)
        finally:
            os._exit(1)

    threading.Thread(target=wait, name="leash", daemon=True).start()


def _run() -> None:
    from paddock.cli.main import main

    hold(lambda: os.kill(os.getpid(), signal.SIGTERM))
    main(sys.argv[1:])


if __name__ == "__main__":
    _run()
