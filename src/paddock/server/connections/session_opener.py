"""Carries out a handshake: the session that a connection asks for is opened, attached or refused.

`paddock.server.sessions.handshake` decides; this submits, attaches and answers.
"""

from __future__ import annotations

import logging
from typing import Final

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import ConnectRequest
from paddock.server.connections.admission import AdmittedConnection
from paddock.server.connections.request_handler import ATTACHING, CLOSED, RequestHandler
from paddock.server.core import Core
from paddock.server.replication.submitter import Submitter
from paddock.server.sessions import handshake
from paddock.server.sessions.policy import ReadOnly
from paddock.state.entry import ATTACH, Entry
from paddock.state.machine import PASSWORD_BYTES, Outcome

logger: Final = logging.getLogger(__name__)


class SessionOpener(Submitter):
    """The handshake of one connection; it is forgotten when it is over."""

    def __init__(self, core: Core, connection: AdmittedConnection, handler: RequestHandler) -> None:
        super().__init__()
        self._core = core
        self._connection = connection
        self._handler = handler
        self._request: ConnectRequest | None = None

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
            if outcome.error == OK:
                self._attached_to_none(entry)
            return
        self._core.replica.mark_dirty(self._handler)
        self._attached(outcome)

    def refuse(self, entry: Entry, code: int) -> None:
        if self._handler.stage == CLOSED:
            return
        # Without the log there are no sessions. The client will come back, and was heard of.
        liveness = self._core.tracker.get(entry.session)
        if liveness is not None:
            liveness.heard = self._core.tracker.now()
        self._connection.close()

    def abort(self) -> None:
        self._connection.abort()

    def _attached_to_none(self, entry: Entry) -> None:
        """Track a session whose connection was closed before it was attached."""
        tracker = self._core.tracker
        if entry.operation == opcodes.CREATE_SESSION:
            session = self._core.machine.sessions.by_id[entry.session]
            tracker.add(entry.session, session.timeout_ms / 1000)
        elif entry.operation == ATTACH:
            # The session has moved all the same, and its old connection can write no more.
            liveness = tracker.get(entry.session)
            if liveness is not None and liveness.connection is not None:
                liveness.connection.close()

    def _attached(self, outcome: Outcome) -> None:
        request, handler, tracker = self._request, self._handler, self._core.tracker
        assert request is not None
        session = self._core.machine.sessions.by_id.get(handler.watcher.session)
        if outcome.error != OK or session is None:
            self._send(handshake.expired(request))
            self._connection.close()
            return
        liveness = tracker.get(session.id)
        if liveness is None:
            liveness = tracker.add(session.id, session.timeout_ms / 1000)
        elif liveness.connection is not None:
            # The client has come back before we noticed that it was gone.
            logger.info(
                "session 0x%x: its connection is replaced by a newer one from %s",
                session.id,
                handler.address,
                extra={**handler.about(), "reason": "replaced"},
            )
            liveness.connection.close()
        tracker.renew(liveness, session.timeout_ms / 1000)
        handler.attach(session.generation, liveness)
        if not request.session_id:
            # Statistics show the new session as the first operation.
            handler.tally.operation = opcodes.CREATE_SESSION
            handler.tally.heard_at = liveness.heard
            handler.buffer.last_zxid = outcome.zxid
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
            watcher.session = core.new_session_id()
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
