"""An event loop in a thread of its own, so that blocking tests can have what asyncio runs."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

DEADLINE: Final = 30.0
"""Seconds that anything in such a loop may take, before its caller is told that it hangs."""


class BackgroundLoop:
    """Runs from `start` to `stop`. What its callbacks failed with is in `problems`."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = asyncio.new_event_loop() if loop is None else loop
        self.problems: list[str] = []
        # Nobody who forgets to stop it has a process that does not end.
        self._thread = threading.Thread(target=self._run, name="paddock-testing", daemon=True)

    def start(self) -> None:
        self.loop.set_exception_handler(self._report)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(DEADLINE)

    def stop(self) -> None:
        """End the loop and its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(DEADLINE)

    def raise_problems(self) -> None:
        """Raise the first thing that went wrong unseen, if anything did."""
        if self.problems:
            raise RuntimeError(self.problems[0])

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
