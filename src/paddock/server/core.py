"""What all connections of one server share, and the decisions that no single one of them makes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from paddock.errors import OK
from paddock.protocol.acl import Identity
from paddock.server.config.config import ServerConfig
from paddock.server.connections.send_buffer import Backlog
from paddock.server.connections.turns import Turns, TurnTaker
from paddock.server.replication.proposer import Proposer
from paddock.server.replication.replica import Replica
from paddock.server.replication.submitter import Submitter
from paddock.server.sessions.authentication import Conversation
from paddock.server.sessions.policy import MustAuthenticate, Restriction
from paddock.server.sessions.tracker import Client, Liveness, SessionTracker
from paddock.state.access import Identities
from paddock.state.entry import CERTIFICATES, ENFORCE_QUOTA, EXPIRE, EXTENDED_TYPES, Entry
from paddock.state.machine import Outcome
from paddock.state.queries import Queries

logger: Final = logging.getLogger(__name__)

# How many watches of a connection that is gone are removed at a time.
_WATCHES_A_TURN: Final = 200
# Ids stay positive and below this, since upstream has meanings for the numbers above.
_SESSION_ID_MASK: Final = (1 << 56) - 1


class Service:
    """The heart of a running server."""

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
        # What may take long is done in turns.
        self.turns = Turns(monotonic)
        self._must_authenticate: Restriction | None = None
        if config.enforce_authentication:
            self._must_authenticate = MustAuthenticate(config.enforced_schemes)
        # What the entries of this server are stamped with.
        self.flags = 0
        if config.extended_types_enabled:
            self.flags |= EXTENDED_TYPES
        if config.enforce_quota:
            self.flags |= ENFORCE_QUOTA
        if config.speaks_tls():
            self.flags |= CERTIFICATES
        self.tracker = SessionTracker(config.tick_time_ms / 1000, self.expire)
        self.reconcile_sessions()
        # Everybody who is connected, with or without a session, in the order of coming.
        self.connections: dict[Client, None] = {}
        # Of these, who has not asked for a session yet.
        self._newcomers: dict[Client, None] = {}
        # Sockets that are open: of everybody above, and of those who are being disconnected.
        self._by_address: dict[str, int] = {}
        self._sockets = 0
        # Called when the last of them is closed.
        self.on_deserted: Callable[[], None] | None = None
        # Who is not read from because all together have sent too much.
        self._held_back: dict[Client, None] = {}
        # Whose peer does not read what it is sent, in the order in which they stopped.
        self._behind: dict[Client, None] = {}
        # Who has sent how many bytes of a request of which the rest has not come yet, in the order
        # in which they began, and the bytes of all.
        self._unfinished: dict[Client, int] = {}
        self._unfinished_bytes = 0
        self.backlog = Backlog(config.max_reply_bytes_per_connection, config.max_reply_bytes)
        proposer.on_room = self._let_go_on
        # Answers a four-letter word, piece by piece; None is the answer to what is none.
        self.words: Callable[[bytes], Iterator[bytes] | None] = lambda _: None
        # Tells who a client is by its end of TLS; where none is spoken, nobody asks.
        self.recognise: Callable[[object], tuple[Identity, ...]] = lambda _: ()
        # Whether sessions are served: not while the log is broken, nor when we stop.
        self.is_open = True
        # Whether, not being open, it serves those who only want to read.
        self.is_read_only = False
        start = (wall_clock_ms() << 16) & _SESSION_ID_MASK
        self._last_session_id = max(start, machine.sessions.last_id)

    def admit(self, connection: Client, address: str) -> bool:
        """Count a new connection in, unless there are too many."""
        if not self.reserve(address):
            return False
        self.connections[connection] = None
        self._newcomers[connection] = None
        return True

    def reserve(self, address: str) -> bool:
        """Count in somebody of whom only the address is known, unless there are too many there.

        If there are too many in all, it takes the place of whoever has been here longest without
        having asked for a session; if there is nobody like that, it is refused.
        """
        limit = self.config.max_connections_per_address
        count = self._by_address.get(address, 0)
        if 0 < limit <= count:
            logger.warning(
                "refused a connection from %s: it has %d already",
                address,
                count,
                extra={"address": address, "connections": count},
            )
            self.statistics.connections_rejected += 1
            return False
        if 0 < self.config.max_connections <= self._sockets:
            oldest = next(iter(self._newcomers), None)
            if oldest is None:
                logger.warning(
                    "refused a connection from %s: %d are open",
                    address,
                    self._sockets,
                    extra={"address": address, "connections": self._sockets},
                )
                self.statistics.connections_rejected += 1
                return False
            oldest.abort()
        self._by_address[address] = self._by_address.get(address, 0) + 1
        self._sockets += 1
        return True

    def is_deserted(self) -> bool:
        """Tell whether no socket is open."""
        return self._sockets == 0

    def welcome(self, connection: Client) -> None:
        """Take note that a connection has asked for a session."""
        self._newcomers.pop(connection, None)

    def leave(self, connection: Client) -> None:
        """Forget a connection that is not served any more, with its watches."""
        self.connections.pop(connection, None)
        self._newcomers.pop(connection, None)
        self._held_back.pop(connection, None)
        self._unfinished_bytes -= self._unfinished.pop(connection, 0)
        if self.watches.remove_some(connection, _WATCHES_A_TURN):
            self.turns.ask(_WatchRemoval(self, connection))

    def discount(self, address: str) -> None:
        """Count out who was admitted or reserved for; not before its socket is really closed."""
        self._sockets -= 1
        if not self._sockets and self.on_deserted is not None:
            self.on_deserted()
        count = self._by_address[address] - 1
        if count:
            self._by_address[address] = count
        else:
            del self._by_address[address]

    def hold_back(self, connection: Client) -> None:
        """Have a connection told when there is room for more writes."""
        self._held_back[connection] = None

    def _let_go_on(self) -> None:
        if self._held_back and not self.proposer.is_congested(2):
            held_back, self._held_back = self._held_back, {}
            for connection in held_back:
                connection.regulate()

    def fall_behind(self, connection: Client) -> None:
        """Take note of a peer that does not read what it is sent.

        If too much waits for all of them together, those go who have not read for longest, but
        none who has only what everybody may have.
        """
        self._behind[connection] = None
        if self.backlog.is_over():
            for one in list(self._behind):
                if one.is_lagging():
                    one.drop()
                    if not self.backlog.is_over():
                        break

    def catch_up(self, connection: Client) -> None:
        """Take note of a peer that reads again, or is gone."""
        self._behind.pop(connection, None)

    def keep_unfinished(self, connection: Client, size: int) -> None:
        """Take note of how much somebody has sent of an unfinished request; 0 if there is none.

        If all have sent too much of them, those go who have been at it longest: an honest client
        sends the rest in no time.
        """
        self._unfinished_bytes += size - self._unfinished.get(connection, 0)
        if size:
            self._unfinished[connection] = size
        else:
            del self._unfinished[connection]
        while self._unfinished_bytes > self.config.max_request_bytes:
            next(iter(self._unfinished)).give_way()

    def conversation(self, address: str, tls: object = None) -> Conversation:
        certified = () if tls is None else self.recognise(tls)
        return Conversation(address, self.config.super_digest, certified)

    def is_serving(self) -> bool:
        """Tell whether anybody is served at all."""
        return self.is_open or self.is_read_only

    def restriction(self, identities: Identities) -> Restriction | None:
        """Give what somebody who has just got a session may not do."""
        if self._must_authenticate is None or self._must_authenticate.is_lifted(identities):
            return None
        return self._must_authenticate

    def new_session_id(self) -> int:
        self._last_session_id += 1
        return self._last_session_id

    def negotiate(self, timeout_ms: int) -> int:
        """Give the session timeout for one that was asked for."""
        config = self.config
        return max(config.min_session_timeout_ms, min(timeout_ms, config.max_session_timeout_ms))

    def reconcile_sessions(self) -> None:
        """Watch over exactly the sessions that the state has, each with its whole timeout."""
        sessions = self.machine.sessions.by_id.values()
        self.tracker.reconcile({one.id: one.timeout_ms / 1000 for one in sessions})

    def expire(self, liveness: Liveness) -> None:
        """Propose the end of a session that has been silent too long."""
        session = self.machine.sessions.by_id.get(liveness.session)
        if session is None:
            self.tracker.remove(liveness.session)
            return
        # Said as it was when it was decided; holding the connection changes it.
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
    """The watches of a connection that is gone: it may have had a hundred thousand."""

    def __init__(self, service: Service, connection: Client) -> None:
        self._service = service
        self._connection = connection

    def take_turn(self) -> None:
        turns = self._service.turns
        end = turns.end()
        while self._service.watches.remove_some(self._connection, _WATCHES_A_TURN):
            if turns.is_over(end):
                turns.ask(self)
                break


class _Expiry(Submitter):
    """The end of a session that was silent too long."""

    def __init__(self, service: Service, liveness: Liveness, silence: float, reason: str) -> None:
        super().__init__()
        self._service = service
        self._liveness = liveness
        # For how many seconds nothing was heard, and what kind of silence it was.
        self._silence = silence
        self._reason = reason

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        liveness = self._liveness
        if entry.session in self._service.machine.sessions.by_id:
            # It was attached again in the meantime.
            self._live_on()
            return
        self._service.tracker.remove(liveness.session)
        if outcome.error == OK:
            self._service.statistics.sessions_expired += 1
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
        self._service.tracker.spare(self._liveness)
        if self._liveness.connection is not None:
            self._liveness.connection.release()
