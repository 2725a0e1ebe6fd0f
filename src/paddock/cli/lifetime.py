"""Signals and service manager notifications of a server process.

SIGTERM and SIGINT end it in good order: what is under way is answered, a snapshot is written, the
status is 0. A second one ends it at once; nothing that was acknowledged is lost by that either, but
the next start has to read more of the log. SIGHUP does nothing, since files that were moved or
renewed are noticed without it; but it does not end the process. A service manager that wants to
know is told of all this, and that we are alive.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from typing import Final

from paddock.cli.notify import Notifier
from paddock.server.admin.log_handler import INTERVAL, LogHandler

logger: Final = logging.getLogger(__name__)


class Lifetime:
    """Made inside the running loop, before anything is served."""

    def __init__(self, log_handler: LogHandler, notifier: Notifier) -> None:
        self.stop = asyncio.Event()
        # Called before we leave at once.
        self.on_leaving: Callable[[], None] | None = None
        self._log_handler = log_handler
        self._notifier = notifier
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._asked_to_stop, number)
        self._loop.add_signal_handler(signal.SIGHUP, self._hung_up)
        self._repeat(INTERVAL, log_handler.flush_suppressed)

    def loading(self, status: str) -> None:
        self._notifier.status(status)

    def ready(self, status: str) -> None:
        self._notifier.ready(status)
        interval = self._notifier.watchdog_interval
        if interval is not None:
            # From the loop itself: if it hangs, so do all clients.
            self._repeat(interval, self._notifier.alive)

    def over(self) -> None:
        """Log what was suppressed."""
        self._log_handler.flush_suppressed(everything=True)

    def _asked_to_stop(self, number: int) -> None:
        name = signal.Signals(number).name
        if self.stop.is_set():
            logger.warning("%s again: leaving at once, without a snapshot", name)
            if self.on_leaving is not None:
                self.on_leaving()
            self.over()
            os._exit(128 + number)
        logger.info("%s: stopping", name)
        self._notifier.stopping("Answering what is under way, writing a snapshot")
        self.stop.set()

    def _hung_up(self) -> None:
        logger.info(
            "SIGHUP: nothing to do; files that were moved or renewed are noticed without it"
        )

    def _repeat(self, interval: float, action: Callable[[], None]) -> None:
        def again() -> None:
            action()
            self._loop.call_later(interval, again)

        self._loop.call_later(interval, again)
