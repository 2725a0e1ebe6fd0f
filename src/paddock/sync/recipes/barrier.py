"""The blocking twin of `paddock.recipes.groups.barrier`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.groups.barrier import Barrier as AsyncBarrier
from paddock.recipes.groups.barrier import DoubleBarrier as AsyncDoubleBarrier
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client


class Barrier(Twin[AsyncBarrier]):
    """A gate: closed while its node is there, by whomever it was made.

        gate = Barrier(client, "/barriers/start")
        gate.close()
        print(gate.is_open())  # False
        gate.open()
        gate.wait()

    It stays closed when whoever has closed it goes. Closing what is closed does nothing, nor does
    opening what is open.
    """

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        bridge = bridge_of("client", client)
        super().__init__(bridge, bridge.run(AsyncBarrier, client._inner, path, acl=acl), client)

    def is_open(self) -> bool:
        """Tell whether nobody would have to wait now."""
        return self._bridge.call(self._inner.is_open)

    def close(self) -> None:
        """Close it, if it is open: from then on, everybody waits."""
        self._bridge.call(self._inner.close)

    def open(self) -> None:
        """Open it, if it is closed: everybody who waits goes on."""
        self._bridge.call(self._inner.open)

    def wait(self) -> None:
        """Wait until it is open, as long as it takes; that may be at once.

        If it is closed again in the next moment, that may go unnoticed. Raises SessionExpiredError.
        """
        self._bridge.call(self._inner.wait)


class DoubleBarrier(Twin[AsyncDoubleBarrier]):
    """A group of so many, who begin together and end together, as often as they like.

        barrier = DoubleBarrier(client, "/barriers/step", 3)
        barrier.enter()  # returns when three have come
        barrier.leave()  # returns when all three have left

    A double barrier is one member: whoever takes part needs one of its own. All of a group give
    the same size. As a rule the scope, `with barrier`, is better, since it ends what is done
    in it when we are not a member any more; if its body fails, it leaves and waits for nobody.
    """

    def __init__(
        self, client: Client, path: str, size: int, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        bridge = bridge_of("client", client)
        super().__init__(
            bridge, bridge.run(AsyncDoubleBarrier, client._inner, path, size, acl=acl), client
        )

    @property
    def is_entered(self) -> bool:
        """Whether we have entered, and are surely a member, at this moment."""
        return self._inner.is_entered

    def enter(self) -> None:
        """Wait until as many have come as there are to be, as long as it takes.

        Raises SessionExpiredError; and LockStateError if it was entered already, or if somebody has
        deleted our node while we waited.
        """
        self._bridge.call(self._inner.enter)

    def leave(self) -> None:
        """Wait until everybody who was let in with us has left, or has died.

        Raises LockStateError if it was not entered; GrantLostError if we had ceased to be a member
        before, so that the others may have left without us; SessionExpiredError.
        """
        self._bridge.call(self._inner.leave)

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self
