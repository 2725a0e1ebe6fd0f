"""Notices of the state, written to the log: faults always, the rest no faster than one reads.

A client can go over a quota as often as it can write. So there is at most one line a minute about
each limit, and no more than a hundred lines a minute about all of them. This is decided here, by
what a line is about, before the journal looks at how often the same sentence comes: one quota that
is always over must not hide another, nor cost each write a sentence.
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
        # When each limit was last told of, the oldest first. Invariant: at most LINES_MAX.
        self._told: dict[tuple[bytes, str], float] = {}

    def tell(self, session: int, notice: Notice) -> None:
        """Log a notice about an entry of a session, unless too much was said already."""
        if not isinstance(notice, QuotaNotice):
            logger.error("session 0x%x: %s", session, notice.sentence(), extra={"session": session})
        elif self._may_tell_of((notice.governed, notice.kind)):
            path = notice.governed.decode("utf-8", "replace")
            logger.warning(
                "session 0x%x: %s",
                session,
                notice.sentence(),
                extra={"session": session, "quota": path},
            )

    def _may_tell_of(self, limit: tuple[bytes, str]) -> bool:
        now = self._now()
        while self._told:
            oldest = next(iter(self._told))
            if now - self._told[oldest] < PAUSE:
                break
            del self._told[oldest]
        if limit in self._told or len(self._told) >= LINES_MAX:
            return False
        self._told[limit] = now
        return True
