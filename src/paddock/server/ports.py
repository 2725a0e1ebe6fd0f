"""What is said of a port that cannot be had, whichever of the server's it is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
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
