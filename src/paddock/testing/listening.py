"""What servers and proxies of tests share: an address, a reserved port, a loop in a thread.

Between the end of one server and the start of the next, the system may give the same port to
another process. A socket that is bound to it and never listens keeps it: servers can still be bound
to it, and connections are refused meanwhile.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import traceback
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

DEADLINE: Final = 30.0
"""Timeout of a call into such a loop, in seconds."""

# What asyncio says of a connection that came just before its server was closed.
_COMES_TOO_LATE: Final = "Error on transport creation for incoming connection"


class Listening:
    """A server or a proxy, which listens at an address."""

    @property
    def address(self) -> tuple[str, int]:
        """Where clients are to connect."""
        raise NotImplementedError

    @property
    def hosts(self) -> str:
        """The address as `host:port`, as clients take it: ours, kazoo's and others."""
        return f"{self.address[0]}:{self.address[1]}"


class ReservedPort:
    """A port on the loopback address that the system has chosen."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        host, number = self._socket.getsockname()
        self.address: tuple[str, int] = (host, number)
        if sys.platform != "linux":
            # Elsewhere two sockets cannot have one port; there it is only likely to stay ours.
            self._socket.close()

    def listen(self) -> socket.socket:
        """Open a socket that listens there: from now on connections wait for it."""
        listening = socket.socket()
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(self.address)
            listening.listen(100)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
        return listening

    def close(self) -> None:
        self._socket.close()


class BackgroundLoop:
    """Runs from `open` to `close`. `problems` are the failures of its callbacks."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = asyncio.new_event_loop() if loop is None else loop
        self.problems: list[str] = []
        self._is_closing = False
        # A daemon, so that a forgotten one does not keep the process alive.
        self._thread = threading.Thread(target=self._run, name="paddock-testing", daemon=True)

    def open(self, beginning: Coroutine[Any, Any, object]) -> None:
        """Start it with a coroutine; stop it again if that fails."""
        self.loop.set_exception_handler(self._report)
        self._thread.start()
        try:
            self.call(beginning)
        except BaseException:
            self._stop()
            raise

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(DEADLINE)

    def close(self, end: Coroutine[Any, Any, None], error: object) -> None:
        """Stop it after a coroutine.

        Raises RuntimeError for the first failed callback, unless there is an error already.
        """
        self._is_closing = True
        try:
            self.call(end)
        finally:
            self._stop()
        if error is None and self.problems:
            raise RuntimeError(self.problems[0])

    def _stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(DEADLINE)

    def _run(self) -> None:
        self.loop.run_forever()
        # Here, since the thread that stops us may run a loop of its own.
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def _report(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if self._is_closing and context["message"] == _COMES_TOO_LATE:
            return
        problem = context.get("exception")
        trace = "" if problem is None else "".join(traceback.format_exception(problem))
        self.problems.append(f"{context['message']}\n{trace}")
