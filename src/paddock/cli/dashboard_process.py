"""The dashboard of a server, as a process of its own: `paddock serve --dashboard PORT`.

Browsers take no time from the server's event loop. The process is started when the server serves,
prints its links where the server prints, and ends with it, also when the server is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from paddock.cli.cluster import leash
from paddock.cli.output import CannotBeDone

logger: Final = logging.getLogger(__name__)

_STOP_SECONDS: Final = 5.0


def check_installed() -> None:
    """Raise CannotBeDone if the packages of the dashboard are missing."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise CannotBeDone(
                f"the dashboard needs {package}, which is not installed: run"
                " pip install 'paddock-zk[dashboard]'"
            )


class DashboardProcess:
    """The dashboard of one server, which is reached at `hosts`."""

    def __init__(self, hosts: str, port: int, data: Path | None) -> None:
        words = ["dashboard", "--no-open", "--server", hosts, "--port", str(port)]
        if data is not None:
            words += ["--data", str(data.absolute())]
        self._command = [sys.executable, "-P", "-m", "paddock", *words]
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, stop: asyncio.Event) -> None:
        """Start it, and do not wait until it serves. It is told to end as soon as `stop` is set."""
        # What is meant for the server must not be taken for the dashboard's.
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PADDOCK_") or name == "PADDOCK_PURE"
        }
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *self._command),
            stdin=asyncio.subprocess.DEVNULL,
            # Ctrl-C is for the server, which ends it.
            start_new_session=True,
            env=own,
        )
        self._tasks = [
            asyncio.create_task(self._watch(self._process, stop)),
            asyncio.create_task(self._end_at(self._process, stop)),
        ]

    async def stop(self) -> None:
        """End it, if it has not ended."""
        for task in self._tasks:
            task.cancel()
        if self._process is None:
            return
        _terminate(self._process)
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _watch(self, process: asyncio.subprocess.Process, stop: asyncio.Event) -> None:
        status = await process.wait()
        if not stop.is_set():
            logger.warning("the dashboard has ended with status %d; the server goes on", status)

    async def _end_at(self, process: asyncio.subprocess.Process, stop: asyncio.Event) -> None:
        # Before the server is gone, with which it would have to end its session.
        await stop.wait()
        _terminate(process)


def _terminate(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
