"""The admin commands `snapshot`, `restore` and `past` on their HTTP connections.

`paddock.server.admin.data_commands` decides who may run them, and what is sent or taken. Each runs
in a task:

* The connection pool owns the task, and cancels it when the server stops or the connection closes.
* A restore whose body has arrived moves to `AdminLimits`, which outlives the server: the restore
  stops the server, and neither server nor client may cancel it any more.

As upstream, a restore counts for its rate limit once part of its body was handed over, whatever
its result: it has started a process. A restore that failed before that does not count.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import h11

from paddock.server.admin.audit_format import FAILURE, SUCCESS
from paddock.server.admin.commands import encode_json
from paddock.server.admin.data_commands import (
    RESTORE,
    SNAPSHOT,
    DataCommands,
    RestoreProcess,
    no_backup,
)
from paddock.server.admin.http_connection import (
    BYTES,
    CLOSE,
    JSON,
    ConnectionPool,
    Headers,
    HttpConnection,
)
from paddock.server.admin.metrics import NOT_SERVING
from paddock.server.admin.past_command import PAST, parse_arguments
from paddock.server.admin.refusal import RefusedError
from paddock.state.access import NOBODY

METHODS: Final = {SNAPSHOT: ("GET",), RESTORE: ("POST",), PAST: ("GET",)}
# The least rate of both directions, so that no client holds a file or a process for ever.
_BYTES_PER_SECOND_MIN: Final = 16 << 10


class Transfer:
    """One request for one of them."""

    def __init__(
        self, connection: HttpConnection, pool: ConnectionPool, commands: DataCommands, command: str
    ) -> None:
        self._connection = connection
        self._pool = pool
        self._command = command
        # None once a restore has begun: it must not hold the state that it replaces.
        self._commands: DataCommands | None = commands
        self._limits = commands.limits
        self._identities = NOBODY
        # When it was counted for the rate limit, in the event loop's time.
        self._counted_at = 0.0

    def start(
        self, authorization: bytes | None, arguments: Mapping[str, str], *, is_open: bool
    ) -> None:
        """Start the task that answers, or refuse the request."""
        assert self._commands is not None
        try:
            if not is_open:
                raise RefusedError(503, NOT_SERVING)
            self._identities = self._commands.identify(authorization, self._connection.address)
            self._commands.authorize(self._identities)
            self._counted_at = self._commands.check(self._command)
        except RefusedError as refusal:
            if authorization is not None and refusal.status in (401, 403):
                now = asyncio.get_running_loop().time()
                self._limits.guesses.count(self._connection.address, now)
            self._audit(FAILURE)
            self._respond_refused(refusal, self._connection.close_headers())
            return
        if self._command == SNAPSHOT:
            work = self._snapshot(self._commands, arguments, self._connection.close_headers())
        elif self._command == PAST:
            work = self._past(self._commands, arguments, self._connection.close_headers())
        else:
            work = self._restore()
        self._connection.attach(self._pool.tasks.start(work))

    def _audit(self, result: str) -> None:
        self._limits.audit(self._command, result, self._identities, self._connection.address)

    def _respond_refused(self, refusal: RefusedError, headers: Headers) -> None:
        if refusal.retry_after:
            headers = [*headers, ("Retry-After", str(math.ceil(refusal.retry_after)))]
        self._respond(refusal.status, headers, refusal.reason)

    def _respond(
        self, status: int, headers: Headers, error: str | None = None, **values: object
    ) -> None:
        answer = encode_json({**values, "command": self._command, "error": error})
        self._connection.respond(status, JSON, answer, headers)

    async def _snapshot(
        self, commands: DataCommands, arguments: Mapping[str, str], headers: Headers
    ) -> None:
        connection, pool = self._connection, self._pool
        try:
            taken = await commands.take_snapshot(pool.wall_clock_ms())
        except RefusedError as refusal:
            self._audit(FAILURE)
            self._respond_refused(refusal, headers)
            return
        self._audit(SUCCESS)
        headers = [("last_zxid", f"0x{taken.zxid:x}"), ("snapshot_size", str(taken.size)), *headers]
        connection.file = taken.file
        if arguments.get("streaming", "true").lower() == "true":
            bytes_min = max(int(_BYTES_PER_SECOND_MIN * pool.idle_timeout), 1)
            connection.respond(
                200, BYTES, taken.pieces, headers, size=taken.size, bytes_min=bytes_min
            )
        else:
            self._respond(200, headers)

    async def _past(
        self, commands: DataCommands, arguments: Mapping[str, str], headers: Headers
    ) -> None:
        assert commands.past is not None, "it was looked at"
        try:
            answer = await commands.past.run(parse_arguments(arguments.get("arguments")))
        except RefusedError as refusal:
            self._audit(FAILURE)
            self._respond_refused(refusal, headers)
            return
        self._audit(SUCCESS)
        self._connection.file = answer.file
        headers = [("exit_status", str(answer.status)), ("error", quote(answer.error)), *headers]
        bytes_min = max(int(_BYTES_PER_SECOND_MIN * self._pool.idle_timeout), 1)
        self._connection.respond(
            200, BYTES, answer.pieces(), headers, size=answer.size, bytes_min=bytes_min
        )

    async def _restore(self) -> None:
        connection = self._connection
        result = FAILURE
        try:
            zxid = await self._run_restore()
            result = SUCCESS
        except RefusedError as refusal:
            self._respond_refused(refusal, [CLOSE])
        except (h11.RemoteProtocolError, TimeoutError):
            # The body was cut short, or arrived too slowly.
            connection.abort()
        except asyncio.CancelledError:
            connection.abort()
            raise
        else:
            self._respond(200, [CLOSE], last_zxid=zxid)
        finally:
            self._audit(result)

    async def _run_restore(self) -> int:
        """Pass the body to a process that restores it; return the zxid after it."""
        assert self._commands is not None
        is_counted = False
        try:
            self._connection.send_continue()
            begun = asyncio.get_running_loop().time()
            first = await self._connection.read_body()
            if first is None:
                raise no_backup("it is empty")
            process = await self._commands.begin_restore()
            is_counted = True
        finally:
            self._commands = None
            if not is_counted:
                self._limits.restore.give_back(self._counted_at)
        try:
            await self._pass_body(process, first, begun)
            task = asyncio.current_task()
            assert task is not None
            # From here on the server's stop is part of the restore: nothing may cancel it.
            self._pool.connections.pop(self._connection, None)
            self._pool.tasks.hand_over(task, self._limits.restores)
            return await process.finish()
        except BaseException:
            await process.kill()
            raise

    async def _pass_body(self, process: RestoreProcess, first: bytes, begun: float) -> None:
        """Pass the body on. Raises TimeoutError if it arrives too slowly."""
        loop = asyncio.get_running_loop()
        timeout = self._pool.idle_timeout
        received = 0
        refused_until: float | None = None
        piece: bytes | None = first
        while piece is not None:
            received += len(piece)
            seconds = loop.time() - begun
            if seconds > timeout and received < seconds * _BYTES_PER_SECOND_MIN:
                raise TimeoutError("the body arrives too slowly")
            if refused_until is None:
                if not await process.write(piece):
                    # Refused. The peer reads the answer only after it has sent the rest.
                    refused_until = loop.time() + timeout
            elif loop.time() > refused_until:
                return
            piece = await self._connection.read_body()
