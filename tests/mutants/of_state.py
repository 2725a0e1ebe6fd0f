"""Mutations of the state machine: sessions, generations, transactions, zxids, time."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    mutation(
        "generation-ignored",
        "A write of a connection that its client has left is refused, wherever the client is now.",
        "state/machine.py",
        "        if session.generation != entry.generation:\n"
        "            raise Refused(SESSION_MOVED)\n",
        "",
    ),
    mutation(
        "attach-keeps-generation",
        "Each attachment of a session gets a generation of its own.",
        "state/machine.py",
        "        session.generation += 1\n",
        "",
    ),
    mutation(
        "expire-any-generation",
        "The end of a silent session is void if its client has come back meanwhile.",
        "state/machine.py",
        "if session is None or session.generation != entry.generation:\n"
        "                    error = SESSION_MOVED",
        "if session is None:\n                    error = SESSION_MOVED",
    ),
    mutation(
        "ephemerals-survive",
        "The ephemeral nodes of a session go with it.",
        "state/machine.py",
        "        self._operations.delete_ephemerals(session)\n",
        "",
    ),
    mutation(
        "expired-session-writes",
        "A session that is over writes nothing.",
        "state/machine.py",
        "        if session is None:\n            raise Refused(SESSION_EXPIRED)\n"
        "        if session.generation",
        "        if session is None:\n            return\n        if session.generation",
    ),
    mutation(
        "multi-keeps-its-parts",
        "A transaction of which an operation fails leaves nothing behind.",
        "state/machine.py",
        "says OK.\n                    operations.undo()\n",
        "says OK.\n                    pass\n",
    ),
    mutation(
        "refusal-keeps-zxid",
        "A write that is refused takes a zxid, too.",
        "state/machine.py",
        "        self.zxid = zxid\n        writing = self._writing\n",
        "        self.zxid = zxid if error == OK else zxid - 1\n        writing = self._writing\n",
    ),
    mutation(
        "time-goes-back",
        "The time of a write is never before that of an earlier one, whatever the clocks say.",
        "state/machine.py",
        "                entry.time_ms = self.time_ms\n",
        "                pass\n",
    ),
    mutation(
        "session-id-twice",
        "No id of a session is given twice.",
        "state/sessions.py",
        "return max(self.last_id + 1, (time_ms << 16) & SESSION_ID_MASK)",
        "return (time_ms << 16) & SESSION_ID_MASK",
    ),
    mutation(
        "version-not-checked",
        "A write that names a version has effect on that version alone.",
        "state/operations.py",
        "    if expected != -1 and expected != current:\n        raise Refused(BAD_VERSION)",
        "    if expected != -1 and expected > current:\n        raise Refused(BAD_VERSION)",
    ),
    mutation(
        "reaped-again",
        "A container is reaped only if it is still the one that was found empty.",
        "state/operations.py",
        "            or node.czxid != czxid\n            or node.mzxid != mzxid\n",
        "",
    ),
    mutation(
        "reaped-unused",
        "A container is reaped only after it had a child.",
        "server/sessions/reaper.py",
        "return node.created != 0 or 0 < self._unused_ms < now_ms - node.mtime",
        "return True",
    ),
    mutation(
        "snapshot-loses-generation",
        "A snapshot holds the generations of sessions.",
        "state/snapshot.py",
        "Session(id, reader.string(), timeout_ms, generation, owner)",
        "Session(id, reader.string(), timeout_ms, 1, owner)",
    ),
)
