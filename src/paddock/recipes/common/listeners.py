"""Listeners: functions that are called at once and in order; the error of one stops none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from paddock.client.requests.arguments import check_watcher

T = TypeVar("T")


class Listeners(Generic[T]):
    """Functions that are called with every event."""

    def __init__(self) -> None:
        self._listeners: dict[Callable[[T], None], None] = {}

    def add(self, listener: Callable[[T], None]) -> None:
        """Add a function; adding it twice is the same as once."""
        check_watcher("listener", listener)
        self._listeners[listener] = None

    def remove(self, listener: Callable[[T], None]) -> None:
        """Remove a function, if it is there."""
        self._listeners.pop(listener, None)

    def notify(self, event: T) -> None:
        """Call every listener; errors go to the event loop's exception handler."""
        for listener in list(self._listeners):
            try:
                listener(event)
            except Exception as error:
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"a listener failed on {event!r}", "exception": error}
                )
