"""Why a connection ended, for the journal: the reasons are those of `paddock.storage.events`."""

from __future__ import annotations

from paddock.protocol.operations import name_of
from paddock.server.connections.core import Core
from paddock.server.connections.request_handler import CLOSING, OPEN, RequestHandler
from paddock.server.statistics import NO_OPERATION
from paddock.storage.events import (
    BROKEN,
    CONNECTION_ENDED,
    EOF,
    HANDSHAKE_FAILED,
    NOT_SERVING,
    RESET,
)


def loss(core: Core, error: Exception | None) -> str:
    """Return the reason of the end of a connection that we did not close."""
    if core.lease is not None and core.lease.is_over():
        # What would be sent closes it then.
        return NOT_SERVING
    if error is None:
        return EOF
    return RESET if isinstance(error, ConnectionResetError) else BROKEN


def record_end(core: Core, handler: RequestHandler, reason: str) -> None:
    """Write down why a connection ends, and when and by what its client was last heard."""
    about: dict[str, object] = {}
    liveness, tally = handler.liveness, handler.tally
    if liveness is not None:
        # Without a request, it was heard by its handshake; or its silence does not count yet.
        silent = core.tracker.now() - (tally.heard_at or liveness.heard)
        about["silent_seconds"] = max(silent, 0.0)
        has_sent = tally.operation != NO_OPERATION
        about["last"] = name_of(tally.operation) if has_sent else "handshake"
        about["timeout_ms"] = int(liveness.timeout * 1000)
    if handler.queue.length:
        # It may have had enough of waiting.
        about["log_seconds"] = core.proposer.busy_seconds()
    core.replica.journal.add(
        CONNECTION_ENDED if handler.stage in (OPEN, CLOSING) else HANDSHAKE_FAILED,
        session=handler.watcher.session,
        address=handler.where,
        identities=handler.watcher.identities,
        reason=reason,
        **about,
    )
