"""When a session is over: after its timeout of silence, while we listened.

Time here is the event loop's, which never jumps. Some things do not count as silence: that we do
not read from a connection on purpose, that our own loop was late, and the time before the listener
opened. Nor does the time in which another server, which has lost the session to us and does not
know it yet, may still tell the client that it lives. A client from which we do not read because it
does not read is heard of as long as it takes something: if it takes nothing for its whole timeout,
it is gone. Deadlines are looked at once a tick, in buckets; hearing from a session writes down one
number and moves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class AttachedConnection(Protocol):
    """The connection that a session is attached to."""

    def hold(self) -> None:
        """Hold what comes from now on: the end of the session has been proposed."""

    def release(self) -> None:
        """Serve what was held: the session lives."""

    def session_ended(self) -> None:
        """Answer what was held with SESSION_EXPIRED, and close."""

    def close(self, reason: str) -> None:
        """Serve nothing more, and close once everything that was answered has been sent.

        The reason is one of `paddock.storage.events`.
        """

    def is_excused(self) -> bool:
        """Return, for a connection that we do not read from, whether its silence is our doing."""


class Liveness:
    """What this server knows of one session's life."""

    __slots__ = (
        "bucket",
        "connection",
        "heard",
        "is_closing",
        "is_held",
        "session",
        "spared_until",
        "timeout",
    )

    def __init__(self, session: int, timeout: float, heard: float, spared_until: float) -> None:
        self.session = session
        self.timeout = timeout
        # When the session was last heard of.
        self.heard = heard
        # Until when silence does not count.
        self.spared_until = spared_until
        # The connection it is attached to, if there is one.
        self.connection: AttachedConnection | None = None
        # Whether we do not read from its connection: then silence may be our own doing.
        self.is_held = False
        # Whether its end has been proposed.
        self.is_closing = False
        self.bucket = 0


class SessionTracker:
    """Watches over all sessions and calls `expire` for each that has been silent too long."""

    def __init__(self, tick: float, expire: Callable[[Liveness], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._time: Callable[[], float] = self._loop.time
        self._tick = tick
        self._expire = expire
        self._sessions: dict[int, Liveness] = {}
        # Sessions by the tick at which their deadline, as it was when they were put there, has
        # passed. Invariant: every session that is not closing is in exactly one bucket.
        self._buckets: dict[int, dict[int, Liveness]] = {}
        # Seconds by which our own loop was late so far; they do not count for anybody.
        self.lost = 0.0
        self._next = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._sessions)

    def start(self) -> None:
        """Begin to count; sessions that were restored have their whole timeout from now on."""
        now = self.now()
        self._next = int(now / self._tick) + 1
        self._buckets.clear()
        for liveness in self._sessions.values():
            liveness.heard = now
            self._put(liveness)
        self._schedule()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def now(self) -> float:
        """Return the time in which silence is counted."""
        return self._time() - self.lost

    def deadline(self, liveness: Liveness) -> float:
        """Return the moment, in the event loop's time, until which a session may be silent."""
        return self._end(liveness) + self.lost

    def all(self) -> list[Liveness]:
        return list(self._sessions.values())

    def get(self, session: int) -> Liveness | None:
        return self._sessions.get(session)

    def add(self, session: int, timeout: float, spared: float = 0.0) -> Liveness:
        """Begin to watch over a session, whose silence counts after some seconds."""
        now = self.now()
        liveness = Liveness(session, timeout, now, now + spared)
        self._sessions[session] = liveness
        self._put(liveness)
        return liveness

    def remove(self, session: int) -> Liveness | None:
        """Forget a session that is over."""
        liveness = self._sessions.pop(session, None)
        if liveness is not None:
            self._take_out(liveness)
        return liveness

    def renew(self, liveness: Liveness, timeout: float) -> None:
        """Restart the timeout of a session that was attached again; it may be another one now.

        An end that has been proposed is void.
        """
        self._take_out(liveness)
        liveness.timeout = timeout
        self.spare(liveness)

    def renew_all(self) -> None:
        """Restart the timeout of every session, also of one whose end was proposed."""
        for liveness in self._sessions.values():
            self.renew(liveness, liveness.timeout)

    def spare(self, liveness: Liveness) -> None:
        """Let a session live on, though its end had been proposed."""
        liveness.is_closing = False
        liveness.heard = self.now()
        self._put(liveness)

    def _end(self, liveness: Liveness) -> float:
        """Return when a session that stays silent is over."""
        return max(liveness.heard, liveness.spared_until) + liveness.timeout

    def _put(self, liveness: Liveness) -> None:
        bucket = int(self._end(liveness) / self._tick) + 1
        liveness.bucket = max(self._next, bucket)
        self._buckets.setdefault(liveness.bucket, {})[liveness.session] = liveness

    def _take_out(self, liveness: Liveness) -> None:
        bucket = self._buckets.get(liveness.bucket)
        if bucket is not None:
            bucket.pop(liveness.session, None)

    def _schedule(self) -> None:
        self._timer = self._loop.call_at(self._next * self._tick + self.lost, self._look)

    def _look(self) -> None:
        late = self.now() - self._next * self._tick
        if late > self._tick / 4:
            self.lost += late
        now = self.now()
        due = self._buckets.pop(self._next, {})
        self._next += 1
        for liveness in due.values():
            if liveness.is_held and (
                liveness.connection is None or liveness.connection.is_excused()
            ):
                liveness.heard = now
            if self._end(liveness) > now:
                self._put(liveness)
            else:
                liveness.is_closing = True
                self._expire(liveness)
        self._schedule()
