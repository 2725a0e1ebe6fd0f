"""The blocking twin of `paddock.recipes.locks.lease`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.locks.lease import Lease as AsyncLease
from paddock.recipes.locks.lease import LeaseGrant as AsyncLeaseGrant
from paddock.sync.client import Client
from paddock.sync.recipes.grant import Grant
from paddock.sync.recipes.holder import Holder


class Lease(Holder):
    """One contender for a lease.

        lease = Lease(client, "/leases/report", seconds=30)
        grant = lease.acquire()
        grant.renew()
        grant.release()

    Contenders need not agree on the seconds: those of the holder count.
    """

    _inner: AsyncLease

    def __init__(
        self, client: Client, path: str, *, seconds: float, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: AsyncLease(client._inner, path, seconds=seconds, acl=acl),
        )

    @property
    def seconds(self) -> float:
        """How long it is held without being renewed."""
        return self._inner.seconds

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


class LeaseGrant(Grant):
    """Proof that a lease is held, for some more seconds."""

    _inner: AsyncLeaseGrant

    @property
    def remaining(self) -> float:
        """The seconds that are left, by our own clock, until it is renewed."""
        return self._inner.remaining

    def renew(self) -> None:
        """Hold it for as long again, counted from now; raises GrantLostError if it is too late."""
        self._bridge.call(self._inner.renew)
