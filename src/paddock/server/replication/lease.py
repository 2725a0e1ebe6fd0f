"""The lease of this server: until when it may speak to clients.

Servers that share a log depose one that has been silent in it for T, and end its sessions when they
time out. So a server speaks only while nobody can have deposed it. The rules:

* Every batch of ours renews the lease when it is applied here: not when it is answered, and not
  while it is held behind another.
* The lease lasts 0.8 T from the moment before the batch was first sent. Sending it again does not
  move that moment.
* The clock goes on while the machine sleeps, and is read anew each time: never the event loop's.
* A server that learns that it was deposed, or that ends its boot, has no lease from then on.

Others count T from when they applied the same batch, which is later. So it is safe as long as no
clock runs 10 % faster or slower than another: 0.8 T / 0.9 < T / 1.1. Nothing may be added to 0.8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_SHARE: Final = 0.8


class Lease:
    """When this server must be silent; `clock` is in seconds, and never stands still."""

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        # T: after so many seconds of silence the others depose us.
        self.seconds = seconds
        self._clock = clock
        self._until = 0.0
        self._has_ended = True
        # When each batch that is not applied yet was first sent.
        self._sent: dict[int, float] = {}

    def begin(self) -> None:
        """Start anew with a new boot; there is no lease before its first batch is applied."""
        self._sent = {}
        self._until = 0.0
        self._has_ended = False

    def end(self) -> None:
        """Be silent from now on: the boot is over."""
        self._has_ended = True

    def sending(self, number: int) -> None:
        """Note that a batch is about to be sent for the first time."""
        self._sent[number] = self._clock()

    def applied(self, number: int) -> None:
        """Renew the lease by a batch of ours that has been applied."""
        sent = self._sent.pop(number, None)
        if sent is not None:
            self._until = max(self._until, sent + _SHARE * self.seconds)

    def now(self) -> float:
        """Return the time by which leases are measured."""
        return self._clock()

    def left(self) -> float:
        """Return for how many seconds we may speak, if nothing renews the lease."""
        return 0.0 if self._has_ended else max(self._until - self._clock(), 0.0)

    def is_over(self) -> bool:
        """Return whether nothing may be sent to a client any more."""
        return self._has_ended or self._clock() >= self._until
