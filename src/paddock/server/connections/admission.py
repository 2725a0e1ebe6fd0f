"""Admission and load shedding: the limits that all connections share.

* `Admission`: connections of one address and in all. A newcomer without a session gives way first.
* `PartialRequests`: bytes of requests that have come in part. The oldest gives way first.
* `SlowPeers`: replies that wait for peers that do not read. The slowest is dropped first.
* `Backpressure`: writes in flight. Connections are not read from until there is room.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

from paddock.server.config.config import ServerConfig
from paddock.server.connections.send_buffer import Backlog
from paddock.server.replication.proposer import Proposer
from paddock.server.sessions.tracker import AttachedConnection
from paddock.server.statistics import ConnectionReport, Statistics
from paddock.storage.events import TOO_MANY

logger: Final = logging.getLogger(__name__)


class AdmittedConnection(AttachedConnection, Protocol):
    """A connection, with or without a session, for limits and reports."""

    def abort(self, reason: str) -> None:
        """Close at once; what has not been sent is lost."""

    def drop(self) -> None:
        """Forget what waits for a peer that does not read, and close at once."""

    def shed(self) -> None:
        """Close, since the rest of a request is overdue and others need the memory."""

    def is_lagging(self) -> bool:
        """Return whether the peer has more replies waiting than its share."""

    def report(self) -> ConnectionReport:
        """Describe the connection as it is now."""

    def reset_statistics(self) -> None:
        """Begin to count anew."""


class Regulated(Protocol):
    """A reader that pauses when too many writes are in flight."""

    def regulate(self) -> None:
        """Read from the peer, or stop reading, as the limits ask for now."""


class Admission:
    """The open connections, limited by address and in all."""

    def __init__(self, config: ServerConfig, statistics: Statistics) -> None:
        self._address_max = config.max_connections_per_address
        self._total_max = config.max_connections
        self._statistics = statistics
        # All connections that are served, with or without a session, in the order of coming.
        self.connections: dict[AdmittedConnection, None] = {}
        # Those of them that have not asked for a session yet.
        self._newcomers: dict[AdmittedConnection, None] = {}
        # Open sockets: of all connections above, and of those that are being closed.
        self._by_address: dict[str, int] = {}
        self._sockets = 0
        # Called when the last socket is closed.
        self.on_empty: Callable[[], None] | None = None

    def admit(self, connection: AdmittedConnection, address: str) -> bool:
        """Count a new connection, unless a limit is reached."""
        if not self.reserve(address):
            return False
        self.connections[connection] = None
        self._newcomers[connection] = None
        return True

    def reserve(self, address: str) -> bool:
        """Reserve a connection slot for `address`, unless a limit is reached.

        At the limit for all, the oldest connection that has not asked for a session is closed in
        its favour; if there is none, the new one is refused.
        """
        count = self._by_address.get(address, 0)
        if 0 < self._address_max <= count:
            return self._refuse(address, count, "refused a connection from %s: it has %d already")
        if 0 < self._total_max <= self._sockets:
            oldest = next(iter(self._newcomers), None)
            if oldest is None:
                return self._refuse(
                    address, self._sockets, "refused a connection from %s: %d are open"
                )
            oldest.abort(TOO_MANY)
        self._by_address[address] = self._by_address.get(address, 0) + 1
        self._sockets += 1
        return True

    def release(self, address: str) -> None:
        """Free a slot; called when the socket is really closed."""
        self._sockets -= 1
        if not self._sockets and self.on_empty is not None:
            self.on_empty()
        count = self._by_address[address] - 1
        if count:
            self._by_address[address] = count
        else:
            del self._by_address[address]

    def is_empty(self) -> bool:
        """Return whether no socket is open."""
        return self._sockets == 0

    def welcome(self, connection: AdmittedConnection) -> None:
        """Note that a connection has asked for a session."""
        self._newcomers.pop(connection, None)

    def remove(self, connection: AdmittedConnection) -> None:
        """Forget a connection that is not served any more; its slot is not free yet."""
        self.connections.pop(connection, None)
        self._newcomers.pop(connection, None)

    def _refuse(self, address: str, count: int, text: str) -> bool:
        logger.warning(text, address, count, extra={"address": address, "connections": count})
        self._statistics.connections_rejected += 1
        return False


class PartialRequests:
    """Bytes of requests that have come in part, of all connections."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        # The bytes of each connection, the oldest request first. Invariant: `_bytes` is their sum.
        self._by_connection: dict[AdmittedConnection, int] = {}
        self._bytes = 0

    def note(self, connection: AdmittedConnection, size: int) -> None:
        """Note how much has come of a request; 0 if it is whole.

        Over the limit, those go whose request has been on its way longest: an honest client sends
        the rest soon.
        """
        self._bytes += size - self._by_connection.get(connection, 0)
        if size:
            self._by_connection[connection] = size
        else:
            del self._by_connection[connection]
        while self._bytes > self._bytes_max:
            next(iter(self._by_connection)).shed()

    def remove(self, connection: AdmittedConnection) -> None:
        self._bytes -= self._by_connection.pop(connection, 0)


class SlowPeers:
    """Connections whose peer does not read, in the order in which they stopped."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._connections: dict[AdmittedConnection, None] = {}

    def add(self, connection: AdmittedConnection) -> None:
        """Note a peer that does not read.

        If too much waits for all of them, those go that have not read for longest, but none that
        has no more than its share.
        """
        self._connections[connection] = None
        if self._backlog.is_over():
            for one in list(self._connections):
                if one.is_lagging():
                    one.drop()
                    if not self._backlog.is_over():
                        break

    def remove(self, connection: AdmittedConnection) -> None:
        """Note a peer that reads again, or is gone."""
        self._connections.pop(connection, None)


class Backpressure:
    """Readers that are paused because too many writes are in flight."""

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer
        self._paused: dict[Regulated, None] = {}
        proposer.on_room = self._resume

    def add(self, reader: Regulated) -> None:
        """Call `reader.regulate` when there is room for more writes."""
        self._paused[reader] = None

    def remove(self, reader: Regulated) -> None:
        self._paused.pop(reader, None)

    def _resume(self) -> None:
        if self._paused and not self._proposer.is_congested(2):
            paused, self._paused = self._paused, {}
            for reader in paused:
                reader.regulate()
