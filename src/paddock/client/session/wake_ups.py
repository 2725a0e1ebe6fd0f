"""Wakes change feeds up: when the server says so, and when nobody else will.

A feed that waits is known to the server of one connection. So all are woken when there is another
connection, and when the session is over.
"""

from __future__ import annotations

import asyncio


class WakeUps:
    """The signals of a session's feeds, by their numbers."""

    def __init__(self) -> None:
        self._last = 0
        self._signals: dict[int, asyncio.Event] = {}

    def add(self) -> tuple[int, asyncio.Event]:
        """Return a number for a new feed, and its signal."""
        self._last += 1
        signal = self._signals[self._last] = asyncio.Event()
        return self._last, signal

    def remove(self, number: int) -> None:
        del self._signals[number]

    def wake(self, number: int) -> None:
        """Wake a feed up, if it is still there."""
        signal = self._signals.get(number)
        if signal is not None:
            signal.set()

    def wake_all(self) -> None:
        for signal in self._signals.values():
            signal.set()
