"""A server in this process, on a disk that fails when it is told to.

It runs on an event loop in a thread of its own, so a test talks to it with blocking sockets, as to
any other server.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future

from paddock.log.file.disk import Disk
from paddock.server.config.config import ServerConfig
from paddock.testing import ServerThread
from tests.fault.stage.process import DEADLINE_S


class EmbeddedServer(ServerThread):
    """`with` starts it and stops it cleanly."""

    def __init__(
        self,
        config: ServerConfig,
        disk: Disk | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config=config, disk=disk, loop=loop)

    def stop(self) -> None:
        self.begin_stop().result(DEADLINE_S)

    def begin_stop(self) -> Future[None]:
        """Tell it to stop, and return when it knows."""
        loop = self._background.loop

        async def stop() -> None:
            await self._embedded.stop()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"a server that has stopped has nothing left to do: {left}"

        stopping = asyncio.run_coroutine_threadsafe(stop(), loop)
        # The loop runs callbacks in FIFO order, so `stop` has begun when the event is set.
        begun = threading.Event()
        loop.call_soon_threadsafe(begun.set)
        assert begun.wait(DEADLINE_S)
        return stopping

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let its event loop do nothing: whatever comes meanwhile comes all at once."""
        begun, over = threading.Event(), threading.Event()

        def stand_still() -> None:
            begun.set()
            over.wait(DEADLINE_S)

        self._background.loop.call_soon_threadsafe(stand_still)
        assert begun.wait(DEADLINE_S)
        try:
            yield
        finally:
            over.set()
