"""Addresses, and a port that stays reserved while no server listens on it.

Between the end of one server and the start of the next, the system may give the same port to
another process. A socket that is bound to it and never listens keeps it: servers can still be bound
to it, and connections are refused meanwhile.
"""

from __future__ import annotations

import socket
import sys


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
