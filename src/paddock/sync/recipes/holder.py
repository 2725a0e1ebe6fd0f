"""The blocking twin of `paddock.recipes.locks.holder`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from typing import TypeVar

from paddock.recipes.locks.grant import GrantListener
from paddock.recipes.locks.holder import Holder as AsyncHolder
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.recipes.grant import Grant

H = TypeVar("H", bound=AsyncHolder)


class Holder(Twin[H]):
    """One contender for something: it waits for a grant, and holds it."""

    @property
    def client(self) -> Client:
        """The client whose session it is held by."""
        return Client._of(self._bridge, self._inner.client)

    @property
    def path(self) -> str:
        """Where it is."""
        return self._inner.path

    @property
    def is_held(self) -> bool:
        """Whether we surely hold it, at this moment."""
        return self._inner.is_held

    def acquire(self) -> Grant:
        """Wait until it is ours, as long as it takes; the grant is to be released.

            grant = lock.acquire()
            grant.release()

        As a rule `with lock` is better, since leaving it says whether the grant was lost. Raises
        SessionExpiredError; and LockStateError if it is ours already, or if somebody has deleted
        our node while we waited.
        """
        return Grant._of(self._bridge, self._bridge.call(self._inner.acquire))

    def try_acquire(self) -> Grant | None:
        """Take it if it can be had at once; give None otherwise."""
        return (
            None
            if (_found := self._bridge.call(self._inner.try_acquire)) is None
            else Grant._of(self._bridge, _found)
        )

    def release(self) -> None:
        """Release what `acquire` gave; raises LockStateError if it is not held.

        That it was lost meanwhile is fine: then there is nothing to release.
        """
        self._bridge.call(self._inner.release)

    def add_listener(self, listener: GrantListener) -> None:
        """Have something called when it is acquired, suspended, resumed, released or lost.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: GrantListener) -> None:
        """Call it no more; that it was never called is fine."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))

    def __enter__(self) -> Grant:
        return Grant._of(self._bridge, self._enter_scope(self._inner))
