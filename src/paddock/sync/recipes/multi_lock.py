"""The blocking twin of `paddock.recipes.locks.multi_lock`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.recipes.locks.multi_lock import MultiGrant as AsyncMultiGrant
from paddock.recipes.locks.multi_lock import MultiLock as AsyncMultiLock
from paddock.sync.recipes.grant import BaseGrant
from paddock.sync.recipes.holder import BaseHolder
from paddock.sync.recipes.lock import Lock, SimpleMutex
from paddock.sync.recipes.rw_lock import ReadLock, WriteLock
from paddock.sync.recipes.semaphore import Semaphore


class MultiGrant(BaseGrant):
    """Proof that several locks are held, until they are released, or one of them is lost."""

    _inner: AsyncMultiGrant

    @property
    def paths(self) -> tuple[str, ...]:
        """The nodes that stand for it, in the order in which the locks were given."""
        return self._inner.paths

    @property
    def tokens(self) -> tuple[int, ...]:
        """The fencing tokens, in the same order: of each lock its own."""
        return self._inner.tokens


class MultiLock(BaseHolder):
    """Several locks that are held together.

        lock = MultiLock([Lock(client, "/locks/a"), Semaphore(client, "/locks/b", leases=3)])
        with lock as grant:
            print(grant.is_held, len(grant.tokens))  # True 2

    The locks are its own while it waits or holds: acquiring one of them beside it raises
    LockStateError, and releasing one ends the grant.
    """

    _inner: AsyncMultiLock

    def __init__(
        self, locks: Sequence[Lock | SimpleMutex | ReadLock | WriteLock | Semaphore]
    ) -> None:
        self._make("locks", locks, lambda bridge: AsyncMultiLock([_one._inner for _one in locks]))

    def acquire(self, *, timeout: float | None = None) -> MultiGrant:
        """Wait until all are ours; the grant is to be released.

            grant = lock.acquire(timeout=10)
            grant.release()

        As a rule `with lock` is better, since leaving it says whether the grant was lost. Raises
        TimeoutError, which names a holder, after `timeout` seconds; SessionExpiredError; and
        LockStateError if one of them is ours already, or if our node was deleted while we waited.
        """
        return MultiGrant._of(self._bridge, self._bridge.call(self._inner.acquire, timeout=timeout))

    def try_acquire(self) -> MultiGrant | None:
        """Acquire all of them if that is possible at once; return None otherwise."""
        return (
            None
            if (_found := self._bridge.call(self._inner.try_acquire)) is None
            else MultiGrant._of(self._bridge, _found)
        )

    def __enter__(self) -> MultiGrant:
        return MultiGrant._of(self._bridge, self._enter_scope(self._inner))
