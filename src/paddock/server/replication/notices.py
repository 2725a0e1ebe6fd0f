"""Notices of the state, written to the log: faults always, exceeded quotas within a rate limit.

A client can exceed a quota as often as it can write. So there is at most one line a minute about
each limit, and a hundred lines a minute about all of them. The log's own rate limit does not do
that: it goes by the message, so one quota would hide another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from paddock.state.quota import Notice, QuotaNotice

logger: Final = logging.getLogger(__name__)

PAUSE: Final = 60.0
LINES_MAX: Final = 100


class Notices:
    """Tells the operator, once for many times."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        # When each limit was last told of. Invariant: at most LINES_MAX.
        self._told: dict[tuple[bytes, str], float] = {}

    def tell(self, session: int, notice: Notice) -> None:
        """Log a notice about an entry of a session, unless too much was said already."""
        if not isinstance(notice, QuotaNotice):
            logger.error("session 0x%x: %s", session, notice.sentence(), extra={"session": session})
        elif self._may_tell_of((notice.governed, notice.kind)):
            shown = {"session": session, "quota": notice.governed.decode("utf-8", "replace")}
            logger.warning("session 0x%x: %s", session, notice.sentence(), extra=shown)

    def _may_tell_of(self, limit: tuple[bytes, str]) -> bool:
        now = self._now()
        self._told = {told: at for told, at in self._told.items() if now - at < PAUSE}
        if limit in self._told or len(self._told) >= LINES_MAX:
            return False
        self._told[limit] = now
        return True
