"""What the admin commands that are about all data have in common: rate limits, restores under way.

A restore ends the server that was asked for it, and another one answers. The supervisor keeps this
for all of them, so that a restore does not make the next one free, and goes on when its server has
stopped.
"""

from __future__ import annotations

from collections.abc import Callable

from paddock.server.tasks import Tasks
from paddock.state.access import Identities

# Operation, result, who asked, and from which address.
TellAudit = Callable[[str, str, Identities, str], None]


class RateLimit:
    """Lets something happen once in an interval of seconds; 0 is no limit."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._last: float | None = None

    def wait(self, now: float) -> float:
        """Return 0 and count this one, or the seconds until the next one is allowed."""
        if self._last is not None and now - self._last < self._interval:
            return self._last + self._interval - now
        self._last = now
        return 0.0

    def give_back(self, counted_at: float) -> None:
        """Do not count what was counted then, unless another one has been since."""
        if self._last == counted_at:
            self._last = None


class AdminLimits:
    """The limits of the costly commands, and the audit log of the server that runs now."""

    def __init__(self, interval: float) -> None:
        self.snapshot = RateLimit(interval)
        self.restore = RateLimit(interval)
        # Those whose body has come whole; the supervisor waits for them at its end.
        self.restores = Tasks()
        # None while no server runs, or if it keeps no audit log. Cleared when a server stops, whose
        # state must not be held by it.
        self.tell_audit: TellAudit | None = None

    def tell(self, operation: str, result: str, identities: Identities, address: str) -> None:
        """Write what became of a command to the audit log, if there is one."""
        if self.tell_audit is not None:
            self.tell_audit(operation, result, identities, address)
