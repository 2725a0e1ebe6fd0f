"""The blocking twin of `paddock.recipes.locks.lease`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.errors import GrantLostError
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.locks.grant import GrantListener
from paddock.recipes.locks.lease import Lease as AsyncLease
from paddock.recipes.locks.lease import LeaseGrant as AsyncLeaseGrant
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.transaction import Transaction


class Lease(Twin[AsyncLease]):
    """One contender for a lease of so many seconds.

        lease = Lease(client, "/leases/report", seconds=30)
        grant = lease.acquire()
        grant.renew()
        grant.release()

    Contenders need not agree on the seconds: those of its holder count.
    """

    def __init__(
        self, client: Client, path: str, *, seconds: float, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        bridge = bridge_of("client", client)
        super().__init__(
            bridge, bridge.run(AsyncLease, client._inner, path, seconds=seconds, acl=acl), client
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

    def acquire(self) -> LeaseGrant:
        """Wait until it is ours, as long as it takes; the grant is to be renewed or released.

        As a rule `with lease` is better, since leaving it says whether the grant was lost. Who does
        not notice for too long that it is its turn loses its place, and waits again behind the
        others. Raises SessionExpiredError; and LockStateError if it is ours already.
        """
        return LeaseGrant._of(self._bridge, self._bridge.call(self._inner.acquire))

    def try_acquire(self) -> LeaseGrant | None:
        """Take it if it can be had at once; give None otherwise."""
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


class LeaseGrant(Twin[AsyncLeaseGrant]):
    """That a lease is held, for some more seconds."""

    @property
    def path(self) -> str:
        """The node that stands for it."""
        return self._inner.path

    @property
    def token(self) -> int:
        """The fencing token: it is larger for every later grant of the same thing."""
        return self._inner.token

    @property
    def is_held(self) -> bool:
        """Whether it is surely held, at this moment."""
        return self._inner.is_held

    @property
    def remaining(self) -> float:
        """The seconds that are left, by our own clock, until it is renewed."""
        return self._inner.remaining

    def renew(self) -> None:
        """Have it for as long again, counted from now; raises GrantLostError if it is too late."""
        self._bridge.call(self._inner.renew)

    def check(self) -> None:
        """Raise GrantLostError unless it is surely held at this moment."""
        self._bridge.run(self._inner.check)

    def guard(self) -> Transaction:
        """Begin a transaction that only succeeds while this is held.

            with grant.guard() as transaction:
                transaction.set("/report", b"done")

        It begins with a check that the grant is held, whose result is None. Raises
        GrantLostError if it is lost already; the commit raises TransactionFailedError if the
        service finds that it is.
        """
        return Transaction._of(self._bridge, self._bridge.run(self._inner.guard))

    def fence(self, transaction: Transaction) -> None:
        """Have a transaction succeed only while this is held, beside what else it needs.

        It adds what `guard` begins with. Raises GrantLostError if it is lost already.
        """
        self._bridge.run(self._inner.fence, transaction._inner)

    def release(self) -> None:
        """Give it up; when this returns, the next one has it or can have it.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives: then it is others' anyway. If it is given up, the node is deleted all the
        same, as soon as a server can be reached. Releasing again, or what was lost, does nothing.
        """
        self._bridge.call(self._inner.release)

    def deepen(self) -> None:
        """Have it released only when it was released once more."""
        self._bridge.run(self._inner.deepen)

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

    def lost(self) -> GrantLostError:
        """Give the error that says that it is lost."""
        return self._bridge.run(self._inner.lost)
