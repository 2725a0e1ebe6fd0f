"""Threads of the operating system, also where gevent has replaced those of the standard library.

After `gevent.monkey.patch_all()` a `threading.Thread` is a greenlet. An event loop in a greenlet
would block all others, so ours runs in a thread that gevent has not patched. Locks stay gevent's:
a greenlet that waits for one lets the others run, and any thread may release it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final

from paddock.errors import UsageError

_TURN_SECONDS: Final = 0.2


def _unpatched(module: str, name: str) -> Any:
    """Return a function as it was before gevent has patched it, or None if it has not."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is None or not monkey.is_object_patched(module, name):
        return None
    return monkey.get_original(module, name)


def check_loop() -> None:
    """Raise UsageError where the event loop itself would run on patched modules."""
    if _unpatched("_thread", "start_new_thread") is not None and sys.modules.get("uvloop") is None:
        raise UsageError(
            "gevent has patched the standard library, and asyncio's own event loop does not run on"
            " that; install uvloop, whose loop does: pip install uvloop"
        )


def new_queue() -> SimpleQueue[Any]:
    """Return a queue between such threads; gevent's is one between greenlets of one thread."""
    make: type[SimpleQueue[Any]] = _unpatched("queue", "SimpleQueue") or SimpleQueue
    return make()


class Thread(threading.Thread):
    """A daemon thread of the operating system."""

    def __init__(self, target: Callable[..., object], name: str, *arguments: Any) -> None:
        super().__init__(target=target, args=arguments, name=name, daemon=True)
        # Acquired while a native thread runs; None for a thread of the standard library.
        self._ended: Any = None
        self._native_ident: int | None = None

    def start(self) -> None:
        start = _unpatched("_thread", "start_new_thread")
        if start is None:
            super().start()
            return
        self._ended = threading.Lock()
        self._ended.acquire()
        start(self._run_native, ())

    def join(self, timeout: float | None = None) -> None:
        if self._ended is None:
            super().join(timeout)
            return
        # In turns: gevent takes a wait without a timeout, and without other greenlets, for a
        # deadlock.
        while not self._ended.acquire(timeout=_TURN_SECONDS if timeout is None else timeout):
            if timeout is not None:
                return
        self._ended.release()

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread."""
        if self._ended is None:
            return threading.current_thread() is self
        return bool(self._native_ident == _unpatched("_thread", "get_ident")())

    def _run_native(self) -> None:
        self._native_ident = _unpatched("_thread", "get_ident")()
        try:
            self.run()
        finally:
            self._ended.release()
