"""The processes of the demo: each ends with its parent, and can be killed.

A process on a leash ends when its parent does, also when that is killed: the parent holds the other
end of its stdin, which ends then. As a program, this runs a command of `paddock` on a leash:
`python -m paddock.cli.demo.processes serve`.
"""

import asyncio
import contextlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import IO, Any, Final

from paddock.cli.output import CannotBeDone

# The session of the demo's own client survives a suspended demo.
WATCHING_SECONDS: Final = 3600.0
# How many times a tick goes into the session timeout of workers: the server looks once a tick.
_TICKS: Final = 10
_LOG_BYTES_READ: Final = 4096
_GRACE: Final = 2.0


def kill(process: asyncio.subprocess.Process) -> None:
    """Kill a process at once; one that has ended, or was killed before, is left as it is.

    Its own `kill` looks first whether it has ended, and if so collects the status. The thread that
    waits for that then finds no such child, says so on stderr, and reports status 255.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


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


@dataclass(frozen=True, slots=True)
class Server:
    """A server that serves, until its scope ends."""

    hosts: str
    process: asyncio.subprocess.Process
    # It looks so often which sessions are over.
    tick_ms: int
    # Of the workers, and where all processes write to: nobody should have anything to say there.
    session_timeout: float
    log: IO[bytes]

    async def watch(self) -> None:
        """Raise CannotBeDone when it ends before its time."""
        status = await self.process.wait()
        raise CannotBeDone(f"the server of the demo ended with status {status}")


@contextlib.asynccontextmanager
async def serving(session_timeout: float, log: IO[bytes]) -> AsyncIterator[Server]:
    """Start it; at the end it is killed, which costs nothing, since it has nothing to keep."""
    tick_ms = max(1, round(session_timeout * 1000 / _TICKS))
    options = {
        "--host": "127.0.0.1",
        "--port": "0",
        "--tick-time-ms": str(tick_ms),
        "--max-session-timeout-ms": str(round(WATCHING_SECONDS * 1000)),
        "--log-level": "warning",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "paddock.cli.demo.processes", "serve", "--memory"),
        *(word for option in options.items() for word in option),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
        # Ctrl-C in the terminal is for the demo, which ends the others.
        start_new_session=True,
        env=environment(),
    )
    try:
        yield Server(await _hosts(process, log), process, tick_ms, session_timeout, log)
    finally:
        kill(process)
        await process.wait()


@contextlib.asynccontextmanager
async def beside(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines for the length of a scope; if one fails, the scope does."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
        yield
        for task in tasks:
            task.cancel()


def environment() -> dict[str, str]:
    """Return our environment without settings of Paddock."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PADDOCK_")}


def last_line(log: IO[bytes]) -> str:
    """Return the last line of a log, as the reason why a process ended."""
    size = os.fstat(log.fileno()).st_size
    # Not through the file's position, which is the one where the processes write.
    end = os.pread(log.fileno(), _LOG_BYTES_READ, max(0, size - _LOG_BYTES_READ))
    lines = end.decode(errors="replace").split("\n")
    return next((f": {line}" for line in reversed(lines) if line.strip()), "")


async def _hosts(process: asyncio.subprocess.Process, log: IO[bytes]) -> str:
    assert process.stdout is not None, "it is a pipe"
    while line := await process.stdout.readline():
        match = re.search(r" listens on (\S+)$", line.decode())
        if match is not None:
            return match[1]
    status = await process.wait()
    raise CannotBeDone(f"the server of the demo ended with status {status}{last_line(log)}")


if __name__ == "__main__":
    from paddock.cli.main import main

    hold(lambda: os.kill(os.getpid(), signal.SIGTERM))
    main(sys.argv[1:])
