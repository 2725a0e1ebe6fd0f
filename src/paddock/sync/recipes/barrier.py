"""The blocking twin of `paddock.recipes.groups.barrier`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.groups.barrier import Barrier as AsyncBarrier
from paddock.recipes.groups.barrier import DoubleBarrier as AsyncDoubleBarrier
from paddock.sync.bridge import Twin
from paddock.sync.client import Client


class Barrier(Twin[AsyncBarrier]):
    """A gate: closed while its node exists.

        gate = Barrier(client, "/barriers/start")
        gate.close()
        print(gate.is_open())  # False
        gate.open()
        gate.wait()

    It stays closed when the session that has closed it ends. Closing a closed one does nothing, nor
    does opening an open one.
    """

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make("client", client, lambda bridge: AsyncBarrier(client._inner, path, acl=acl))

    def is_open(self) -> bool:
        """Return whether it is open now."""
        return self._bridge.call(self._inner.is_open)

    def close(self) -> None:
        """Close it, if it is open."""
        self._bridge.call(self._inner.close)

    def open(self) -> None:
        """Open it, if it is closed: all waiters go on."""
        self._bridge.call(self._inner.open)

    def wait(self) -> None:
        """Wait until it is open; it may be closed again by then. Raises SessionExpiredError."""
        self._bridge.call(self._inner.wait)


class DoubleBarrier(Twin[AsyncDoubleBarrier]):
    """One member of a group that begins together and ends together, any number of times.

        barrier = DoubleBarrier(client, "/barriers/step", 3)
        barrier.enter()  # returns when three have come
        barrier.leave()  # returns when all three have left

    All members of a group use the same size. As a rule the scope, `with barrier`, is better, since
    it tells its body when that leaves when we are not a member any more; if its body fails, it
    leaves without waiting.
    """

    def __init__(
        self, client: Client, path: str, size: int, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        self._make(
            "client", client, lambda bridge: AsyncDoubleBarrier(client._inner, path, size, acl=acl)
        )

    @property
    def is_entered(self) -> bool:
        """Whether we have entered, and are surely a member, at this moment."""
        return self._inner.is_entered

    def enter(self) -> None:
        """Wait until as many members have come as the size says.

        Raises SessionExpiredError; and LockStateError if it was entered already, or if our node was
        deleted while we waited.
        """
        self._bridge.call(self._inner.enter)

    def leave(self) -> None:
        """Wait until all members of our round have left or died.

        Raises LockStateError if it was not entered; GrantLostError if we were not a member any
        more, so that the others may have left without us; SessionExpiredError.
        """
        self._bridge.call(self._inner.leave)

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self
