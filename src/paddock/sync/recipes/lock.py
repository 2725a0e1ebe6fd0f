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
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.recipes.grant import Grant


class Lock(Twin[AsyncLock]):
    """A fair lock, held at most as long as the client's session lives.

        lock = Lock(client, "/locks/report", data=b"worker 7")
        with lock as grant:
            print(grant.is_held)  # True

    A lock is one contender: whoever shares it shares its place. Taking it again while it is held
    raises LockStateError, unless it is `reentrant`: then it is held until it has been released as
    often as it was taken. `data` is what others read of us in `contenders`.
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
        bridge = bridge_of("client", client)
        super().__init__(
            bridge,
            bridge.run(AsyncLock, client._inner, path, data=data, acl=acl, reentrant=reentrant),
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
        """Give all who hold it or wait for it, in their order: the holder first."""
        return self._bridge.call(self._inner.contenders)

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave_scope(kind, error, traceback)


class SimpleMutex(Twin[AsyncSimpleMutex]):
    """A lock that is one ephemeral node: whoever creates it holds it, and all others race again.

        with SimpleMutex(client, "/mutexes", "report") as grant:
            print(grant.path)  # /mutexes/report

    It is neither fair nor without herd effect: a release wakes up everybody. It is for few
    contenders, and for those who want to see at one path who holds it. Whoever deletes that node by
    hand frees it; the holder hears of it, but may have written something under its guard meanwhile,
    unless the node beside it, with a mark in its name, is deleted first.
    """

    def __init__(
        self, client: Client, path: str, name: str, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        bridge = bridge_of("client", client)
        super().__init__(
            bridge, bridge.run(AsyncSimpleMutex, client._inner, path, name, acl=acl), client
        )

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave_scope(kind, error, traceback)
