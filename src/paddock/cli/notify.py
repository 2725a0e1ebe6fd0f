"""Notifications for a service manager: ready, stopping, watchdog.

systemd's protocol is a datagram of lines to the socket named by NOTIFY_SOCKET. That is all of it,
so it is spoken here: a library for it would be longer than this file. Without a manager nothing is
sent; one that does not listen any more is none of our business.
"""

import contextlib
import os
import socket
from collections.abc import Mapping


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

    def ready(self, status: str) -> None:
        self._send("READY=1", f"STATUS={status}")

    def stopping(self, status: str) -> None:
        self._send("STOPPING=1", f"STATUS={status}")

    def status(self, status: str) -> None:
        self._send(f"STATUS={status}")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
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
