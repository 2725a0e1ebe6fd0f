"""Waits for clients that are disconnected to take their last replies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from paddock.server.connections.admission import Admission

logger: Final = logging.getLogger(__name__)

# Seconds that a stop waits at most for clients that do not take their last replies.
_LAST_REPLIES: Final = 15.0
_LOGGED_AFTER: Final = 0.5


async def last_replies_taken(admission: Admission) -> None:
    """Wait until every client has its last replies, or has had its time to take them."""
    empty = asyncio.Event()
    admission.on_empty = empty.set
    if admission.is_empty():
        return
    told = asyncio.get_running_loop().call_later(
        _LOGGED_AFTER, logger.info, "waiting for clients to take their last answers"
    )
    with contextlib.suppress(TimeoutError):
        # A connection gives its client less than this: it is a safeguard.
        async with asyncio.timeout(_LAST_REPLIES):
            await empty.wait()
    told.cancel()
