"""The blocking twin of `paddock.recipes.locks.lease`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from paddock.errors import GrantLostError
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.locks.grant import GrantListener
from paddock.recipes.locks.lease import Lease as AsyncLease
from paddock.recipes.locks.lease import LeaseGrant as AsyncLeaseGrant
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.transaction import Transaction


class Lease(Twin[AsyncLease]):
    """One contender for a lease.

        lease = Lease(client, "/leases/report", seconds=30)
        grant = lease.acquire()
        grant.renew()
        grant.release()

    Contenders need not agree on the seconds: those of the holder count.
    """

    def __init__(
        self, client: Client, path: str, *, seconds: float, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        super().__init__(
            client._bridge,
            client._bridge.run(AsyncLease, client._inner, path, seconds=seconds, acl=acl),
            client,
        )

    @property
    def seconds(self) -> float:
        """How long it is held without being renewed."""
        return self._inner.seconds

    @property
    def client(self) -> Client:
        """The client whose session it is held by."""
        return Client._of(self._bridge, self._inner.client)

    @property
    def path(self) -> str:
        """Where it is."""
        return self._inner.path

    def acquire(self, *, timeout: float | None = None) -> LeaseGrant:
        """Wait until it is ours; the grant is to be renewed or released.

        As a rule `with lease` is better, since leaving it says whether the grant was lost. A waiter
        that does not notice its turn for too long waits again, behind the others. Raises
        TimeoutError, which names the holder, after `timeout` seconds; SessionExpiredError; and
        LockStateError if it is ours already.
        """
        return LeaseGrant._of(self._bridge, self._bridge.call(self._inner.acquire, timeout=timeout))

    def try_acquire(self) -> LeaseGrant | None:
        """Acquire it if that is possible at once; return None otherwise."""
        return (
            None
            if (_found := self._bridge.call(self._inner.try_acquire)) is None
            else LeaseGrant._of(self._bridge, _found)
        )

    def __enter__(self) -> LeaseGrant:
        return LeaseGrant._of(self._bridge, self._enter_scope(self._inner))

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


class LeaseGrant(Twin[AsyncLeaseGrant]):
    """Proof that a lease is held, for some more seconds."""

    @property
    def path(self) -> str:
        """The node that stands for it."""
        return self._inner.path

    @property
    def token(self) -> int:
        """The fencing token: it is larger for every later grant of the same thing."""
        return self._inner.token

    @property
    def remaining(self) -> float:
        """The seconds that are left, by our own clock, until it is renewed."""
        return self._inner.remaining

    def renew(self) -> None:
        """Hold it for as long again, counted from now; raises GrantLostError if it is too late."""
        self._bridge.call(self._inner.renew)

    def deepen(self) -> None:
        """Require one more release."""
        self._bridge.run(self._inner.deepen)

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

    def lost(self) -> GrantLostError:
        """Return the error that says that it is lost, and why."""
        return self._bridge.run(self._inner.lost)
