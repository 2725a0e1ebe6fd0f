"""Carries out a handshake: the session that a connection asks for is opened, attached or refused.

`paddock.server.connections.handshake` decides; this submits, attaches and answers.
"""

from __future__ import annotations

import logging
from typing import Final

from paddock.errors import SESSION_EXPIRED
from paddock.protocol import opcodes
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import ConnectRequest
from paddock.server.connections import handshake
from paddock.server.connections.admission import AdmittedConnection
from paddock.server.connections.core import Core
from paddock.server.connections.request_handler import ATTACHING, CLOSED, RequestHandler
from paddock.server.replication.submitter import Submitter
from paddock.server.sessions.policy import ReadOnly
from paddock.state.entry import Entry
from paddock.state.machine import PASSWORD_BYTES, Outcome
from paddock.state.sessions import SessionChange

logger: Final = logging.getLogger(__name__)


class SessionOpener(Submitter):
    """The handshake of one connection; it is forgotten when it is over."""

    def __init__(self, core: Core, connection: AdmittedConnection, handler: RequestHandler) -> None:
        super().__init__()
        self._core = core
        self._connection = connection
        self._handler = handler
        self._request: ConnectRequest | None = None
        self.address = handler.address

    def receive(self, frame: bytes) -> None:
        """Begin with the first frame of the connection."""
        handler, core = self._handler, self._core
        try:
            request = ConnectRequest.read(Reader(frame))
        except DecodeError as error:
            logger.warning(
                "%s: handshake not understood: %s",
                handler.address,
                error,
                extra={"address": handler.address},
            )
            self._connection.close()
            return
        self._request = request
        core.statistics.handshakes += 1
        if request.session_id:
            core.statistics.handshakes_again += 1
        decision = handshake.decide(request, core, handler.address)
        if decision.entry is not None:
            handler.stage = ATTACHING
            handler.watcher.session = decision.entry.session
            core.proposer.submit(decision.entry, self)
        elif decision.action == handshake.READ_ONLY:
            self._open_read_only(request)
        else:
            if decision.action == handshake.TELL_EXPIRED:
                self._send(handshake.expired(request))
            self._connection.close()

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        if self._handler.stage == CLOSED:
            return
        self._core.replica.mark_dirty(self._handler)
        request, change = self._request, outcome.session
        assert request is not None
        if change is None:
            handshake.log_refused(request, self._core, self.address)
            if outcome.error == SESSION_EXPIRED:
                self._send(handshake.expired(request))
            self._connection.close()
        else:
            self._attached(request, change, outcome.zxid)

    def refuse(self, entry: Entry, code: int) -> None:
        if self._handler.stage == CLOSED:
            return
        # Without the log there are no sessions. The client will come back, and was heard of.
        assert self._request is not None
        liveness = self._core.tracker.get(entry.session)
        if liveness is not None and handshake.has_password(self._request, self._core):
            liveness.heard = self._core.tracker.now()
        self._connection.close()

    def abort(self) -> None:
        self._connection.abort()

    def _attached(self, request: ConnectRequest, change: SessionChange, zxid: int) -> None:
        handler = self._handler
        session = self._core.machine.sessions.by_id[change.session]
        liveness = self._core.tracker.get(session.id)
        assert liveness is not None, "the lifecycle is told before"
        handler.watcher.session = session.id
        handler.attach(change.generation, liveness)
        if not request.session_id:
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
        self._send(handshake.response(request, session.timeout_ms, session.id, session.password))
        if self._core.is_open:
            handler.open(self._core.policy_for(handler.watcher.identities))
        else:
            # The server stops: the session is the client's, but not to be used here.
            self._connection.close()

    def _open_read_only(self, request: ConnectRequest) -> None:
        """Serve reads without the log; a new session is known here alone."""
        core, watcher = self._core, self._handler.watcher
        session = core.machine.sessions.by_id.get(request.session_id)
        if session is None:
            watcher.session = core.local_session_id()
            password = core.random_bytes(PASSWORD_BYTES)
        else:
            watcher.session, password = session.id, session.password
        timeout_ms = core.negotiate(request.timeout_ms)
        self._send(
            handshake.response(request, timeout_ms, watcher.session, password, read_only=True)
        )
        self._handler.open(ReadOnly())

    def _send(self, response: bytes) -> None:
        self._handler.buffer.packets(response, 1)
