"""Notes the connections of a session, and takes its metrics from the parts that count."""

from __future__ import annotations

import math
from typing import Protocol

from paddock.client.metrics import ClientMetrics, RoundTrips
from paddock.client.requests.in_flight import InFlight
from paddock.client.session.dispatcher import Dispatcher
from paddock.client.session.handshake import SessionCredentials
from paddock.client.session.hosts import Host
from paddock.client.session.reconnector import Reconnector
from paddock.client.session.round_trips import BOUNDS, RoundTripHistogram
from paddock.client.session.session_log import SessionLog
from paddock.client.session.state_publisher import StatePublisher
from paddock.client.watches.watches import ClientWatches


class ConnectionRecord:
    """The connections of a session, counted and logged."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        # The server that has the session, while one has it.
        self.host: Host | None = None
        # How many have had it.
        self.connections = 0
        # How many events of watches have come.
        self.events = 0

    @property
    def server(self) -> tuple[str, int] | None:
        """The name and the port of the server that has the session, as we were given them."""
        return None if self.host is None else (self.host.name, self.host.port)

    def begin(self, host: Host) -> None:
        """Note a connection that has the session."""
        self.host = host
        self.connections += 1
        self._log.info("connected to %s", host, server=str(host), connections=self.connections)

    def leave(self, reason: str) -> None:
        """Note that we are about to end it."""
        host = str(self.host)
        self._log.info("connection to %s left: %s", host, reason, server=host, reason=reason)

    def lose(self, error: Exception | None) -> None:
        """Note its end, by either side."""
        host, reason = str(self.host), "it was closed" if error is None else str(error)
        self._log.info("connection to %s lost: %s", host, reason, server=host, reason=reason)
        self.host = None


class Measured(Protocol):
    """The parts of a session that count."""

    credentials: SessionCredentials
    states: StatePublisher
    record: ConnectionRecord
    reconnector: Reconnector
    in_flight: InFlight
    dispatcher: Dispatcher
    watches: ClientWatches


def measure(session: Measured, now: float) -> ClientMetrics:
    """Return the metrics of this moment; on any thread."""
    record, in_flight, watches = session.record, session.in_flight, session.watches
    requests, host = in_flight.counts, record.host
    return ClientMetrics(
        state=session.states.state,
        state_seconds=max(now - session.states.since, 0.0),
        session_id=session.credentials.id,
        server=None if host is None else str(host),
        connections=record.connections,
        failed_attempts=session.reconnector.failed_attempts,
        in_flight=len(in_flight.sent),
        queued=in_flight.queued,
        sent=in_flight.sent_in_all,
        answered=in_flight.answered_in_all,
        refused=dict(requests.refused),
        failed=dict(requests.failed),
        watches={
            "data": len(watches.data),
            "exists": len(watches.exists),
            "children": len(watches.child),
            "persistent": len(watches.persistent),
            "recursive": len(watches.recursive),
        },
        events=record.events,
        round_trips=_round_trips(session.dispatcher.round_trips),
        last_zxid=session.dispatcher.seen_zxid,
    )


def _round_trips(histogram: RoundTripHistogram) -> RoundTrips:
    counts = tuple(histogram.counts)
    return RoundTrips(
        tuple(zip((*BOUNDS, math.inf), counts, strict=True)), histogram.total, histogram.longest
    )
