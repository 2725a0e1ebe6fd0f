"""Mutations of sessions and their clocks, on one server and on several."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Edit, Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    mutation(
        "expired-too-early",
        "A session lives as long as its client is heard of within its timeout.",
        "server/sessions/tracker.py",
        "            if self._end(liveness) > now:\n",
        "            if self._end(liveness) - liveness.timeout * 0.75 > now:\n",
    ),
    mutation(
        "not-heard",
        "Whatever a client sends is a sign of life.",
        "server/connections/request_handler.py",
        "            liveness.heard = self._tracker.now()\n            if last_length",
        "            if last_length",
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
        "                self._connection.close(EXPIRED)\n"
        "            elif request.session_id:\n"
        "                body = attach_body(",
    ),
    mutation(
        "attached-by-own-state",
        "A client is attached when its server has all that the client has seen.",
        "server/connections/handshake.py",
        "            if request.session_id:\n                body = attach_body(",
        "            session = self._session()\n"
        "            if core.lease is not None and session is not None:\n"
        "                self._handler.stage = ATTACHING\n"
        "                if core.tracker.get(session.id) is None:\n"
        "                    core.tracker.add(session.id, session.timeout_ms / 1000)\n"
        "                loop = core.replica._loop\n"
        "                loop.call_soon(self._attached, session.changed(2), core.machine.zxid)\n"
        "                loop.call_soon(self._handler.flush)\n"
        "            elif request.session_id:\n"
        "                body = attach_body(",
    ),
    mutation(
        "older-connection-serves",
        "A session has one connection: an older one is closed, and its writes are not answered.",
        "server/connections/request_handler.py",
        "        if outcome.error == SESSION_MOVED:\n"
        "            self._close(events.MOVED)\n            return\n",
        "",
        Edit(
            "server/sessions/lifecycle.py",
            "            liveness.connection.close(REPLACED)\n"
            "        self.tracker.renew(liveness, timeout)\n",
            "            pass\n        self.tracker.renew(liveness, timeout)\n",
        ),
        Edit(
            "server/sessions/lifecycle.py",
            '"reason": "moved"},\n            )\n            liveness.connection.close(MOVED)\n',
            '"reason": "moved"},\n            )\n',
        ),
    ),
)
