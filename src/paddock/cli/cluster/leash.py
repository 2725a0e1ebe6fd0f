"""Runs a command that ends when its parent does, also when that is killed.

    python -I -S leash.py PARENT command…

The kernel sends SIGTERM then; elsewhere than on Linux nobody does. It is a script that imports
nothing of ours, and becomes the command.
"""

import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    parent, *command = arguments
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != int(parent):
            # It has ended before the kernel knew what to do then.
            return
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"paddock: {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
