"""The blocking twin of `paddock.recipes.locks.lock`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.locks.grant import GrantListener
from paddock.recipes.locks.line import Contender
from paddock.recipes.locks.lock import Lock as AsyncLock
from paddock.recipes.locks.lock import SimpleMutex as AsyncSimpleMutex
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.recipes.grant import Grant


class Lock(Twin[AsyncLock]):
    """A fair lock, held at most as long as the client's session lives.

        lock = Lock(client, "/locks/report", data=b"worker 7")
        with lock as grant:
            print(grant.is_held)  # True

    A `Lock` object is one contender, with one place in the line. Acquiring it again while it is
    held raises LockStateError, unless it is `reentrant`: then it has to be released as often as it
    was acquired. Others read `data` in `contenders`.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
        reentrant: bool = False,
    ) -> None:
        super().__init__(
            client._bridge,
            client._bridge.run(
                AsyncLock, client._inner, path, data=data, acl=acl, reentrant=reentrant
            ),
            client,
        )

    @property
    def client(self) -> Client:
        """The client whose session it is held by."""
        return Client._of(self._bridge, self._inner.client)

    @property
    def path(self) -> str:
        """Where it is."""
        return self._inner.path

    def contenders(self) -> list[Contender]:
        """Return all who hold it or wait for it, in order: the holder first."""
        return self._bridge.call(self._inner.contenders)

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave_scope(kind, error, traceback)


class SimpleMutex(Twin[AsyncSimpleMutex]):
    """A lock that is one ephemeral node: its creator holds it, and all others race again.

        with SimpleMutex(client, "/mutexes", "report") as grant:
            print(grant.path)  # /mutexes/report

    It is not FIFO, and it has a herd effect: a release wakes every waiter. It is for few
    contenders, and where one path must show the holder. To free it by hand, delete the node beside
    it, with a mark in its name, first: it is what a guarded write of the holder checks.
    """

    def __init__(
        self, client: Client, path: str, name: str, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        super().__init__(
            client._bridge,
            client._bridge.run(AsyncSimpleMutex, client._inner, path, name, acl=acl),
            client,
        )

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave_scope(kind, error, traceback)
