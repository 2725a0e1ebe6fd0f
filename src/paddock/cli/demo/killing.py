"""Killing a process that asyncio waits for, without taking its status away from asyncio."""

import asyncio
import contextlib
import os
import signal


def kill(process: asyncio.subprocess.Process) -> None:
    """Kill a process at once; one that has ended, or was killed before, is left as it is.

    Its own `kill` looks first whether it has ended, and if so collects the status. The thread that
    waits for that then finds no such child, says so on stderr, and reports status 255.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
