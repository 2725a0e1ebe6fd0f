"""The event loop's time, shared: what may take long is done in turns.

One thread serves everybody, so nobody may hold it for long, alone or together with others:

* A turn lasts `TURN_SECONDS`, or `SHORT_TURN_SECONDS` while others wait for theirs. Its taker looks
  at the clock now and then, stops, and asks for another turn if there is more to do.
* Turns are taken in the order in which they were asked for, so each taker gets its share.
* In one pass of the loop turns are taken for `PASS_SECONDS`, and at least one is. Then the loop
  looks at its sockets, so who asks for little is served in between.

What is atomic, such as one transaction, cannot stop in its middle. It is a turn of its own.
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
    """Something that is done in turns."""

    def take_turn(self) -> None:
        """Do a part of what there is to do; it must not raise."""
        ...


class Turns:
    """Who waits for a turn. A taker that has asked must not ask again before it had its turn."""

    def __init__(self, monotonic: Callable[[], float] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        # The loop's own time may stand still within a pass, as uvloop's does.
        self._time: Callable[[], float] = self._loop.time if monotonic is None else monotonic
        self._waiting: deque[TurnTaker] = deque()
        self._is_scheduled = False

    def ask(self, taker: TurnTaker) -> None:
        """Have `taker.take_turn` called when its turn has come."""
        self._waiting.append(taker)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._pass)

    def end(self) -> float:
        """Return the time at which a turn that begins now should end."""
        return self._time() + (SHORT_TURN_SECONDS if self._waiting else TURN_SECONDS)

    def is_over(self, end: float) -> bool:
        """Tell whether a turn should end."""
        return self._time() >= end

    def _pass(self) -> None:
        self._is_scheduled = False
        end = self._time() + PASS_SECONDS
        waiting = self._waiting
        # Who asks meanwhile waits for the next pass.
        for _ in range(len(waiting)):
            waiting.popleft().take_turn()
            if self._time() >= end:
                break
        if waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._pass)
