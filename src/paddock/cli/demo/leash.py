"""A leash: a process that ends when its parent does, also when that is killed.

The parent holds the other end of our stdin and never writes to it. When it closes it, or is killed,
we read the end of the file.

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
    """Call a function, in a thread, when stdin ends; then exit."""

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
