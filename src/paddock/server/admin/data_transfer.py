"""The requests to the admin server that are about all data: how `snapshot` and `restore` go on.

Whether a client may ask, and what is sent or taken, is in `paddock.server.admin.data_commands`;
here it goes to and from a connection. Each request is a task:

* It belongs to the admin server, which cancels it when it stops, and it ends with its connection.
* A restore whose body has come whole belongs to `AdminLimits`, which outlives the server: that the
  server stops is part of the restore, and neither the server nor its client may end it any more.

A restore counts for its rate limit as soon as some of its body was handed over, whatever comes of
it, as upstream: it has had a process to itself. One that came to nothing before that is free.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import h11

from paddock.server.admin.audit_format import FAILURE, SUCCESS
from paddock.server.admin.commands import written
from paddock.server.admin.data_commands import (
    RESTORE,
    SNAPSHOT,
    DataCommands,
    RefusedError,
    RestoreProcess,
    no_backup,
)
from paddock.server.admin.metrics import NOT_SERVING
from paddock.state.access import NOBODY

if TYPE_CHECKING:
    from paddock.server.admin.http import AdminServer
    from paddock.server.admin.http_connection import AdminConnection, Headers

# How each is asked for.
METHODS: Final = {SNAPSHOT: ("GET",), RESTORE: ("POST",)}
# How fast their bytes must be taken and come, so that nobody holds a file or a process for ever.
_BYTES_A_SECOND_MIN: Final = 16 << 10

_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"


class Transfer:
    """One of these requests, on its connection."""

    def __init__(self, server: AdminServer, connection: AdminConnection, command: str) -> None:
        self._server = server
        self._connection = connection
        self._command = command
        self._limits = _commands_of(server).limits
        # Who asks.
        self._identities = NOBODY
        # When it was counted for the rate limit, in the event loop's time.
        self._counted_at = 0.0

    def authorize(self, authorization: bytes | None, *, is_open: bool) -> None:
        """Raise RefusedError unless the client may ask for this, and now."""
        commands = _commands_of(self._server)
        try:
            if not is_open:
                raise RefusedError(503, NOT_SERVING)
            self._identities = commands.identify(authorization, self._connection.address)
            commands.authorize(self._identities)
            check = commands.check_snapshot if self._command == SNAPSHOT else commands.check_restore
            self._counted_at = check()
        except RefusedError:
            self._tell(FAILURE)
            raise

    def start(self, arguments: Mapping[str, str]) -> asyncio.Task[None]:
        """Start it; the answer follows."""
        if self._command == SNAPSHOT:
            work = self._snapshot(arguments, self._connection.closing())
        else:
            work = self._restore()
        return self._server.tasks.start(work)

    def say_refused(self, refusal: RefusedError, headers: Headers) -> None:
        """Answer that it is refused."""
        if refusal.retry_after:
            headers = [*headers, ("Retry-After", str(math.ceil(refusal.retry_after)))]
        answer = written({"command": self._command, "error": refusal.reason})
        self._connection.send(refusal.status, _JSON, answer, headers)

    def _tell(self, result: str) -> None:
        self._limits.tell(self._command, result, self._identities, self._connection.address)

    async def _snapshot(self, arguments: Mapping[str, str], closing: Headers) -> None:
        connection, server = self._connection, self._server
        try:
            taken = await _commands_of(server).take_snapshot(server.wall_clock_ms())
        except RefusedError as refusal:
            self._tell(FAILURE)
            self.say_refused(refusal, closing)
            return
        self._tell(SUCCESS)
        headers = [("last_zxid", f"0x{taken.zxid:x}"), ("snapshot_size", str(taken.size)), *closing]
        connection.close_after_answer(taken.file)
        if arguments.get("streaming", "true").lower() == "true":
            bytes_min = max(int(_BYTES_A_SECOND_MIN * server.idle_timeout), 1)
            connection.send(
                200, _BYTES, taken.pieces, headers, size=taken.size, bytes_min=bytes_min
            )
        else:
            answer = written({"command": SNAPSHOT, "error": None})
            connection.send(200, _JSON, answer, headers)

    async def _restore(self) -> None:
        # Nothing of this may hold the state: it goes on when another server has taken our place.
        closing: Headers = [("Connection", "close")]
        connection = self._connection
        result = FAILURE
        try:
            zxid = await self._exchange()
            result = SUCCESS
        except RefusedError as refusal:
            self.say_refused(refusal, closing)
        except (h11.RemoteProtocolError, TimeoutError):
            # The body was cut short, or came too slowly.
            connection.abort()
        except asyncio.CancelledError:
            # Nobody would answer any more.
            connection.abort()
            raise
        else:
            answer = written({"last_zxid": zxid, "command": RESTORE, "error": None})
            connection.send(200, _JSON, answer, closing)
        finally:
            self._tell(result)

    async def _exchange(self) -> int:
        """Hand the body over to a process that restores it; return the zxid that follows it."""
        is_costly = False
        try:
            self._connection.invite_body()
            begun = asyncio.get_running_loop().time()
            first = await self._connection.read_body()
            if first is None:
                raise no_backup("it is empty")
            process = await _commands_of(self._server).begin_restore()
            is_costly = True
        finally:
            if not is_costly:
                self._limits.restore.give_back(self._counted_at)
        try:
            await self._hand_over(process, first, begun)
            task = asyncio.current_task()
            assert task is not None
            # From here on our own end is part of it: neither we nor the peer may stop it.
            self._server.connections.pop(self._connection, None)
            self._server.tasks.hand_over(task, self._limits.restores)
            return await process.finish()
        except BaseException:
            await process.kill()
            raise

    async def _hand_over(self, process: RestoreProcess, first: bytes, begun: float) -> None:
        """Pass the body on; raises TimeoutError if it comes too slowly."""
        loop = asyncio.get_running_loop()
        timeout = self._server.idle_timeout
        received = 0
        wanted_until: float | None = None
        piece: bytes | None = first
        while piece is not None:
            received += len(piece)
            seconds = loop.time() - begun
            if seconds > timeout and received < seconds * _BYTES_A_SECOND_MIN:
                raise TimeoutError("the body comes too slowly")
            if wanted_until is None:
                if not await process.write(piece):
                    # It is refused. The peer hears of it only when it has sent the rest.
                    wanted_until = loop.time() + timeout
            elif loop.time() > wanted_until:
                return
            piece = await self._connection.read_body()


def _commands_of(server: AdminServer) -> DataCommands:
    assert server.data_commands is not None, "the admin server has not been started"
    return server.data_commands
