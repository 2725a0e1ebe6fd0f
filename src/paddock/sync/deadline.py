"""Time limits for blocking code: what `asyncio.timeout` is for asyncio.

    with timeout(2.0):
        client.create("/config", b"v1")
        client.get("/config")

A limit is for everything that is asked in its scope, in this thread. Scopes nest, and the one that
ends first counts.
"""

from __future__ import annotations

import threading
import time
from typing import Final, Self

from paddock.client.requests.arguments import check_seconds


class _Limit(threading.local):
    """When this thread's time is up, by the monotonic clock."""

    at: float | None = None


_limit: Final = _Limit()


def remaining() -> float | None:
    """Return the seconds that this thread has left, which may be less than none; None: no limit."""
    return None if _limit.at is None else _limit.at - time.monotonic()


class Timeout:
    """A scope with a time limit; `timeout` makes it."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._outer: float | None = None

    def __enter__(self) -> Self:
        self._outer = _limit.at
        if self._seconds is not None:
            at = time.monotonic() + self._seconds
            _limit.at = at if self._outer is None else min(at, self._outer)
        return self

    def __exit__(self, *_: object) -> None:
        _limit.at = self._outer


def timeout(seconds: float | None) -> Timeout:
    """Return a scope in which blocking calls raise TimeoutError once so many seconds have passed.

    The call that is under way then is cancelled; whether it has happened is as unknown as after a
    lost connection. The client stays usable. None sets no limit, and takes none away.
    """
    if seconds is not None:
        check_seconds("seconds", seconds)
    return Timeout(seconds)
