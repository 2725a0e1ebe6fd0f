"""What is said of a port that cannot be had."""

from __future__ import annotations

import socket
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL, EPERM

from paddock.errors import PaddockError


class PortError(PaddockError):
    """The server cannot listen where it was told to. The message is one line that says why."""


def explain(error: OSError, host: str, port: int | None) -> str:
    """Say in one line what the system refused."""
    reason = error.strerror or str(error)
    address = f"{host}:{port}"
    if isinstance(error, socket.gaierror):
        return f"cannot listen on {address}: {host}: {reason}"
    if error.errno == EADDRNOTAVAIL:
        return f"cannot listen on {address}: it is no address of this machine"
    if error.errno == EADDRINUSE:
        return f"cannot listen on {address}: the port is taken by another program"
    if error.errno in (EACCES, EPERM):
        return f"cannot listen on {address}: not permitted"
    return f"cannot serve: {reason}"
