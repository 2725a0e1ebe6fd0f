"""The session by the client's own clock: until when it is valid, when to ping, when to leave.

A session lives at least for its timeout from the sending of the last request that was answered, for
the server has received it later than that. When this time is over, the session may be over, too:
it is overdue, and only the service can tell. The rules of a connection:

* After a third of the timeout in which we said nothing, we ping.
* A server from which nothing came for two thirds is left, and so is one that sends us something but
  answers nothing. A server whose replies are late because it has many requests is not left.
* Silence counts only while we listened. If the event loop stood still, what came meanwhile is
  looked at before anything is concluded.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Final

# A heartbeat that is later than this part of the timeout means that the loop stood still.
_LATE: Final = 1 / 6


class SessionClock:
    """The time of one session, and of the connection that it has at the moment."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        timeout: float,
        *,
        ping: Callable[[], None],
        leave: Callable[[str], None],
        on_overdue: Callable[[], None],
        answered: Callable[[], int],
    ) -> None:
        self._loop = loop
        # Seconds: what we asked for, and once there is a session what was granted.
        self.timeout = timeout
        # When something was last sent to the server and something came from it. The
        # dispatcher writes them directly.
        self.sent_at = -math.inf
        self.heard_at = -math.inf
        # When the last request was sent that has been answered.
        self.confirmed_at = -math.inf
        # Whether nothing was answered for so long that the session may be over.
        self.is_overdue = False
        self._ping = ping
        self._leave = leave
        self._on_overdue = on_overdue
        # Gives a number that changes with every answer.
        self._answered = answered
        # What there was of answers when we last looked, being overdue.
        self._seen: tuple[int, float] = (0, -math.inf)
        self._is_attached = False
        # Until when the session surely lives, where the clock does not say: there is none yet, or
        # the server that answers us cannot vouch for it.
        self._valid_until: float | None = -math.inf
        # When each ping was sent that is not answered.
        self._pings: deque[float] = deque()
        self._heartbeat: asyncio.TimerHandle | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def valid_until(self) -> float:
        """Until when the session surely lives."""
        return self._answer_due if self._valid_until is None else self._valid_until

    @property
    def _answer_due(self) -> float:
        return self.confirmed_at + self.timeout

    def start(self) -> None:
        """Begin to wait for a session."""
        self.confirmed_at = self._loop.time()
        self._set_alarm(self._answer_due)

    def attach(self, asked_at: float, timeout: float, *, confirms: bool = True) -> None:
        """Take note of a connection whose handshake was sent at that time, and answered now.

        A server in read-only mode does not vouch: the others may end the session meanwhile.
        """
        self._valid_until = None if confirms else self.valid_until
        self.timeout = timeout
        self.heard_at = self.sent_at = self._loop.time()
        self._is_attached = True
        self._pings.clear()
        self.confirmed_at = max(self.confirmed_at, asked_at)
        self.is_overdue = False
        self._set_alarm(self._answer_due)
        self._beat()

    def detach(self) -> None:
        """Take note that the connection is gone."""
        self._is_attached = False
        if self._heartbeat is not None:
            self._heartbeat.cancel()

    def stop(self) -> None:
        """Do nothing any more."""
        self.detach()
        if self._alarm is not None:
            self._alarm.cancel()

    def answer_ping(self) -> bool:
        """Take note of the answer to the oldest ping; return whether there was one."""
        if not self._pings:
            return False
        self.confirmed_at = max(self.confirmed_at, self._pings.popleft())
        return True

    def recover(self) -> bool:
        """Return whether an answer shows that the session is not overdue any more."""
        if not self.is_overdue or self._loop.time() >= self._answer_due:
            return False
        self.is_overdue = False
        self._set_alarm(self._answer_due)
        return True

    def _set_alarm(self, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if now < self._answer_due:
            self._set_alarm(self._answer_due)
            return
        seen, self._seen = self._seen, (self._answered(), self.confirmed_at)
        if self.is_overdue and self._is_attached and seen == self._seen:
            self._leave("the server answers nothing")
            return
        if self._is_attached:
            # The loop stood still, or the server did, or it is busy with what we asked long ago: it
            # has as long as for any answer.
            self._set_alarm(now + self.timeout * 2 / 3)
        if not self.is_overdue:
            self.is_overdue = True
            self._on_overdue()

    def _beat(self, planned: float = math.inf) -> None:
        now = self._loop.time()
        if now > planned + self.timeout * _LATE:
            self.heard_at = max(self.heard_at, now - self.timeout / 3)
        if now >= self.heard_at + self.timeout * 2 / 3:
            self._leave("the server went silent")
            return
        if now >= self.sent_at + self.timeout / 3:
            self.sent_at = now
            self._pings.append(now)
            self._ping()
        when = min(self.sent_at + self.timeout / 3, self.heard_at + self.timeout * 2 / 3)
        self._heartbeat = self._loop.call_at(when, self._beat, when)
