"""A server in this process, on a disk that fails when it is told to.

It runs on an event loop in a thread of its own, so a test talks to it with blocking sockets, as to
any other server.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
import traceback
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from paddock.log.disk import Disk
from paddock.server.config import ServerConfig
from paddock.server.server import Server
from tests.fault.process import DEADLINE_S

T = TypeVar("T")


class EmbeddedServer:
    """`with` starts it and stops it cleanly."""

    def __init__(
        self,
        config: ServerConfig,
        disk: Disk | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._config = config
        self._disk = disk
        self._loop = asyncio.new_event_loop() if loop is None else loop
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._server: Server | None = None
        self.address = ("", 0)
        # Where TLS is spoken, if it is.
        self.secure_address = ("", 0)
        # What the event loop had to report: callbacks that failed.
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        self._loop.set_exception_handler(self._report)
        self._thread.start()
        try:
            self.start()
        except BaseException:
            self._end_loop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._server is not None:
                self.stop()
        finally:
            self._end_loop()
        if error is None:
            assert not self.problems, self.problems[0]

    def _report(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        trace = "" if problem is None else "".join(traceback.format_exception(problem))
        self.problems.append(f"{context['message']}\n{trace}")

    def start(self) -> None:
        """Start a server on the folder, as a new process would."""

        async def start() -> Server:
            server = Server(
                self._config,
                wall_clock_ms=lambda: time.time_ns() // 1_000_000,
                random_bytes=secrets.token_bytes,
                disk=self._disk,
            )
            await server.start()
            return server

        self._server = self._call(start())
        self.address = self._server.address
        self.secure_address = self._server.secure_address or ("", 0)

    def stop(self) -> None:
        self.begin_stop().result(DEADLINE_S)

    def begin_stop(self) -> Future[None]:
        """Tell it to stop, and return when it knows."""
        server, self._server = self._server, None
        assert server is not None

        async def stop() -> None:
            await server.stop()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"a server that has stopped has nothing left to do: {left}"

        stopping = asyncio.run_coroutine_threadsafe(stop(), self._loop)
        # The loop keeps the order: whoever comes second finds that the first has begun.
        begun = threading.Event()
        self._loop.call_soon_threadsafe(begun.set)
        assert begun.wait(DEADLINE_S)
        return stopping

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let its event loop do nothing: whatever comes meanwhile comes all at once."""
        begun, over = threading.Event(), threading.Event()

        def stand_still() -> None:
            begun.set()
            over.wait(DEADLINE_S)

        self._loop.call_soon_threadsafe(stand_still)
        assert begun.wait(DEADLINE_S)
        try:
            yield
        finally:
            over.set()

    def _call(self, coroutine: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(DEADLINE_S)

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_S)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
