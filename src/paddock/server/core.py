"""What all connections of one server share: state, write path, sessions and limits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from paddock.errors import OK
from paddock.protocol.acl import Identity
from paddock.server.config.config import ServerConfig
from paddock.server.connections.admission import (
    Admission,
    AdmittedConnection,
    Backpressure,
    PartialRequests,
    SlowPeers,
)
from paddock.server.connections.send_buffer import Backlog
from paddock.server.connections.turns import Turns, TurnTaker
from paddock.server.replication.proposer import Proposer
from paddock.server.replication.replica import Replica
from paddock.server.replication.submitter import Submitter
from paddock.server.sessions.authentication import Authenticator
from paddock.server.sessions.policy import AuthenticationRequired, SessionPolicy
from paddock.server.sessions.tracker import Liveness, SessionTracker
from paddock.state.access import Identities
from paddock.state.entry import CERTIFICATES, ENFORCE_QUOTA, EXPIRE, EXTENDED_TYPES, Entry
from paddock.state.machine import Outcome
from paddock.state.queries import Queries
from paddock.state.watches import Watcher, Watches

logger: Final = logging.getLogger(__name__)

# How many watches of a closed connection are removed at a time.
_WATCHES_A_TURN: Final = 200
# Session ids stay positive and below this: upstream gives the higher bits a meaning.
_SESSION_ID_MASK: Final = (1 << 56) - 1


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
    ) -> None:
        self.config = config
        self.replica = replica
        self.proposer = proposer
        self.machine = machine = replica.machine
        self.watches = replica.watches
        self.queries = Queries(machine, replica.watches)
        self.statistics = replica.statistics
        self.wall_clock_ms = wall_clock_ms
        self.random_bytes = random_bytes
        # Long work is done in turns.
        self.turns = Turns(monotonic)
        self._authentication: SessionPolicy | None = None
        if config.enforce_authentication:
            self._authentication = AuthenticationRequired(config.enforced_schemes)
        # The flags of every entry that this server proposes.
        self.flags = 0
        if config.extended_types_enabled:
            self.flags |= EXTENDED_TYPES
        if config.enforce_quota:
            self.flags |= ENFORCE_QUOTA
        if config.speaks_tls():
            self.flags |= CERTIFICATES
        self.tracker = SessionTracker(config.tick_time_ms / 1000, self.expire)
        self.reconcile_sessions()
        self.backlog = Backlog(config.max_reply_bytes_per_connection, config.max_reply_bytes)
        self.admission = Admission(config, replica.statistics)
        self.partial_requests = PartialRequests(config.max_request_bytes)
        self.slow_peers = SlowPeers(self.backlog)
        self.backpressure = Backpressure(proposer)
        # All connections that are served, in the order of coming.
        self.connections = self.admission.connections
        # Answers a four-letter word, piece by piece; None if it is not one.
        self.words: Callable[[bytes], Iterator[bytes] | None] = lambda _: None
        # Returns a client's identities by its end of TLS.
        self.recognise: Callable[[object], tuple[Identity, ...]] = lambda _: ()
        # Whether sessions are served: not while the log is broken, nor during the stop.
        self.is_open = True
        # Whether read-only sessions are served while it is not open.
        self.is_read_only = False
        start = (wall_clock_ms() << 16) & _SESSION_ID_MASK
        self._last_session_id = max(start, machine.sessions.last_id)

    def forget(self, connection: AdmittedConnection, watcher: Watcher) -> None:
        """Forget a connection that is not served any more, with its watches."""
        self.admission.remove(connection)
        self.partial_requests.remove(connection)
        if self.watches.remove_some(watcher, _WATCHES_A_TURN):
            self.turns.ask(_WatchRemoval(self.watches, self.turns, watcher))

    def authenticator(self, address: str, tls: object = None) -> Authenticator:
        certified = () if tls is None else self.recognise(tls)
        return Authenticator(address, self.config.super_digest, certified)

    def is_serving(self) -> bool:
        """Return whether any sessions are served."""
        return self.is_open or self.is_read_only

    def policy_for(self, identities: Identities) -> SessionPolicy | None:
        """Return what a new session may not do; None if it is not restricted."""
        policy = self._authentication
        return None if policy is None or policy.is_lifted(identities) else policy

    def new_session_id(self) -> int:
        self._last_session_id += 1
        return self._last_session_id

    def negotiate(self, timeout_ms: int) -> int:
        """Return the session timeout for a requested one."""
        config = self.config
        return max(config.min_session_timeout_ms, min(timeout_ms, config.max_session_timeout_ms))

    def reconcile_sessions(self) -> None:
        """Track exactly the sessions of the state, each with its whole timeout."""
        sessions = self.machine.sessions.by_id.values()
        self.tracker.reconcile({one.id: one.timeout_ms / 1000 for one in sessions})

    def expire(self, liveness: Liveness) -> None:
        """Propose the end of a session that has been silent too long."""
        session = self.machine.sessions.by_id.get(liveness.session)
        if session is None:
            self.tracker.remove(liveness.session)
            return
        # As it is now, at the decision; holding the connection changes it.
        silence = self.tracker.now() - liveness.heard
        if liveness.connection is None:
            reason = "its client did not come back"
        elif liveness.is_held:
            reason = "its client took nothing of what was sent"
        else:
            reason = "its client, though connected, sent not even a ping"
        if liveness.connection is not None:
            liveness.connection.hold()
        entry = Entry(EXPIRE, b"", session.id, session.generation, flags=self.flags)
        self.proposer.submit(entry, _Expiry(self, liveness, silence, reason))


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


class _Expiry(Submitter):
    """The end of a session that was silent too long."""

    def __init__(self, core: Core, liveness: Liveness, silence: float, reason: str) -> None:
        super().__init__()
        self._core = core
        self._liveness = liveness
        # For how many seconds nothing was heard, and why.
        self._silence = silence
        self._reason = reason

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        liveness = self._liveness
        if entry.session in self._core.machine.sessions.by_id:
            # It was attached again in the meantime.
            self._live_on()
            return
        self._core.tracker.remove(liveness.session)
        if outcome.error == OK:
            self._core.statistics.sessions_expired += 1
            logger.info(
                "session 0x%x expired: %s for %.1f s",
                entry.session,
                self._reason,
                self._silence,
                extra={"session": entry.session, "seconds": self._silence, "reason": self._reason},
            )
        if liveness.connection is not None:
            liveness.connection.session_ended()

    def refuse(self, entry: Entry, code: int) -> None:
        self._live_on()

    def _live_on(self) -> None:
        self._core.tracker.spare(self._liveness)
        if self._liveness.connection is not None:
            self._liveness.connection.release()
