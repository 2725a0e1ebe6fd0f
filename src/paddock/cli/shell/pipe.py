"""The shell for scripts: lines from stdin, or one command, without a prompt.

Lines are read by a thread, so that events are printed while stdin is silent. It is a daemon thread:
the process ends without it.
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import IO, Final

from paddock.cli.shell.commands import COMMANDS
from paddock.cli.shell.connection import Settings
from paddock.cli.shell.shell import Shell

_CHUNK_BYTES: Final = 65536


async def run_command(hosts: str, settings: Settings, command: Sequence[str]) -> int:
    """Run one command and give its status."""
    async with _shell(hosts, settings) as (shell, output):
        await shell.run(command)
        output.check()
    return shell.status


async def run_lines(hosts: str, settings: Settings, lines: IO[bytes]) -> int:
    """Run every line and give the status of the last one."""
    async with _shell(hosts, settings) as (shell, output):
        reader = _Lines(lines)
        while not shell.is_over and (line := await reader.next()) is not None:
            await shell.execute(line)
            output.check()
    return shell.status


@asynccontextmanager
async def _shell(hosts: str, settings: Settings) -> "AsyncIterator[tuple[Shell, _Output]]":
    """Open a shell with a session; a script fails without one."""
    output = _Output()
    shell = Shell(hosts, settings, COMMANDS, out=output.out, err=output.err)
    shell.out(f"Connecting to {hosts}")
    await shell.connect(hosts)
    try:
        await shell.client()
        yield shell, output
    finally:
        # Upstream leaves without a word, and without closing; so nothing is told of this.
        shell.prints_watches = False
        await shell.close()


class _Lines:
    """Reads lines in a thread of its own, when one is wanted."""

    def __init__(self, stream: IO[bytes]) -> None:
        # Not through the stream: its lock would be held by a thread that never returns, and Python
        # cannot end then.
        self._file = stream.fileno()
        self._loop = asyncio.get_running_loop()
        self._pending = b""
        self._is_over = False
        self._wanted = threading.Semaphore(0)
        self._chunk: asyncio.Future[bytes] = self._loop.create_future()
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    async def next(self) -> str | None:
        """Return the next line without its end, or None at the end of input."""
        while b"\n" not in self._pending and not self._is_over:
            self._chunk = self._loop.create_future()
            self._wanted.release()
            chunk = await self._chunk
            self._pending += chunk
            self._is_over = not chunk
        if not self._pending:
            return None
        line, _, self._pending = self._pending.partition(b"\n")
        return line.removesuffix(b"\r").decode("utf-8", "surrogateescape")

    def _read(self) -> None:
        while True:
            self._wanted.acquire()
            try:
                chunk = os.read(self._file, _CHUNK_BYTES)
            except OSError:
                # Closed, or a folder: there are no lines.
                chunk = b""
            with contextlib.suppress(RuntimeError):
                # The loop may be gone when it comes.
                self._loop.call_soon_threadsafe(self._give, chunk)

    def _give(self, chunk: bytes) -> None:
        if not self._chunk.done():
            self._chunk.set_result(chunk)


class _Output:
    """Stdout and stderr, for commands and events alike.

    Events are printed from within the client, which must not fail when stdout is closed; the error
    is kept, and raised after the command.
    """

    _broken: BrokenPipeError | None = None

    def out(self, text: str, end: str = "\n") -> None:
        self._write(sys.stdout.buffer, text + end)

    def err(self, text: str, end: str = "\n") -> None:
        self._write(sys.stderr.buffer, text + end)

    def check(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _write(self, stream: IO[bytes], text: str) -> None:
        try:
            stream.write(text.encode("utf-8", "surrogateescape"))
            # At once, so that both streams are in order where they are one.
            stream.flush()
        except BrokenPipeError as error:
            self._broken = error
