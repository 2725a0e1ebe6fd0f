"""Callbacks of blocking code, called on a thread of their own.

The event loop must not wait for them, and they may make blocking calls, which wait for the event
loop; so each client has one more thread, from its first callback on. One after the other, in the
order of what they are told. One that fails is logged, and the next is called.

The queue has no bound: an event may not be dropped, and the loop may not wait. Slow code
takes a stream instead, which merges changes in quick succession.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from inspect import iscoroutinefunction
from queue import SimpleQueue
from typing import Any, Final, TypeAlias, TypeVar, overload

from paddock.sync.threads import Thread, new_queue

logger: Final = logging.getLogger(__name__)

V = TypeVar("V")

Callback: TypeAlias = Callable[..., object]
# Gives what a callback is told as blocking code wants it.
Wrap: TypeAlias = Callable[..., tuple[Any, ...]]

# How long the end waits for callbacks that are under way.
_END_SECONDS_MAX: Final = 5.0


class Callbacks:
    """The thread that runs callbacks, from the first one on."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callback, tuple[Any, ...]] | None] = new_queue()
        self._thread: Thread | None = None
        self._is_over = False

    @overload
    def relay(self, value: V) -> V: ...

    @overload
    def relay(self, value: object, wrap: Wrap) -> Any: ...

    def relay(self, value: object, wrap: Wrap | None = None) -> Any:
        """Return what the loop may call in the place of a callback; what is none stays as it is.

        So does a coroutine function, which would never be awaited: the client refuses it.
        What it is told is wrapped, if there is a way given.
        """
        if not callable(value) or iscoroutinefunction(value):
            return value
        return Relay(self, value, wrap)

    def put(self, callback: Callback, arguments: tuple[Any, ...]) -> None:
        """Queue a callback. Only the loop's thread does this, so events keep their order."""
        if self._is_over:
            return
        if self._thread is None:
            self._thread = Thread(self._run, "paddock-callbacks")
            self._thread.start()
        self._queue.put((callback, arguments))

    def end(self) -> None:
        """Run the queued callbacks, and none after them."""
        self._is_over = True
        self._queue.put(None)

    def wait(self) -> None:
        """Wait until those who were due have been called, but not for ever."""
        thread = self._thread
        if thread is not None and not thread.is_current:
            thread.join(_END_SECONDS_MAX)

    def _run(self) -> None:
        while (due := self._queue.get()) is not None:
            callback, arguments = due
            try:
                callback(*arguments)
            except BaseException:
                # Whatever it was, it must not end the calls of others.
                logger.exception("the callback %r failed", callback)
            # What was told is not kept until the next event.
            del due, callback, arguments


class Relay:
    """Stands for a callback on the loop's thread; two for the same callback are the same."""

    __slots__ = ("_callback", "_callbacks", "_wrap")

    def __init__(self, callbacks: Callbacks, callback: Callback, wrap: Wrap | None = None) -> None:
        self._callbacks = callbacks
        self._callback = callback
        self._wrap = wrap

    def __call__(self, *arguments: Any) -> None:
        told = arguments if self._wrap is None else self._wrap(*arguments)
        self._callbacks.put(self._callback, told)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relay) and self._callback == other._callback

    def __hash__(self) -> int:
        return hash(self._callback)

    def __repr__(self) -> str:
        return repr(self._callback)
