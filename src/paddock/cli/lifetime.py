"""Signals and service manager notifications of a server process.

SIGTERM and SIGINT stop it in good order: requests in flight are answered, a snapshot is written,
the status is 0. A second one ends it at once; nothing acknowledged is lost, but the next start
reads more of the log. SIGHUP reads the file of settings again, for where etcd is; files that were
moved or renewed are noticed without it.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from paddock.server.admin.log_handler import INTERVAL, LogHandler

logger: Final = logging.getLogger(__name__)


class Notifier:
    """Tells the service manager that started us, if there is one, how we are.

    Whether, and how often, it wants to hear that we are alive is in `watchdog_interval`: half of
    the time after which it would take us for dead; None if it does not ask.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.watchdog_interval = _watchdog_interval(environment)
        self._address = environment.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            # A socket without a file.
            self._address = "\0" + self._address[1:]
        elif not self._address.startswith("/"):
            self._address = ""

    def send(self, *lines: str) -> None:
        """Send lines of systemd's protocol, such as `READY=1`."""
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            out.sendto("\n".join(lines).encode(), self._address)


def _watchdog_interval(environment: Mapping[str, str]) -> float | None:
    """Return the seconds between two watchdog messages; None if none are wanted."""
    # The manager says whose life it watches over: what we inherited need not be meant for us.
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    microseconds = environment.get("WATCHDOG_USEC", "")
    if not microseconds.isascii() or not microseconds.isdigit() or not int(microseconds):
        return None
    return int(microseconds) / 2_000_000


class Lifetime:
    """Made inside the running loop, before anything is served."""

    def __init__(self, log_handler: LogHandler, notifier: Notifier) -> None:
        self.stop = asyncio.Event()
        self.on_leaving: Callable[[], None] | None = None
        # Called at SIGHUP; None if there is nothing to read again.
        self.on_hangup: Callable[[], None] | None = None
        self._log_handler = log_handler
        self.notifier = notifier
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._asked_to_stop, number)
        self._loop.add_signal_handler(signal.SIGHUP, self._hung_up)
        self._repeat(INTERVAL, log_handler.flush_suppressed)

    def ready(self, status: str) -> None:
        self.notifier.send("READY=1", f"STATUS={status}")
        interval = self.notifier.watchdog_interval
        if interval is not None:
            # From the loop itself: if it hangs, so do all clients.
            self._repeat(interval, partial(self.notifier.send, "WATCHDOG=1"))

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
        self.notifier.send("STOPPING=1", "STATUS=Answering what is under way, writing a snapshot")
        self.stop.set()

    def _hung_up(self) -> None:
        if self.on_hangup is None:
            logger.info(
                "SIGHUP: nothing to do; files that were moved or renewed are noticed without it"
            )
        else:
            self.on_hangup()

    def _repeat(self, interval: float, action: Callable[[], None]) -> None:
        def again() -> None:
            action()
            self._loop.call_later(interval, again)

        self._loop.call_later(interval, again)
