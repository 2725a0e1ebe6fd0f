"""Recovery of a log that fails while the server serves.

The outcome of the proposals in flight is unknown, so none of them is answered: all connections are
closed, the log is recovered, and the replica applies what turns out to be committed. Meanwhile
read-only clients are served, if the settings allow that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from paddock.log.interface import Log, LogError
from paddock.log.waits import until_none
from paddock.server.connections.core import Core
from paddock.storage.events import LOG_FAILED, LOG_RECOVERED, NOT_SERVING, SERVING_AGAIN

logger: Final = logging.getLogger(__name__)

# Seconds between two attempts.
_PAUSE: Final = 1.0


class LogRecovery:
    """Takes a server out of service when its log fails, and back when it is recovered."""

    def __init__(self, core: Core, log: Log) -> None:
        self._core = core
        self._log = log
        self._stopping = asyncio.Event()
        # The recovery under way, if there is one.
        self._task: asyncio.Task[None] | None = None

    def begin(self, reason: str) -> None:
        """Disconnect all clients and recover the log."""
        core = self._core
        logger.error("the log failed, clients are disconnected until it works again: %s", reason)
        core.replica.journal.add(LOG_FAILED, text=reason)
        core.is_open = False
        self._abort_connections(NOT_SERVING)
        core.is_read_only = core.config.read_only_mode_enabled
        core.proposer.drop()
        self._task = asyncio.get_running_loop().create_task(self._recover())

    async def stop(self) -> None:
        """Try no more, and wait for the attempt under way: the log is not closed in its middle."""
        self._stopping.set()
        if self._task is not None:
            await self._task

    async def _recover(self) -> None:
        core = self._core
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while not self._stopping.is_set():
            try:
                await loop.run_in_executor(None, self._log.recover)
            except (LogError, MemoryError, RuntimeError) as error:
                # Without memory there may not even be a thread to look with.
                logger.error("the log still fails: %s", str(error) or type(error).__name__)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_PAUSE):
                        await self._stopping.wait()
                continue
            core.is_read_only = False
            self._abort_connections(SERVING_AGAIN)
            # What turned out to be written comes by the replica, like every record.
            await until_none(core.replica.catch_up)
            if core.replica.is_dead():
                break
            # No client could be heard meanwhile, so no session is expired for that.
            core.proposer.drop()
            core.tracker.renew_all()
            core.proposer.resume()
            core.is_open = not self._stopping.is_set()
            logger.warning("the log works again, clients may come back")
            core.replica.journal.add(LOG_RECOVERED, seconds=loop.time() - begun)
            break
        self._task = None

    def _abort_connections(self, reason: str) -> None:
        for connection in list(self._core.connections):
            connection.abort(reason)
