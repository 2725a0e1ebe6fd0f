"""Asks for the changes of the past: `paddock.history.pages`, in a process of its own.

The process is started when a feed wants them first, and ends some time after the last one did. It
answers one request at a time. If it ends, another one is started for the next request. A request
that is given up is answered all the same, and its answer thrown away: the process is kept, and with
it the states that other feeds go on with.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any, Final

from paddock.server.connections.feeds import HistoryGone, PastPage
from paddock.state.access import Identities

# How long the process waits for another request before it is ended.
_IDLE_SECONDS: Final = 60.0
# How long is waited for what was applied to be in a file, and how often is looked.
_WRITTEN_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.05
# A line is short; changes come behind it.
_PIPE_BYTES: Final = 1 << 20


class HistoryPages:
    """The history of one data folder, for change feeds."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        # Requests under way, also those that were given up.
        self._exchanges: set[asyncio.Task[tuple[dict[str, Any], bytes]]] = set()
        self._is_closed = False

    async def read(
        self, path: bytes, since: int, up_to: int, limit_bytes: int, identities: Identities
    ) -> PastPage:
        """Read a page; see `PastChanges`. Raises HistoryGone, and RuntimeError if it fails."""
        request = {
            "path": path.hex(),
            "since": since,
            "up_to": up_to,
            "limit": limit_bytes,
            "identities": identities.wire.hex(),
        }
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _WRITTEN_SECONDS
        while True:
            header, changes = await self._ask(request)
            if "gone" in header:
                raise HistoryGone(header["gone"])
            if "error" in header:
                raise RuntimeError(header["error"])
            if header["until"] > since or loop.time() > deadline:
                return PastPage(changes, header["until"], header["count"])
            await asyncio.sleep(_LOOK_SECONDS)

    async def close(self) -> None:
        """End the process."""
        self._is_closed = True
        process = self._process
        self._end()
        if process is not None:
            await process.wait()
        for exchange in self._exchanges:
            exchange.cancel()
        if self._exchanges:
            await asyncio.wait(self._exchanges)

    async def _ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        exchange = asyncio.create_task(self._exchange(request))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._forget)
        return await asyncio.shield(exchange)

    def _forget(self, exchange: asyncio.Task[tuple[dict[str, Any], bytes]]) -> None:
        self._exchanges.discard(exchange)
        if not exchange.cancelled():
            # Whoever has given it up does not ask what became of it.
            exchange.exception()

    async def _exchange(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        async with self._turn:
            if self._is_closed:
                raise RuntimeError("the server stops")
            self._keep()
            process = await self._started()
            try:
                return await _exchange(process, request)
            except BaseException:
                # Its answer may be still to come, and would be taken for another one's.
                self._end()
                raise
            finally:
                self._idle = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._end)

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            # -P: no module is imported from the current folder.
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "paddock.history.pages"),
                str(self._data.absolute()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_PIPE_BYTES,
            )
        return self._process

    def _keep(self) -> None:
        """Do not end the process for want of requests."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _end(self) -> None:
        process, self._process = self._process, None
        self._keep()
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


async def _exchange(
    process: asyncio.subprocess.Process, request: dict[str, Any]
) -> tuple[dict[str, Any], bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    await process.stdin.drain()
    line = await process.stdout.readline()
    if not line:
        raise RuntimeError("the process that reads history has ended")
    header: dict[str, Any] = json.loads(line)
    changes = await process.stdout.readexactly(header.get("size", 0))
    return header, changes
