"""The blocking twin of `paddock.recipes.locks.grant`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from paddock.recipes.locks.grant import BaseGrant as AsyncBaseGrant
from paddock.recipes.locks.grant import Grant as AsyncGrant
from paddock.recipes.locks.grant import GrantListener
from paddock.sync.bridge import Twin
from paddock.sync.transaction import Transaction


class BaseGrant(Twin[AsyncBaseGrant]):
    """The state of a grant, whatever is held, and its listeners."""

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


class Grant(BaseGrant):
    """Proof that something is held, until it is released or lost."""

    _inner: AsyncGrant

    @property
    def path(self) -> str:
        """The node that stands for it."""
        return self._inner.path

    @property
    def token(self) -> int:
        """The fencing token: it is larger for every later grant of the same thing."""
        return self._inner.token
