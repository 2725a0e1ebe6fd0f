"""A log that fails while the server serves: everybody is away until it works again.

Nobody knows whether the last batch was written, so nobody may be told anything about it: all
connections are closed, the log is read again, and what turns out to be durable is applied.
Meanwhile those who ask for no more may read, if the settings allow that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from paddock.log.interface import Log, LogError
from paddock.server.core import Core

logger: Final = logging.getLogger(__name__)

# How long a broken log is left alone before it is tried again.
_PAUSE: Final = 1.0


class Outages:
    """Gets a server over the failures of its log."""

    def __init__(self, service: Core, log: Log) -> None:
        self._service = service
        self._log = log
        self._stopping = asyncio.Event()
        # The way back from the one that there is now.
        self._recovery: asyncio.Task[None] | None = None

    def begin(self, reason: str) -> None:
        """Disconnect everybody and read the log again: nobody knows what was written."""
        service = self._service
        logger.error("the log failed, clients are disconnected until it works again: %s", reason)
        service.is_open = False
        for connection in list(service.connections):
            connection.abort()
        service.is_read_only = service.config.read_only_mode_enabled
        service.proposer.drop()
        self._recovery = asyncio.get_running_loop().create_task(self._recover())

    async def stop(self) -> None:
        """Try no more, and wait for the attempt under way: the log is not closed in its middle."""
        self._stopping.set()
        if self._recovery is not None:
            await self._recovery

    async def _recover(self) -> None:
        service = self._service
        loop = asyncio.get_running_loop()
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
            # Nobody could be heard meanwhile, so nobody is to be expired for that.
            service.proposer.drop()
            service.is_read_only = False
            for connection in list(service.connections):
                connection.abort()
            # What turned out to be written comes by the replica, like every record.
            await service.replica.catch_up()
            if service.replica.is_dead():
                break
            service.proposer.resume()
            service.tracker.renew_all()
            service.is_open = not self._stopping.is_set()
            logger.warning("the log works again, clients may come back")
            break
        self._recovery = None
