"""The admin command `past`: a command on the past of this server, for those who are elsewhere.

    curl -H @authorization -G http://127.0.0.1:8080/commands/past \\
        --data-urlencode 'arguments=["history", "/app", "--json"]'

It runs `paddock` with these arguments on the data folder, in a process of its own, and sends what
that printed. The header `exit_status` has its status, and `error` the line that it wrote about a
failure, with percent signs as in URLs. The rules:

* Only the superuser may ask, since the history has everything.
* Only commands that read are run, and only on this server's own data: an argument that names files
  or another server is refused.
* Few run at a time, and none for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from paddock.server.admin.refusal import RefusedError

PAST: Final = "past"
COMMANDS: Final = ("get", "ls", "stat", "tree", "export", "history", "diff", "explain")

_RUNNING_MAX: Final = 2
_SECONDS_MAX: Final = 600.0
_PIECE_BYTES: Final = 64 << 10
# What an argument may not begin with: where to read from, and what to write to.
_FOREIGN: Final = (
    *("--data", "--log-dir", "--server", "--admin", "--auth", "--sasl", "--kerberos", "--tls"),
    "--overwrite",
)


@dataclass(frozen=True, slots=True)
class PastAnswer:
    """What a command has printed, ready to send."""

    status: int
    error: str
    size: int
    # To be closed after it was sent.
    file: IO[bytes]

    def pieces(self) -> Iterator[bytes]:
        while piece := self.file.read(_PIECE_BYTES):
            yield piece


def parse_arguments(text: str | None) -> list[str]:
    """Return the arguments of a command that may be run. Raises RefusedError (400)."""
    try:
        found = json.loads(text or "")
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise RefusedError(400, "arguments: expected a list of strings, in JSON")
    if not found or found[0] not in COMMANDS:
        raise RefusedError(400, f"arguments: the first is one of {', '.join(COMMANDS)}")
    for one in found:
        if one.startswith(_FOREIGN):
            raise RefusedError(400, f"arguments: {one.partition('=')[0]} is not for here")
        if "\0" in one:
            raise RefusedError(400, "arguments: one has a zero byte in it")
    if found[0] == "export" and "-" not in found:
        raise RefusedError(400, "arguments: an export goes to -, and from there to the client")
    if found[0] in COMMANDS[:5] and "--at" not in found:
        raise RefusedError(400, "arguments: --at says of which moment")
    return found


class PastCommands:
    """Runs the commands of one server."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._running = 0

    async def run(self, arguments: list[str]) -> PastAnswer:
        """Run a command to its end. Raises RefusedError."""
        if self._running >= _RUNNING_MAX:
            raise RefusedError(429, "Others ask for the past already; try again", 1.0)
        self._running += 1
        file = tempfile.TemporaryFile(prefix="paddock-past-")  # noqa: SIM115
        try:
            async with asyncio.timeout(_SECONDS_MAX):
                status, error = await self._run(arguments, file)
            size = file.tell()
            file.seek(0)
        except BaseException as failure:
            file.close()
            if isinstance(failure, TimeoutError):
                raise RefusedError(500, "It took too long: ask for less") from None
            if isinstance(failure, OSError):
                raise RefusedError(500, f"It could not be run: {failure.strerror}") from None
            raise
        finally:
            self._running -= 1
        return PastAnswer(status, error, size, file)

    async def _run(self, arguments: list[str], file: IO[bytes]) -> tuple[int, str]:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PADDOCK_")
        }
        # -P: no module is imported from the current folder.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "paddock", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=asyncio.subprocess.PIPE,
            env={**environment, "PADDOCK_DATA": str(self._data.absolute())},
        )
        try:
            _, told = await process.communicate()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        # The file is the process's, which has moved on in it.
        file.seek(0, os.SEEK_END)
        assert process.returncode is not None
        return process.returncode, told.decode("utf-8", "replace").strip().rpartition("\n")[2]
