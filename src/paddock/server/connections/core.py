"""What all connections of one server share: state, write path, sessions and limits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from paddock.protocol import opcodes, operations
from paddock.server.config.config import ServerConfig
from paddock.server.connections.admission import (
    Admission,
    AdmittedConnection,
    Backpressure,
    PartialRequests,
    SlowPeers,
)
from paddock.server.connections.authentication import Authentication, ClientCredentials
from paddock.server.connections.feeds import Feeds
from paddock.server.connections.send_buffer import Backlog
from paddock.server.connections.turns import Turns, TurnTaker
from paddock.server.replication.cluster_view import ClusterView
from paddock.server.replication.lease import Lease
from paddock.server.replication.proposer import Proposer
from paddock.server.replication.replica import Replica
from paddock.server.sessions.lifecycle import SessionLifecycle
from paddock.server.sessions.policy import SessionPolicy
from paddock.state.access import Identities
from paddock.state.entry import CERTIFICATES, ENFORCE_QUOTA, EXTENDED_TYPES, NEVER_SASL, SASL, SYNC
from paddock.state.queries import Queries
from paddock.state.watcher import Watcher
from paddock.state.watches import Watches

logger: Final = logging.getLogger(__name__)

# How many watches of a closed connection are removed at a time.
_WATCHES_A_TURN: Final = 200


class Core:
    """The parts of a running server that its connections use."""

    def __init__(
        self,
        config: ServerConfig,
        replica: Replica,
        proposer: Proposer,
        wall_clock_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes],
        monotonic: Callable[[], float] | None = None,
        lease: Lease | None = None,
    ) -> None:
        self.config = config
        self.replica = replica
        self.proposer = proposer
        self.machine = machine = replica.machine
        self.watches = replica.watches
        self.operations = replica.statistics.operations
        self.queries = Queries(machine, replica.watches, self.operations)
        self.feeds = Feeds(replica)
        self.statistics = replica.statistics
        self.wall_clock_ms = wall_clock_ms
        self.random_bytes = random_bytes
        # Long work is done in turns.
        self.turns = Turns(monotonic)
        # What servers that share a log need to speak; None for a server of its own.
        self.lease = lease
        # The operations that are answered from memory; and those that go through the log, with the
        # entries that they become. So does `sync`, if other servers write as well: what they have
        # written is here when it comes out of the log.
        self.reads = operations.READS
        self.proposed: dict[int, int] = {number: number for number in operations.WRITES}
        if lease is not None:
            self.reads -= {opcodes.SYNC}
            self.proposed[opcodes.SYNC] = SYNC
        # What there is to tell of the servers that share the log; None for a server of its own.
        self.cluster: ClusterView | None = None
        # The flags of every entry that this server proposes.
        self.flags = (
            (EXTENDED_TYPES if config.extended_types_enabled else 0)
            | (ENFORCE_QUOTA if config.enforce_quota else 0)
            | (CERTIFICATES if config.speaks_tls() else 0)
            | (SASL if config.offers_sasl() else 0)
        )
        self.lifecycle = SessionLifecycle(
            replica,
            proposer,
            config.tick_time_ms / 1000,
            self.flags,
            None if lease is None else lease.seconds,
        )
        self.tracker = self.lifecycle.tracker
        self.backlog = Backlog(config.max_reply_bytes_per_connection, config.max_reply_bytes)
        self.admission = Admission(config, replica.statistics)
        self.partial_requests = PartialRequests(config.max_request_bytes)
        self.slow_peers = SlowPeers(self.backlog)
        self.backpressure = Backpressure(proposer)
        # Answers a four-letter word, piece by piece; None if it is not one.
        self.words: Callable[[bytes], Iterator[bytes] | None] = lambda _: None
        self.credentials = ClientCredentials(config)
        # Whether sessions are served: not while the log is broken, nor during the stop.
        self.is_open = True
        # Whether read-only sessions are served while it is not open.
        self.is_read_only = False
        self._last_local_id = 0

    @property
    def connections(self) -> dict[AdmittedConnection, None]:
        """All connections that are served, in the order of coming."""
        return self.admission.connections

    def forget(self, connection: AdmittedConnection, watcher: Watcher) -> None:
        """Forget a connection that is not served any more, with its watches and feeds."""
        self.admission.remove(connection)
        self.feeds.forget(watcher)
        self.partial_requests.remove(connection)
        if self.watches.remove_some(watcher, _WATCHES_A_TURN):
            self.turns.ask(_WatchRemoval(self.watches, self.turns, watcher))

    def authentication(self, address: str, tls: object = None) -> Authentication:
        sharing = self.replica.sharing
        # In a service of several servers, SASL begins when all of them know it.
        has_sasl = sharing is None or sharing.rules() > NEVER_SASL
        return self.credentials.authentication(address, tls, has_sasl)

    def is_serving(self) -> bool:
        """Return whether any sessions are served."""
        return self.is_open or self.is_read_only

    def policy_for(self, identities: Identities) -> SessionPolicy | None:
        """Return what a new session may not do; None if it is not restricted."""
        policy = self.credentials.policy
        return None if policy is None or policy.is_lifted(identities) else policy

    def local_session_id(self) -> int:
        """Return the id of a read-only session, which the log never hears of."""
        self._last_local_id = max(
            self.machine.sessions.next_id(self.wall_clock_ms()), self._last_local_id + 1
        )
        return self._last_local_id

    def negotiate(self, timeout_ms: int) -> int:
        """Return the session timeout for a requested one."""
        config = self.config
        return max(config.min_session_timeout_ms, min(timeout_ms, config.max_session_timeout_ms))


class _WatchRemoval(TurnTaker):
    """Removes the watches of a closed connection, which may be a hundred thousand."""

    def __init__(self, watches: Watches, turns: Turns, watcher: Watcher) -> None:
        self._watches = watches
        self._turns = turns
        self._watcher = watcher

    def take_turn(self) -> None:
        end = self._turns.end()
        while self._watches.remove_some(self._watcher, _WATCHES_A_TURN):
            if self._turns.is_over(end):
                self._turns.ask(self)
                break
