"""Mutations of sessions and their clocks, on one server and on several."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    mutation(
        "expired-too-early",
        "A session lives as long as its client is heard of within its timeout.",
        "server/sessions/tracker.py",
        "            if liveness.heard + liveness.timeout > now:\n",
        "            if liveness.heard + liveness.timeout / 4 > now:\n",
    ),
    mutation(
        "not-heard",
        "Whatever a client sends is a sign of life.",
        "server/connections/request_handler.py",
        "            liveness.heard = self._tracker.now()\n            self.tally.receive(",
        "            self.tally.receive(",
    ),
    mutation(
        "attach-not-heard",
        "A session that is attached again has its whole timeout.",
        "server/sessions/tracker.py",
        "        liveness.is_closing = False\n        liveness.heard = self.now()\n",
        "        liveness.is_closing = False\n",
    ),
    mutation(
        "never-expired",
        "A session whose client is gone ends.",
        "server/sessions/tracker.py",
        "                liveness.is_closing = True\n                self._expire(liveness)\n",
        "                self._put(liveness)\n",
    ),
    mutation(
        "expired-by-own-state",
        "Whether a session is over is decided by the log: a server's own state may be behind.",
        "server/connections/handshake.py",
        "            if request.session_id:\n                body = attach_body(",
        "            if request.session_id and self._session() is None:\n"
        "                self._send_expired()\n"
        "                self._connection.close()\n"
        "            elif request.session_id:\n"
        "                body = attach_body(",
    ),
    mutation(
        "attached-by-own-state",
        "A client is attached when its server has all that the client has seen.",
        "server/connections/handshake.py",
        "            if request.session_id:\n                body = attach_body(",
        "            if request.session_id and self._session() is not None:\n"
        "                session = self._session()\n"
        "                if core.tracker.get(session.id) is None:\n"
        "                    core.tracker.add(session.id, session.timeout_ms / 1000)\n"
        "                self._attached(session.changed(2), core.machine.zxid)\n"
        "            elif request.session_id:\n"
        "                body = attach_body(",
    ),
    mutation(
        "moved-is-answered",
        "A write that was refused because its client has moved is not answered.",
        "server/connections/request_handler.py",
        "        if outcome.error == SESSION_MOVED:\n"
        "            self._close()\n            return\n",
        "",
    ),
)
