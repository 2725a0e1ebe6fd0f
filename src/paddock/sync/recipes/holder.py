"""The blocking twin of `paddock.recipes.locks.holder`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from paddock.recipes.locks.grant import GrantListener
from paddock.recipes.locks.holder import BaseHolder as AsyncBaseHolder
from paddock.recipes.locks.holder import Holder as AsyncHolder
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.recipes.grant import Grant


class BaseHolder(Twin[AsyncBaseHolder]):
    """One contender for something: its grant, its scopes, its listeners."""

    @property
    def is_held(self) -> bool:
        """Whether we surely hold it, at this moment."""
        return self._inner.is_held

    def release(self) -> None:
        """Release what `acquire` returned; raises LockStateError if it is not held.

        If it was lost, there is nothing to release, and no error.
        """
        self._bridge.call(self._inner.release)

    def add_listener(self, listener: GrantListener) -> None:
        """Call a function when it is acquired, suspended, resumed, released or lost.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: GrantListener) -> None:
        """Remove a listener, if it is there."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))


class Holder(BaseHolder):
    """One contender for something that has a node of its own in the service."""

    _inner: AsyncHolder

    @property
    def client(self) -> Client:
        """The client whose session it is held by."""
        return Client._of(self._bridge, self._inner.client)

    @property
    def path(self) -> str:
        """Where it is."""
        return self._inner.path

    def acquire(self, *, timeout: float | None = None) -> Grant:
        """Wait until it is ours; the grant is to be released.

            grant = lock.acquire(timeout=10)
            grant.release()

        As a rule `with lock` is better, since leaving it says whether the grant was lost. Raises
        TimeoutError, which names the holder, after `timeout` seconds; SessionExpiredError; and
        LockStateError if it is ours already, or if our node was deleted while we waited.
        """
        return Grant._of(self._bridge, self._bridge.call(self._inner.acquire, timeout=timeout))

    def try_acquire(self) -> Grant | None:
        """Acquire it if that is possible at once; return None otherwise."""
        return (
            None
            if (_found := self._bridge.call(self._inner.try_acquire)) is None
            else Grant._of(self._bridge, _found)
        )

    def __enter__(self) -> Grant:
        return Grant._of(self._bridge, self._enter_scope(self._inner))
