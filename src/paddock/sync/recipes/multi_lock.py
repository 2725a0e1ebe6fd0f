"""The blocking twin of `paddock.recipes.locks.multi_lock`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.recipes.locks.grant import GrantListener
from paddock.recipes.locks.multi_lock import MultiGrant as AsyncMultiGrant
from paddock.recipes.locks.multi_lock import MultiLock as AsyncMultiLock
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.recipes.lock import Lock, SimpleMutex
from paddock.sync.recipes.rw_lock import ReadLock, WriteLock
from paddock.sync.recipes.semaphore import Semaphore
from paddock.sync.transaction import Transaction


class MultiGrant(Twin[AsyncMultiGrant]):
    """That several locks are held, until they are released, or one of them is lost."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The nodes that stand for it, in the order in which the locks were given."""
        return self._inner.paths

    @property
    def tokens(self) -> tuple[int, ...]:
        """The fencing tokens, in the same order: of each lock its own."""
        return self._inner.tokens

    @property
    def is_held(self) -> bool:
        """Whether all of them are surely held, at this moment."""
        return self._inner.is_held

    def check(self) -> None:
        """Raise GrantLostError unless all of them are surely held at this moment."""
        self._bridge.run(self._inner.check)

    def guard(self) -> Transaction:
        """Begin a transaction that only succeeds while all of them are held.

            with grant.guard() as transaction:
                transaction.set("/report", b"done")

        It begins with a check of each, whose results are None. Raises GrantLostError if one is lost
        already; the commit raises TransactionFailedError if the service finds that it is.
        """
        return Transaction._of(self._bridge, self._bridge.run(self._inner.guard))

    def fence(self, transaction: Transaction) -> None:
        """Have a transaction succeed only while all of them are held, beside what else it needs.

        It adds what `guard` begins with. Raises GrantLostError if one is lost already.
        """
        self._bridge.run(self._inner.fence, transaction._inner)

    def release(self) -> None:
        """Give up all of them; when this returns, the next ones have them or can have them.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives: then they are others' anyway. If it is given up, the nodes are deleted all
        the same, as soon as a server can be reached. Releasing again, or what was lost, does
        nothing.
        """
        self._bridge.call(self._inner.release)

    @property
    def is_lost(self) -> bool:
        """Whether it has ended before it was released."""
        return self._inner.is_lost

    @property
    def is_released(self) -> bool:
        """Whether it has been released."""
        return self._inner.is_released

    def wait_over(self) -> None:
        """Wait until it is held no more: released, or lost."""
        self._bridge.call(self._inner.wait_over)

    def add_listener(self, listener: GrantListener) -> None:
        """Have something called with everything that happens to it from now on.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: GrantListener) -> None:
        """Call it no more; that it was never called is fine."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))


class MultiLock(Twin[AsyncMultiLock]):
    """Several locks that are held together.

        lock = MultiLock([Lock(client, "/locks/a"), Semaphore(client, "/locks/b", leases=3)])
        with lock as grant:
            print(grant.is_held, len(grant.tokens))  # True 2

    The locks are its own while it waits or holds: whoever takes one of them beside it is told that
    it is held already, and whoever releases one ends the grant.
    """

    def __init__(
        self, locks: Sequence[Lock | SimpleMutex | ReadLock | WriteLock | Semaphore]
    ) -> None:
        bridge = bridge_of("locks", locks)
        super().__init__(bridge, bridge.run(AsyncMultiLock, [_one._inner for _one in locks]), locks)

    @property
    def is_held(self) -> bool:
        """Whether we surely hold all of them, at this moment."""
        return self._inner.is_held

    def acquire(self) -> MultiGrant:
        """Wait until all are ours, as long as it takes; the grant is to be released.

            grant = lock.acquire()
            grant.release()

        As a rule `with lock` is better, since leaving it says whether the grant was lost. Raises
        SessionExpiredError; and LockStateError if one of them is ours already, or if somebody has
        deleted our node while we waited.
        """
        return MultiGrant._of(self._bridge, self._bridge.call(self._inner.acquire))

    def try_acquire(self) -> MultiGrant | None:
        """Take all of them if they can be had at once; give None otherwise."""
        return (
            None
            if (_found := self._bridge.call(self._inner.try_acquire)) is None
            else MultiGrant._of(self._bridge, _found)
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

    def __enter__(self) -> MultiGrant:
        return MultiGrant._of(self._bridge, self._enter_scope(self._inner))
