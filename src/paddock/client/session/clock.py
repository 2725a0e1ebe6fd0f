"""The time limits of a session: until when it is valid, when to ping, when to leave a server.

A session is valid for its timeout from the sending of the last request that was answered, since the
server has received it later. After that it is overdue: it may have expired, and only the service
knows. The rules of a connection:

* After a third of the timeout without a request, a ping is sent.
* A server that sent nothing for two thirds is left, and so is one that sends something but answers
  nothing. A server whose replies are late because it has many requests is not left.
* Silence counts only while we listened. If the event loop stood still, what came meanwhile is read
  first.
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
    """The timers of one session and its present connection."""

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
        # Seconds, as requested, then as granted.
        self.timeout = timeout
        # When something was last sent and received. The dispatcher writes them directly.
        self.sent_at = -math.inf
        self.heard_at = -math.inf
        # When the last answered request was sent.
        self.confirmed_at = -math.inf
        # Whether nothing was answered for so long that the session may have expired.
        self.is_overdue = False
        self._ping = ping
        self._leave = leave
        self._on_overdue = on_overdue
        # Returns a number that changes with every answer.
        self._answered = answered
        # The answers so far when we last looked, while overdue.
        self._seen: tuple[int, float] = (0, -math.inf)
        self._is_attached = False
        # Until when the session is valid where answers do not count: there is none yet, or the
        # server is in read-only mode.
        self._valid_until: float | None = -math.inf
        # When the pings in flight were sent.
        self._pings: deque[float] = deque()
        self._heartbeat: asyncio.TimerHandle | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def valid_until(self) -> float:
        """Until when the session cannot have expired."""
        return self._answer_due if self._valid_until is None else self._valid_until

    @property
    def _answer_due(self) -> float:
        return self.confirmed_at + self.timeout

    def start(self) -> None:
        """Start to wait for a session."""
        self.confirmed_at = self._loop.time()
        self._set_alarm(self._answer_due)

    def attach(self, asked_at: float, timeout: float, *, confirms: bool = True) -> None:
        """Begin with a connection whose handshake was sent at `asked_at`, and answered now.

        A server in read-only mode confirms nothing: the others may expire the session meanwhile.
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
        """Stop the timers of the connection, which is lost."""
        self._is_attached = False
        if self._heartbeat is not None:
            self._heartbeat.cancel()

    def stop(self) -> None:
        """Stop all timers."""
        self.detach()
        if self._alarm is not None:
            self._alarm.cancel()

    def answer_ping(self) -> bool:
        """Complete the oldest ping; return False if there is none."""
        if not self._pings:
            return False
        self.confirmed_at = max(self.confirmed_at, self._pings.popleft())
        return True

    def recover(self) -> bool:
        """Return whether an answer has shown that the session is valid after all."""
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
            # The loop or the server stood still, or it is busy with older requests: wait once more.
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
