"""Listening ports: their addresses, and the errors when one cannot be opened."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL, EPERM
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from paddock.errors import PaddockError

_REASONS: Final = {
    EADDRNOTAVAIL: "it is no address of this machine",
    EADDRINUSE: "the port is taken by another program",
    EACCES: "not permitted",
    EPERM: "not permitted",
}
# From 3.11.8 and 3.12.2 on, asyncio tries all addresses of a name, and does not say why each fails.
_NOTHING_BOUND: Final = "could not bind on any address"


class PortError(PaddockError):
    """The server cannot listen on an address. The message is one line that says why."""


@contextmanager
def explained(host: str, port: int, who: str = "") -> Iterator[None]:
    """Turn an OSError from opening a port into a PortError.

    `who` names the port's owner, if that is not the server itself.
    """
    try:
        yield
    except OSError as error:
        begin = f"{who} cannot" if who else "cannot"
        raise PortError(f"{begin} listen on {host}:{port}: {_reason(error, host)}") from None


def address_of(sockets: Sequence[socket.socket]) -> tuple[str, int]:
    """Return the address of a port, with the number that the system has assigned."""
    host, port = sockets[0].getsockname()[:2]
    return str(host), int(port)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an IP address; None if the text is none."""
    try:
        return ip_address(text)
    except ValueError:
        return None


async def start_listening(listener: asyncio.Server) -> None:
    """Accept connections on a port that is bound already. Raises OSError.

    Two processes may bind a port as long as neither listens on it; then only one can. uvloop does
    not report this to the other one, so the sockets are asked.
    """
    await listener.start_serving()
    if not all(map(_listens, listener.sockets)):
        raise OSError(EADDRINUSE, "Address already in use")


def _listens(each: socket.socket | None) -> bool:
    # A socket that uvloop has given up is None, or has no descriptor any more.
    return (
        each is not None
        and each.fileno() >= 0
        and each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0
    )


def _reason(error: OSError, host: str) -> str:
    reason = error.strerror or str(error)
    if isinstance(error, socket.gaierror):
        return f"{host}: {reason}"
    if error.errno is None and reason.startswith(_NOTHING_BOUND):
        return _REASONS[EADDRNOTAVAIL]
    return _REASONS.get(error.errno or 0, reason)
