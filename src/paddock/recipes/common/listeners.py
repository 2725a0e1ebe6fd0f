"""Those who are told of something, at once and in order, whatever one of them does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from paddock.client.requests.arguments import check_watcher

T = TypeVar("T")


class Listeners(Generic[T]):
    """Functions that are called with every piece of news."""

    def __init__(self) -> None:
        self._listeners: dict[Callable[[T], None], None] = {}

    def add(self, listener: Callable[[T], None]) -> None:
        """Call it from now on, once, however often it was added."""
        check_watcher("listener", listener)
        self._listeners[listener] = None

    def remove(self, listener: Callable[[T], None]) -> None:
        """Call it no more; that it was never added is fine."""
        self._listeners.pop(listener, None)

    def tell(self, news: T) -> None:
        """Call everybody; what one raises goes to the event loop's exception handler."""
        for listener in list(self._listeners):
            try:
                listener(news)
            except Exception as error:
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"a listener failed on {news!r}", "exception": error}
                )
