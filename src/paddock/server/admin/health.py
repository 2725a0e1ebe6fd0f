"""Health checks: `/livez` says that the process answers, `/readyz` whether clients should come.

Not ready is a server that starts or stops, has lost its log or its lease, serves only reads, or
refuses writes. A full disk is noticed by a write alone, so the server is ready again some seconds
after the last refusal: a load balancer that sends nothing would keep it out for ever.
"""

from __future__ import annotations

import json
from typing import Final

from paddock.server.connections.core import Core

LIVEZ: Final = "/livez"
READYZ: Final = "/readyz"

# Seconds after a write was refused, in which more would be.
_REFUSAL_SECONDS: Final = 30.0


class Health:
    """The health of one server."""

    def __init__(self, core: Core) -> None:
        self._core = core
        # Set by the server.
        self.is_starting = True
        self.is_stopping = False

    def is_ready(self) -> bool:
        return not self.reasons()

    def reasons(self) -> list[str]:
        """Return why clients should not come, as sentences; none if they should."""
        core = self._core
        if core.replica.is_dead():
            return ["The state was given up; the process ends."]
        if self.is_stopping:
            return ["It stops."]
        if self.is_starting:
            return ["It starts."]
        if not core.is_open:
            found = [
                "The log has failed."
                if core.cluster is None
                else "It is cut off from the log, or no member."
            ]
            return [*found, "Only reads are served."] if core.is_read_only else found
        if core.lease is not None and core.lease.is_over():
            return ["Its lease is over."]
        if core.cluster is not None:
            log = core.cluster.log()
            if log.is_tight or log.is_full:
                return ["Writes are refused: etcd is nearly full."]
            if core.cluster.is_disputed():
                return ["Writes are refused: servers have different states."]
        if core.proposer.refused_within(_REFUSAL_SECONDS):
            return ["Writes are refused: the log has no room."]
        return []

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return the status and the body for one of the two paths."""
        reasons = self.reasons() if path == READYZ else []
        body = {"status": "unavailable" if reasons else "ok", "reasons": reasons}
        return (503 if reasons else 200), f"{json.dumps(body)}\n".encode()
