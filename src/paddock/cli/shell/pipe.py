"""The shell for scripts: lines from stdin, or one command, without a prompt.

Lines are read by a thread, since events are to be printed while nobody writes. It is a daemon: the
process ends without it, whatever stdin does.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from paddock.cli.shell.shell import Shell

if TYPE_CHECKING:
    from paddock.cli.shell.settings import Settings


async def run_command(hosts: str, settings: Settings, command: Sequence[str]) -> int:
    """Run one command and give its status."""
    shell = Shell(hosts, settings, out=_out, err=_err)
    await _begin(shell)
    try:
        await shell.run(command)
    finally:
        await _end(shell)
    return shell.status


async def run_lines(hosts: str, settings: Settings, lines: IO[bytes]) -> int:
    """Run every line and give the status of the last one."""
    shell = Shell(hosts, settings, out=_out, err=_err)
    await _begin(shell)
    try:
        reader = _Lines(lines)
        while not shell.is_over and (line := await reader.next()) is not None:
            await shell.execute(line)
    finally:
        await _end(shell)
    return shell.status


async def _begin(shell: Shell) -> None:
    shell.out(f"Connecting to {shell.hosts}")
    await shell.connect(shell.hosts)
    try:
        # Without a service there is nothing that a script could do.
        await shell.client()
    except BaseException:
        await shell.close()
        raise


async def _end(shell: Shell) -> None:
    # Upstream leaves without a word, and without closing; so nothing is told of this.
    shell.prints_watches = False
    await shell.close()


class _Lines:
    """Reads lines in a thread of its own, one when one is wanted."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._wanted = threading.Semaphore(0)
        self._line: asyncio.Future[bytes] = self._loop.create_future()
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    async def next(self) -> str | None:
        """Give the next line without its end, or None behind the last one."""
        self._line = self._loop.create_future()
        self._wanted.release()
        line = await self._line
        if not line:
            return None
        return line.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")

    def _read(self) -> None:
        while True:
            self._wanted.acquire()
            line = self._stream.readline()
            self._loop.call_soon_threadsafe(self._give, line)

    def _give(self, line: bytes) -> None:
        if not self._line.done():
            self._line.set_result(line)


def _out(text: str, end: str = "\n") -> None:
    _write(sys.stdout.buffer, text + end)


def _err(text: str, end: str = "\n") -> None:
    _write(sys.stderr.buffer, text + end)


def _write(stream: IO[bytes], text: str) -> None:
    stream.write(text.encode("utf-8", "surrogateescape"))
    # At once, so that both streams are in order where they are one.
    stream.flush()
