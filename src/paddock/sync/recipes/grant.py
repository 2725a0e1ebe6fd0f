"""The blocking twin of `paddock.recipes.locks.grant`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from paddock.recipes.locks.grant import Grant as AsyncGrant
from paddock.recipes.locks.grant import GrantListener
from paddock.sync.bridge import Twin
from paddock.sync.transaction import Transaction


class Grant(Twin[AsyncGrant]):
    """Something that is held, until it is released or lost."""

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
