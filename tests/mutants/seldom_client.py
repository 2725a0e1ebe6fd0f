"""Seldom mutations of the client: the second reconnect, a lost answer, a chroot, what is told."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    # Shows when two connections are lost in a row with a ping in flight: an idle client is overdue.
    mutation(
        "ping-of-a-lost-connection",
        "An answer to a ping vouches for a ping of the same connection.",
        "client/session/clock.py",
        "        self._pings.clear()\n",
        "",
    ),
    # Shows when a read-only server stands still for a session timeout, and answers again.
    mutation(
        "recovered-is-connected",
        "A session that was overdue at a read-only server is read-only when that answers again.",
        "client/session/session.py",
        "on_recovered=lambda: self.states.publish(self._attached_state),",
        "on_recovered=lambda: self.states.publish(SessionState.CONNECTED),",
    ),
    # Shows when a connection is lost with credentials in flight, and others are added after it.
    mutation(
        "credentials-of-a-lost-connection",
        "An answer to credentials is for those that were sent on the same connection.",
        "client/session/auth.py",
        "        self._sent.clear()\n        for credentials",
        "        for credentials",
    ),
    # Shows when a large tree loses its tenth connection, and all went well in between.
    mutation(
        "deletion-gives-up-in-all",
        "The deletion of a tree fails if ten connections are lost in a row.",
        "client/operations/compound.py",
        "        if lost is None:\n            self._losses = 0\n            return\n",
        "        if lost is None:\n            return\n",
    ),
    # Shows when nodes are read in another order than they were written, and the connection is lost.
    mutation(
        "gap-goes-back",
        "A gap of a feed at best effort begins at the newest zxid that was told.",
        "client/operations/best_effort.py",
        "                known = max(known, zxid)\n",
        "                known = zxid\n",
    ),
    # Shows on a server with one mode at a path, after the answer to a set_watches was lost.
    mutation(
        "replay-without-end",
        "What was due to requests of a lost connection is not waited for on the next one.",
        "client/watches/served.py",
        "        self.relied_on.clear()\n        self._replays = 0\n",
        "        self.relied_on.clear()\n",
    ),
    # Shows when the numbers of a session's requests begin again for the second time.
    mutation(
        "second-wrap-uncounted",
        "Requests are counted on each time that their numbers begin again.",
        "client/requests/in_flight.py",
        "        self._xids_before += _XID_MAX\n",
        "        self._xids_before = _XID_MAX\n",
    ),
    # Shows below a chroot: the watch that a read relied on stays on the server after its event.
    mutation(
        "chroot-twice",
        "A persistent watch goes when the last read is over that relied on it, in a chroot, too.",
        "client/operations/watch_requests.py",
        "lambda full: self._shed(encode.own(full))",
        "lambda full: self._shed(full.decode())",
    ),
    # Shows when a client that has moved to another server loses that one as well.
    mutation(
        "reconnect-from-the-first",
        "The span of a reconnect names the server whose connection was lost.",
        "otel/session.py",
        "            self._last_server = self.server()\n",
        "            self._last_server = self._last_server or self.server()\n",
    ),
    # Shows when the garbage collector finishes a stream in a thread that has the portal's lock.
    mutation(
        "collector-waits-for-itself",
        "A stream may be collected at any moment, also while its thread makes a call.",
        "sync/portal.py",
        "        self._lock = threading.RLock()\n",
        "        self._lock = threading.Lock()\n",
    ),
    # Shows when a server runs and does not serve: the page says nothing of lacking sessions.
    mutation(
        "refusal-for-an-answer",
        "A server that does not serve gives no answer to a word.",
        "monitor.py",
        "    return None if _REFUSED in said or _NOT_SERVING in said else said\n",
        "    return None if _REFUSED in said else said\n",
    ),
)
