"""The life of sessions on this server: learned from applied outcomes, ended by silence.

The log decides on sessions, and the replica tells every outcome that opened, attached or ended one,
of our own proposals and of others'. Tracker, connections and statistics learn it here and nowhere
else: never from a reply, whose connection may be gone. The rules:

* A session is tracked by the server whose proposal opened or attached it last; after a restart, by
  the one that restarts. An attachment by another server ends tracking here.
* A server from which a session was attached away may not know it for as long as its lease, and tell
  its client meanwhile that the session lives. So silence counts only after that.
* Where servers share a log, a session names its owner, and a server that leaves or is deposed hands
  its sessions on. The heir tracks them from then on, each with its whole timeout.
* A session has one connection. The older one is closed when a newer one is attached, here or
  elsewhere: its generation is over, so it can write no more.
* A session that has been silent for its timeout gets an EXPIRE under its generation. It ends when
  that is applied, whichever server proposed it. If it was attached meanwhile, EXPIRE does nothing;
  if EXPIRE was not written, the session lives on with its whole timeout.
"""

from __future__ import annotations

import logging
from typing import Final

from paddock.server.replication.proposals import Submitter
from paddock.server.replication.proposer import Proposer
from paddock.server.replication.replica import Replica, SessionListener
from paddock.server.sessions.tracker import Liveness, SessionTracker
from paddock.state.entry import EXPIRE, Entry
from paddock.state.machine import Outcome
from paddock.state.sessions import ENDED, OPENED, SessionChange
from paddock.storage.events import (
    CLOSED,
    EXPIRED_ELSEWHERE,
    GONE,
    MOVED,
    NOT_READING,
    REPLACED,
    SESSION_ENDED,
    SESSIONS_ADOPTED,
    SILENT,
)

logger: Final = logging.getLogger(__name__)

# No session has this owner.
_NOBODY: Final = -1
# Why a session was silent, in words.
_SILENCES: Final = {
    GONE: "its client did not come back",
    NOT_READING: "its client took nothing of what was sent",
    SILENT: "its client, though connected, sent not even a ping",
}


class SessionLifecycle(SessionListener):
    """Follows the sessions of the log, and proposes the end of the silent ones."""

    def __init__(
        self,
        replica: Replica,
        proposer: Proposer,
        tick: float,
        flags: int,
        lease_seconds: float | None = None,
    ) -> None:
        self._replica = replica
        self._statistics = replica.statistics
        self._sessions = replica.machine.sessions
        self._proposer = proposer
        # The flags of the entries that we propose.
        self._flags = flags
        # The owner whose sessions we track.
        self._owner = _NOBODY
        # For how long another server may speak for a session that we have attached.
        self._others_seconds = 0.0 if lease_seconds is None else lease_seconds
        self.tracker = SessionTracker(tick, self.expire)
        if lease_seconds is None:
            self.adopt(0)
        replica.sessions = self

    def adopt(self, owner: int) -> None:
        """Track the sessions of an owner that are not tracked yet: 0 is a server of its own."""
        self._owner = owner
        tracked = len(self.tracker)
        for session in self._sessions.by_id.values():
            if session.owner == owner and self.tracker.get(session.id) is None:
                self.tracker.add(session.id, session.timeout_ms / 1000)
        if len(self.tracker) > tracked:
            self._replica.journal.add(SESSIONS_ADOPTED, count=len(self.tracker) - tracked)

    def release(self) -> None:
        """Track no session any more: others may own them now.

        Nor one that the rest of a batch of ours opens or attaches, which is being applied.
        """
        self._owner = _NOBODY
        for liveness in self.tracker.all():
            self.tracker.remove(liveness.session)

    def changed(
        self, entry: Entry, outcome: Outcome, submitter: Submitter | None, is_ours: bool
    ) -> None:
        change = outcome.session
        assert change is not None
        if change.kind == ENDED:
            self._ended(entry, outcome, submitter, is_ours)
        elif is_ours and self._sessions.by_id[change.session].owner == self._owner:
            self._attached(change, submitter)
        else:
            self._attached_elsewhere(change)

    def expire(self, liveness: Liveness) -> None:
        """Propose the end of a session that has been silent too long."""
        session = self._sessions.by_id.get(liveness.session)
        if session is None:
            self.tracker.remove(liveness.session)
            return
        liveness.is_closing = True
        # As it is now, at the decision; holding the connection changes it.
        silence = self.tracker.now() - liveness.heard
        if liveness.connection is None:
            reason = GONE
        elif liveness.is_held:
            reason = NOT_READING
        else:
            reason = SILENT
        if liveness.connection is not None:
            liveness.connection.hold()
        entry = Entry(EXPIRE, b"", session.id, session.generation, flags=self._flags)
        self._proposer.submit(entry, _Expiry(self.tracker, liveness, silence, reason))

    def _attached(self, change: SessionChange, submitter: Submitter | None) -> None:
        """Track a session whose connection is ours; it may be closed already."""
        timeout = change.timeout_ms / 1000
        liveness = self.tracker.get(change.session)
        if liveness is None:
            spared = 0.0 if change.kind == OPENED else self._others_seconds
            self.tracker.add(change.session, timeout, spared)
            return
        if liveness.connection is not None:
            # The client has come back before we noticed that it was gone.
            address = "" if submitter is None else submitter.address
            logger.info(
                "session 0x%x: its connection is replaced by a newer one from %s",
                change.session,
                address,
                extra={"session": change.session, "address": address, "reason": "replaced"},
            )
            liveness.connection.close(REPLACED)
        self.tracker.renew(liveness, timeout)

    def _attached_elsewhere(self, change: SessionChange) -> None:
        liveness = self.tracker.remove(change.session)
        if liveness is not None and liveness.connection is not None:
            logger.info(
                "session 0x%x: its client has moved to another server",
                change.session,
                extra={"session": change.session, "reason": "moved"},
            )
            liveness.connection.close(MOVED)

    def _ended(
        self, entry: Entry, outcome: Outcome, submitter: Submitter | None, is_ours: bool
    ) -> None:
        liveness = self.tracker.remove(entry.session)
        connection = None if liveness is None else liveness.connection
        if liveness is not None or is_ours:
            self._record_end(entry, outcome, submitter)
        if entry.operation == EXPIRE:
            self._statistics.sessions_expired += 1
        elif submitter is not None:
            # Its connection answers first, and then closes itself.
            connection = None
            logger.info(
                "session 0x%x closed by its client",
                entry.session,
                extra={"session": entry.session, "address": submitter.address, "reason": "closed"},
            )
        if connection is not None:
            connection.session_ended()

    def _record_end(self, entry: Entry, outcome: Outcome, submitter: Submitter | None) -> None:
        change = outcome.session
        assert change is not None
        silent_seconds: float | None = None
        if entry.operation != EXPIRE:
            reason = CLOSED
        elif isinstance(submitter, _Expiry):
            reason, silent_seconds = submitter.reason, submitter.silence
        else:
            reason = EXPIRED_ELSEWHERE
        self._replica.journal.add(
            SESSION_ENDED,
            session=entry.session,
            address="" if submitter is None else submitter.where,
            reason=reason,
            timeout_ms=change.timeout_ms,
            ephemerals=len(outcome.changes),
            silent_seconds=silent_seconds,
        )


class _Expiry(Submitter):
    """The proposed end of a session."""

    def __init__(
        self, tracker: SessionTracker, liveness: Liveness, silence: float, reason: str
    ) -> None:
        super().__init__()
        self._tracker = tracker
        self._liveness = liveness
        # For how many seconds nothing was heard, and why.
        self.silence = silence
        self.reason = reason

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        if outcome.session is None:
            self._live_on()
            return
        reason = _SILENCES[self.reason]
        logger.info(
            "session 0x%x expired: %s for %.1f s",
            entry.session,
            reason,
            self.silence,
            extra={"session": entry.session, "seconds": self.silence, "reason": reason},
        )

    def refuse(self, entry: Entry, code: int) -> None:
        self._live_on()

    def abort(self) -> None:
        # It has no outcome, or that could not be told: if the session is there, it lives.
        self._live_on()

    def _live_on(self) -> None:
        """Track the session again, unless it is gone, or was attached in the meantime."""
        liveness = self._liveness
        if self._tracker.get(liveness.session) is liveness and liveness.is_closing:
            self._tracker.spare(liveness)
            if liveness.connection is not None:
                liveness.connection.release()
