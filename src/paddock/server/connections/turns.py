"""Cooperative scheduling on the event loop: long work is done in turns.

One thread serves all clients, so no work may hold it for long, alone or together with others:

* A turn lasts `TURN_SECONDS`, or `SHORT_TURN_SECONDS` while others wait. Its taker checks the clock
  now and then, stops, and asks for another turn if there is more to do.
* Turns are FIFO, so each taker gets its share.
* In one pass of the loop turns are taken for `PASS_SECONDS`, and at least one is. Then the loop
  polls its sockets, so that small requests are served in between.
* Long reads are served at once for `PASS_SECONDS` of a pass. Those after them wait for a turn.

An atomic operation, such as one transaction, cannot stop halfway. It is a turn of its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

PASS_SECONDS: Final = 0.01
TURN_SECONDS: Final = 0.002
SHORT_TURN_SECONDS: Final = 0.0005


class TurnTaker(Protocol):
    """Work that is done in turns."""

    def take_turn(self) -> None:
        """Do a part of the work; it must not raise."""


class Turns:
    """The queue for turns. A taker must not ask again before it had the turn it asked for."""

    def __init__(self, monotonic: Callable[[], float] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        # The loop's own time may stand still within a pass, as uvloop's does.
        self._time: Callable[[], float] = self._loop.time if monotonic is None else monotonic
        # Whose requests were read last.
        self.last_reader: object = None
        self._waiting: deque[TurnTaker] = deque()
        self._is_scheduled = False
        # Until when long reads are served in this pass of the loop; 0 before the first one.
        self._reads_end = 0.0

    def ask(self, taker: TurnTaker) -> None:
        """Call `taker.take_turn` when its turn has come."""
        self._waiting.append(taker)
        self._schedule()

    def now(self) -> float:
        """Return the time by which turns are measured."""
        return self._time()

    def end(self) -> float:
        """Return the time at which a turn that begins now should end."""
        return self._time() + (SHORT_TURN_SECONDS if self._waiting else TURN_SECONDS)

    def is_over(self, end: float) -> bool:
        """Return whether a turn should end."""
        return self._time() >= end

    def may_read(self) -> bool:
        """Return whether a long read may be served at once, and not in a turn."""
        now = self._time()
        if not self._reads_end:
            self._reads_end = now + PASS_SECONDS
            self._loop.call_soon(self._end_reads)
        return now < self._reads_end

    def _end_reads(self) -> None:
        self._reads_end = 0.0

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._pass)

    def _pass(self) -> None:
        self._is_scheduled = False
        end = self._time() + PASS_SECONDS
        waiting = self._waiting
        # A taker that asks again waits for the next pass.
        for _ in range(len(waiting)):
            waiting.popleft().take_turn()
            if self._time() >= end:
                break
        if waiting:
            self._schedule()
