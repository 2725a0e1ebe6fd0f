"""The blocking twin of `paddock.recipes.locks.multi_lock`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from paddock.recipes.locks.grant import GrantListener
from paddock.recipes.locks.multi_lock import MultiGrant as AsyncMultiGrant
from paddock.recipes.locks.multi_lock import MultiLock as AsyncMultiLock
from paddock.sync.bridge import Twin, first_of
from paddock.sync.recipes.lock import Lock, SimpleMutex
from paddock.sync.recipes.rw_lock import ReadLock, WriteLock
from paddock.sync.recipes.semaphore import Semaphore
from paddock.sync.transaction import Transaction


class MultiGrant(Twin[AsyncMultiGrant]):
    """Proof that several locks are held, until they are released, or one of them is lost."""

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
        """Whether it is surely held, at this moment."""
        return self._inner.is_held

    @property
    def is_lost(self) -> bool:
        """Whether it has ended before it was released."""
        return self._inner.is_lost

    @property
    def is_released(self) -> bool:
        """Whether it has been released."""
        return self._inner.is_released

    def check(self) -> None:
        """Raise GrantLostError unless it is surely held at this moment."""
        self._bridge.run(self._inner.check)

    def guard(self) -> Transaction:
        """Begin a transaction that only succeeds while this is held.

            with grant.guard() as transaction:
                transaction.set("/report", b"done")

        It begins with a check of each node that stands for the grant, whose result is None. Raises
        GrantLostError if it is lost already; the commit raises TransactionFailedError if the
        service finds that it is.
        """
        return Transaction._of(self._bridge, self._bridge.run(self._inner.guard))

    def fence(self, transaction: Transaction) -> None:
        """Make a transaction succeed only while this is held, in addition to its own checks.

        It adds the checks that `guard` begins with. Raises GrantLostError if it is lost already.
        """
        self._bridge.run(self._inner.fence, transaction._inner)

    def release(self) -> None:
        """Release it; when this returns, the next contender holds it or can.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives. If it is given up, the node is deleted all the same, as soon as a server can
        be reached. Releasing again, or after a loss, does nothing.
        """
        self._bridge.call(self._inner.release)

    def wait_over(self) -> None:
        """Wait until it is released or lost."""
        self._bridge.call(self._inner.wait_over)

    def add_listener(self, listener: GrantListener) -> None:
        """Call a function with every later event of this grant.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: GrantListener) -> None:
        """Remove a listener, if it is there."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))


class MultiLock(Twin[AsyncMultiLock]):
    """Several locks that are held together.

        lock = MultiLock([Lock(client, "/locks/a"), Semaphore(client, "/locks/b", leases=3)])
        with lock as grant:
            print(grant.is_held, len(grant.tokens))  # True 2

    The locks are its own while it waits or holds: acquiring one of them beside it raises
    LockStateError, and releasing one ends the grant.
    """

    def __init__(
        self, locks: Sequence[Lock | SimpleMutex | ReadLock | WriteLock | Semaphore]
    ) -> None:
        super().__init__(
            first_of("locks", locks)._bridge,
            first_of("locks", locks)._bridge.run(AsyncMultiLock, [_one._inner for _one in locks]),
            first_of("locks", locks),
        )

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
