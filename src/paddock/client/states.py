"""What a client is told: the state of its session, and events, as upstream numbers them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from paddock.protocol import changes, events


class _Named(IntEnum):
    """A number of the protocol that is shown by its name."""

    def __str__(self) -> str:
        return self.name

    def __format__(self, how: str) -> str:
        return format(self.name, how)


class SessionState(_Named):
    """How things are between a client and the service, as upstream numbers it.

    DISCONNECTED: a server is looked for, and the session lives. CONNECTED: a server has it, and
    SASL_AUTHENTICATED: it knows by SASL who we are. CONNECTED_READ_ONLY: the server can only be
    read from. Three are for good: EXPIRED, by the word of the service, AUTH_FAILED, and CLOSED.

    OVERDUE is ours, and no number of the protocol: nothing was answered for a whole session
    timeout. For all that the client knows its session may be over; only the service can tell, once
    it can be reached, and then CONNECTED or EXPIRED comes.
    """

    DISCONNECTED = events.DISCONNECTED
    CONNECTED = events.SYNC_CONNECTED
    AUTH_FAILED = events.AUTH_FAILED
    CONNECTED_READ_ONLY = events.CONNECTED_READ_ONLY
    SASL_AUTHENTICATED = events.SASL_AUTHENTICATED
    EXPIRED = events.EXPIRED
    CLOSED = events.CLOSED
    OVERDUE = -2

    @property
    def is_connected(self) -> bool:
        """Return whether a server answers."""
        return self in (
            SessionState.CONNECTED,
            SessionState.CONNECTED_READ_ONLY,
            SessionState.SASL_AUTHENTICATED,
        )

    @property
    def is_final(self) -> bool:
        """Return whether there is no way on from here, but with a new client."""
        return self in (SessionState.EXPIRED, SessionState.CLOSED, SessionState.AUTH_FAILED)


class FeedKind(_Named):
    """What a change feed tells of.

    CREATED, DATA (it was written), ACL (its ACL was replaced) and DELETED are changes of a node.
    GAP comes with `best_effort` alone: before this, changes may have been missed. PROGRESS is for
    those who ask for it: up to its zxid, nothing else was to be told.
    """

    GAP = 0
    CREATED = changes.CREATED
    DELETED = changes.DELETED
    DATA = changes.DATA
    ACL = changes.ACL
    PROGRESS = 5


class EventType(_Named):
    """What an event tells of.

    A watch by `exists` may bring CREATED, CHANGED and DELETED; one by `get` CHANGED and DELETED;
    one by `children` CHILDREN_CHANGED and DELETED; a persistent one all four, a recursive one all
    but CHILDREN_CHANGED. NONE is for the session: its state has changed.
    """

    NONE = events.NONE
    CREATED = events.NODE_CREATED
    DELETED = events.NODE_DELETED
    CHANGED = events.NODE_DATA_CHANGED
    CHILDREN_CHANGED = events.NODE_CHILDREN_CHANGED
    DATA_WATCH_REMOVED = events.DATA_WATCH_REMOVED
    CHILD_WATCH_REMOVED = events.CHILD_WATCH_REMOVED
    PERSISTENT_WATCH_REMOVED = events.PERSISTENT_WATCH_REMOVED


@dataclass(frozen=True, slots=True)
class Event:
    """What a watcher is called with: a change of a node, or of the session.

    Of a node it has the path; of the session the type is NONE, there is no path, and every watcher
    of the client is told. The watch of a read is over with its first event of a node. Watchers are
    called on the event loop, in the order of what happened, and must not block.

    The zxid is that of the transaction that changed the node: what is read afterwards has it, or a
    later one, in its stat (`mzxid` for data, `pzxid` for children). It is None where the server
    does not tell: before ZooKeeper 3.9, for what was missed while the connection was lost, and
    for the session.
    """

    state: SessionState
    type: EventType
    path: str | None
    zxid: int | None = None
