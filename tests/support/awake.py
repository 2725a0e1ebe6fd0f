"""Keeps Apache ZooKeepers of a quorum awake, for clients that send nothing while they wait.

Such a server may overlook that it has something to do: its commit processor (in 3.8.0 and in 3.9.3)
sees that there is nothing, takes the lock that it waits with, and does not look again before it
waits. What came in between is done when something else comes. A client that pings hardly notices;
but those of `tests/support/wire.py` wait for their reply in silence, and if nobody else asks, for
ever.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Final

from tests.support import requests as rq
from tests.support import wire
from tests.support.server import Server

_PING_S: Final = 1.0
# Of one that may be away: it is asked again the next time.
_DEADLINE_S: Final = 1.0


@contextlib.contextmanager
def kept_awake(servers: Sequence[Server]) -> Iterator[None]:
    """Ping each of them, on a session that it has from the beginning, or from when it is back."""
    clients = {server: wire.connect(server.address) for server in servers}
    over = threading.Event()
    thread = threading.Thread(target=_ping, args=(servers, clients, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _ping(
    servers: Sequence[Server], clients: dict[Server, wire.Client], over: threading.Event
) -> None:
    while not over.wait(_PING_S):
        for server in servers:
            try:
                if server not in clients:
                    clients[server] = wire.connect(server.address, deadline_s=_DEADLINE_S)
                # Whether it answers is no matter: it may be paused, or slow.
                clients[server].send(rq.ping())
            except (OSError, wire.ConnectionClosedError):
                if server in clients:
                    clients.pop(server).disconnect()
    for client in clients.values():
        client.disconnect()
