"""The handshake: a client asks for a session, a new one or one that it names.

The rules:

* The log decides. A new session gets its id, and a named one is compared with its password and with
  the last zxid that the client has seen, when the entry is applied: our own state may be behind.
* An unknown session and a wrong password are answered alike, that it has expired. A client that is
  ahead of the log even then is turned away without an answer. The session's owner notices nothing.
* On a server that shares its log with others, a session that our own state does not know, or knows
  by another password, may be there all the same: without the log its client is turned away.
* While the log does not work no session is opened or attached. A client that asks for read-only is
  served from our own state, if the settings allow that.
* A client that asks for an exact session gets one, if all servers that share the log know how
  (`rules` of the state). Its answers have the terms (`paddock.protocol.exact`), as they are right
  after the attachment was applied. Without the log they say only what this server can.
"""

from __future__ import annotations

import logging
from typing import Final

from librt.strings import BytesWriter, write_i32_be

from paddock.errors import SESSION_EXPIRED
from paddock.protocol import opcodes
from paddock.protocol.exact import ASKS_EXACT, CHANGES, EXACT, TERMS_VERSION, ExactTerms
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import ConnectRequest, ConnectResponse
from paddock.server.connections.admission import AdmittedConnection
from paddock.server.connections.core import Core
from paddock.server.connections.request_handler import ATTACHING, CLOSED, RequestHandler
from paddock.server.replication.proposals import Submitter
from paddock.server.sessions.policy import ReadOnly
from paddock.state.entry import ATTACH, Entry
from paddock.state.kept_replies import WINDOW
from paddock.state.machine import PASSWORD_BYTES, Outcome, attach_body, session_body
from paddock.state.sessions import Session, SessionChange
from paddock.storage.events import (
    AHEAD,
    EXPIRED,
    FAULT,
    NOT_SERVING,
    SESSION_ATTACHED,
    SESSION_OPENED,
    STOPPING,
    WRONG_PASSWORD,
)

logger: Final = logging.getLogger(__name__)


class Handshake(Submitter):
    """The handshake of one connection; it is forgotten when it is over."""

    def __init__(
        self,
        core: Core,
        connection: AdmittedConnection,
        handler: RequestHandler,
        request: ConnectRequest,
    ) -> None:
        super().__init__()
        self._core = core
        self._connection = connection
        self._handler = handler
        self._request = request
        self.address = handler.address
        self.where = handler.where
        # Of a session that is attached: the server that had it, and since when it was silent here.
        self._former_owner = 0
        self._silent_seconds: float | None = None

    def begin(self) -> None:
        """Propose the session that the client asks for, or answer without the log."""
        request, core = self._request, self._core
        core.statistics.handshakes += 1
        if request.session_id:
            core.statistics.handshakes_again += 1
            self._note_former()
        if core.is_open:
            timeout_ms = core.negotiate(request.timeout_ms)
            if request.session_id:
                body = attach_body(timeout_ms, request.password or b"", request.last_zxid_seen)
                self._propose(Entry(ATTACH, body, request.session_id))
            elif core.lease is None and self._is_ahead():
                # Before a session is opened that no client would use.
                self._connection.close(AHEAD)
            else:
                password = core.random_bytes(PASSWORD_BYTES)
                body = session_body(timeout_ms, password, self._asks_for_terms())
                self._propose(Entry(opcodes.CREATE_SESSION, body))
        elif core.is_read_only and request.read_only:
            self._begin_read_only()
        else:
            self._handler.watcher.session = request.session_id
            self._connection.close(NOT_SERVING)

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        if self._handler.stage == CLOSED:
            return
        self._core.replica.mark_dirty(self._handler)
        if outcome.session is not None and self._is_new_and_ahead():
            # The session is left to its timeout: its client would see an older state than before.
            self._connection.close(AHEAD)
            return
        if outcome.session is not None:
            self._attached(outcome.session, outcome.zxid)
            return
        reason = self._refusal()
        if outcome.error == SESSION_EXPIRED:
            self._send_expired()
        self._connection.close(reason)

    def refuse(self, entry: Entry, code: int) -> None:
        if self._handler.stage == CLOSED:
            return
        # Without the log there are no sessions. The client will come back, and was heard of.
        liveness, session = self._core.tracker.get(entry.session), self._session()
        if liveness is not None and session is not None and self._knows_password(session):
            liveness.heard = self._core.tracker.now()
        self._connection.close(NOT_SERVING)

    def abort(self) -> None:
        self._connection.abort(FAULT)

    def _propose(self, entry: Entry) -> None:
        self._handler.stage = ATTACHING
        self._handler.watcher.session = entry.session
        self._core.proposer.submit(entry, self)

    def _attached(self, change: SessionChange, zxid: int) -> None:
        handler = self._handler
        session = self._core.machine.sessions.by_id[change.session]
        liveness = self._core.tracker.get(session.id)
        assert liveness is not None, "the lifecycle is told before"
        handler.watcher.session = session.id
        handler.attach(change.generation, liveness)
        if not self._request.session_id:
            # Statistics show the new session as the first operation.
            handler.tally.operation = opcodes.CREATE_SESSION
            handler.tally.heard_at = liveness.heard
            handler.buffer.last_zxid = zxid
        logger.debug(
            "session 0x%x attached from %s, timeout %d ms",
            session.id,
            handler.address,
            session.timeout_ms,
            extra=handler.about(),
        )
        self._record_session(session.timeout_ms, session.owner)
        terms = self._terms(session) if self._asks_for_terms() else None
        self._send(session.timeout_ms, session.id, session.password, terms=terms)
        if self._core.is_open:
            handler.open(self._core.policy_for(handler.watcher.identities))
        else:
            # The server stops: the session is the client's, but not to be used here.
            self._connection.close(STOPPING)

    def _note_former(self) -> None:
        """Note what is known of a session before it is attached."""
        session, liveness = self._session(), self._core.tracker.get(self._request.session_id)
        if session is not None:
            self._former_owner = session.owner
        if liveness is not None:
            # It is heard in the future while its silence does not count yet.
            self._silent_seconds = max(self._core.tracker.now() - liveness.heard, 0.0)

    def _record_session(self, timeout_ms: int, owner: int, read_only: bool | None = None) -> None:
        """Write down that the connection has its session."""
        handler, former = self._handler, self._former_owner
        self._core.replica.journal.add(
            SESSION_ATTACHED if self._request.session_id else SESSION_OPENED,
            session=handler.watcher.session,
            address=handler.where,
            identities=handler.watcher.identities,
            timeout_ms=timeout_ms,
            silent_seconds=self._silent_seconds,
            former_server=former if former != owner else None,
            read_only=read_only,
        )

    def _begin_read_only(self) -> None:
        """Serve reads without the log; a new session is known here alone."""
        request, core, watcher = self._request, self._core, self._handler.watcher
        session = self._session()
        self._handler.buffer.lease = None
        watcher.session = request.session_id
        if core.lease is not None and request.session_id and not self._is_known(session):
            self._connection.close(NOT_SERVING)
        elif request.session_id and session is None:
            self._send_expired()
            self._connection.close(EXPIRED)
        elif self._is_ahead():
            self._connection.close(AHEAD)
        elif session is not None and not self._knows_password(session):
            reason = self._refusal()
            self._send_expired()
            self._connection.close(reason)
        else:
            if session is None:
                watcher.session = core.local_session_id()
                password = core.random_bytes(PASSWORD_BYTES)
            else:
                watcher.session, password = session.id, session.password
            terms = None
            if self._asks_for_terms():
                terms = ExactTerms(0, 0, core.machine.zxid, 0, 0, 0, b"", CHANGES)
            timeout_ms = core.negotiate(request.timeout_ms)
            self._record_session(timeout_ms, 0, read_only=True)
            self._send(timeout_ms, watcher.session, password, True, terms)
            self._handler.open(ReadOnly(core.policy_for(watcher.identities)))

    def _asks_for_terms(self) -> bool:
        """Return whether the client asks for an exact session, or to attach one as such."""
        request = self._request
        if request.read_only is None:
            # An old client, and the terms come behind the byte that its answer does not have.
            return False
        if request.session_id:
            return request.protocol_version == TERMS_VERSION
        return request.password == ASKS_EXACT

    def _terms(self, session: Session) -> ExactTerms | None:
        """Return the terms of a session that was attached just now; None if it is not exact."""
        kept = session.kept
        if kept is None:
            return None
        return ExactTerms(
            WINDOW,
            session.generation,
            self._core.machine.zxid,
            kept.generation,
            kept.confirmed,
            int(kept.count),
            kept.data(),
            EXACT | CHANGES,
        )

    def _is_new_and_ahead(self) -> bool:
        return self._core.lease is not None and not self._request.session_id and self._is_ahead()

    def _is_known(self, session: Session | None) -> bool:
        return session is not None and self._knows_password(session)

    def _session(self) -> Session | None:
        """Return the session that the client names, if our own state has it."""
        return self._core.machine.sessions.by_id.get(self._request.session_id)

    def _knows_password(self, session: Session) -> bool:
        return session.admits(self._request.password or b"")

    def _is_ahead(self) -> bool:
        """Return whether the client has seen a later state than ours; log it."""
        seen, zxid = self._request.last_zxid_seen, self._core.machine.zxid
        if seen <= zxid:
            return False
        logger.warning(
            "%s: turned away, it has seen zxid 0x%x and ours is 0x%x", self.address, seen, zxid
        )
        return True

    def _refusal(self) -> str:
        """Return why a session was refused; log it, if it is not merely over."""
        session = self._session()
        if session is None:
            return EXPIRED
        if self._is_ahead():
            return AHEAD
        logger.warning(
            "%s: wrong password for session 0x%x",
            self.address,
            session.id,
            extra={"session": session.id, "address": self.address},
        )
        return WRONG_PASSWORD

    def _send_expired(self) -> None:
        self._send(0, 0, bytes(PASSWORD_BYTES))

    def _send(
        self,
        timeout_ms: int,
        session: int,
        password: bytes,
        read_only: bool = False,
        terms: ExactTerms | None = None,
    ) -> None:
        writer = BytesWriter()
        # An old client asks without the read-only byte, and is answered without it.
        said = None if self._request.read_only is None else read_only
        ConnectResponse(0, timeout_ms, session, password, said).write(writer)
        if terms is not None:
            terms.write(writer)
        framed = BytesWriter()
        write_i32_be(framed, len(writer))
        framed.write(writer.getvalue())
        self._handler.buffer.packets(framed.getvalue(), 1)


def read_request(frame: bytes, address: str) -> ConnectRequest | None:
    """Return the request in the first frame of a connection; log one that is not understood."""
    try:
        return ConnectRequest.read(Reader(frame))
    except DecodeError as error:
        logger.warning(
            "%s: handshake not understood: %s", address, error, extra={"address": address}
        )
        return None
