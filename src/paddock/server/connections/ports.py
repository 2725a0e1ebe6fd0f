"""The ports of a server: where one is, and what is said of one that cannot be had."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL, EPERM

from paddock.errors import PaddockError


class PortError(PaddockError):
    """The server cannot listen where it was told to. The message is one line that says why."""


@contextmanager
def explained(host: str, port: int, who: str = "") -> Iterator[None]:
    """Turn what the system refuses while a port is opened into a PortError.

    `who` names whose port it is, where that is not the server's own.
    """
    try:
        yield
    except OSError as error:
        begin = f"{who} cannot" if who else "cannot"
        raise PortError(f"{begin} listen on {host}:{port}: {_reason(error, host)}") from None


def address_of(sockets: Sequence[socket.socket]) -> tuple[str, int]:
    """Give where a port is, with the number that the system has chosen for it."""
    host, port = sockets[0].getsockname()[:2]
    return str(host), int(port)


async def start_listening(listener: asyncio.Server) -> None:
    """Accept connections from now on, on a port that was bound before; raises OSError.

    Two may bind a port as long as neither of them listens on it, and then only one can. uvloop says
    nothing to the other one, so the sockets are asked.
    """
    await listener.start_serving()
    if not all(map(_listens, listener.sockets)):
        raise OSError(EADDRINUSE, "Address already in use")


def _listens(each: socket.socket | None) -> bool:
    # One that uvloop has given up is None, or has no number any more.
    return (
        each is not None
        and each.fileno() >= 0
        and each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0
    )


def _reason(error: OSError, host: str) -> str:
    reason = error.strerror or str(error)
    if isinstance(error, socket.gaierror):
        return f"{host}: {reason}"
    if error.errno == EADDRNOTAVAIL:
        return "it is no address of this machine"
    if error.errno == EADDRINUSE:
        return "the port is taken by another program"
    if error.errno in (EACCES, EPERM):
        return "not permitted"
    return reason
