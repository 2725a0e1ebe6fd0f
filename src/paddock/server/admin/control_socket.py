"""The control socket: how maintenance commands talk to a running server.

It is a Unix socket in the data folder, which only the owner may connect to. A request is one line
of JSON, and so is its answer:

    {"command": "snapshot"}
    {"ok": true, "index": 812}
    {"command": "word", "word": "mntr"}
    {"ok": true, "text": "zk_version…"}

The length of a line, the time in which it must arrive and the number of connections are limited.
The name of a socket must be shorter than the path of a data folder may be, so a long one goes
through a descriptor of the open folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from paddock.errors import PaddockError
from paddock.server.admin.rate_limits import Tasks

logger: Final = logging.getLogger(__name__)

_NAME: Final = "control"
LINE_BYTES_MAX: Final = 4096
# Of what a four-letter word says; each of its bytes may be six in JSON.
WORD_BYTES_MAX: Final = 1 << 20
LINE_TIMEOUT: Final = 5.0
CONNECTIONS_MAX: Final = 8
# The size of sockaddr_un on all systems, with its final zero.
_NAME_BYTES_MAX: Final = 103

Message: TypeAlias = dict[str, Any]


class ControlError(PaddockError):
    """The server cannot be reached, or refuses; one line that says why."""


class RefusedError(ControlError):
    """The server has answered with a refusal."""


class ControlSocket:
    """The socket of a running server. `answer` may raise PaddockError to refuse."""

    def __init__(self, folder: Path, answer: Callable[[Message], Awaitable[Message]]) -> None:
        self._folder = folder
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._names = contextlib.ExitStack()
        self._tasks = Tasks()
        # Those of them that wait for a request, and may be cancelled.
        self._waiting = Tasks()

    async def open(self) -> None:
        """Listen. A failure is only logged: the server works without the socket."""
        try:
            listener = _bind(self._names.enter_context(_short_name(self._folder)))
        except (OSError, ControlError) as error:
            self._names.close()
            logger.warning("there is no control socket, so backups cannot be asked for: %s", error)
            return
        self._server = await asyncio.start_unix_server(
            self._accept, sock=listener, limit=LINE_BYTES_MAX
        )

    async def close(self) -> None:
        """Accept no more requests; answer those that have arrived."""
        if self._server is not None:
            self._server.close()
            self._server = None
            for task in self._waiting:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            with contextlib.suppress(OSError):
                (self._folder / _NAME).unlink()
        self._names.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= CONNECTIONS_MAX:
            writer.close()
        else:
            self._waiting.own(self._tasks.start(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(LINE_TIMEOUT):
                line = await reader.readline()
            task = asyncio.current_task()
            assert task is not None
            self._waiting.discard(task)
            reply = await self._reply(line)
            async with asyncio.timeout(LINE_TIMEOUT):
                writer.write(json.dumps(reply).encode() + b"\n")
                await writer.drain()
        except (TimeoutError, ValueError, OSError):
            # Too slow, too long, or closed.
            pass
        finally:
            writer.close()

    async def _reply(self, line: bytes) -> Message:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            return {"ok": False, "error": "expected one line with a JSON object"}
        try:
            return {"ok": True, **await self._answer(request)}
        except PaddockError as error:
            return {"ok": False, "error": str(error)}
        except Exception:
            logger.exception("a command on the control socket failed")
            return {"ok": False, "error": "it failed unexpectedly; the server's log says how"}


def ask(folder: Path, request: Message, timeout: float, *, limit: int = LINE_BYTES_MAX) -> Message:
    """Send a request to the server that uses a data folder, and return its answer. Blocks.

    The answer has at most `limit` bytes.
    Raises ControlError if there is no answer in time, RefusedError if it is a refusal.
    """
    try:
        with _short_name(folder) as name, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout)
            connection.connect(name)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answers:
                reply = json.loads(answers.readline(limit))
    except (OSError, ValueError) as error:
        raise ControlError(
            f"{folder}: the server does not answer: {getattr(error, 'strerror', None) or error}"
        ) from error
    if not isinstance(reply, dict) or reply.get("ok") is not True:
        raise RefusedError(f"{folder}: the server says: {dict(reply).get('error')}")
    return reply


def _bind(name: str) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        # Left by a server that was killed: we have claimed the folder.
        if not stat.S_ISSOCK(os.stat(name).st_mode):
            raise ControlError(f"{_NAME} is there and is no socket")
        os.unlink(name)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(name)
        # No client can connect before `listen`.
        os.chmod(name, 0o600)
        listener.listen(CONNECTIONS_MAX)
    except BaseException:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def _short_name(folder: Path) -> Iterator[str]:
    """Return a name for the socket that is short enough, valid within the scope."""
    name = str(folder / _NAME)
    if len(os.fsencode(name)) <= _NAME_BYTES_MAX:
        yield name
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not os.path.isdir(f"/proc/self/fd/{opened}"):
            raise ControlError(f"{folder}: the path is too long for a socket")
        yield f"/proc/self/fd/{opened}/{_NAME}"
    finally:
        os.close(opened)
