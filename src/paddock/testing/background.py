"""An event loop in a thread, for blocking tests."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

DEADLINE: Final = 30.0
"""Timeout of a call into such a loop, in seconds."""


class BackgroundLoop:
    """Runs from `open` to `close`. `problems` are the failures of its callbacks."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = asyncio.new_event_loop() if loop is None else loop
        self.problems: list[str] = []
        # A daemon, so that a forgotten one does not keep the process alive.
        self._thread = threading.Thread(target=self._run, name="paddock-testing", daemon=True)

    def open(self, beginning: Coroutine[Any, Any, None]) -> None:
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
        problem = context.get("exception")
        trace = "" if problem is None else "".join(traceback.format_exception(problem))
        self.problems.append(f"{context['message']}\n{trace}")
