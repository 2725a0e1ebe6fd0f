"""The blocking twin of `paddock.recipes.groups.partitioner`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.groups.partitioner import Partitioner as AsyncPartitioner
from paddock.recipes.groups.partitioner import Share
from paddock.recipes.locks.line import Contender
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.recipes.grant import Grant
from paddock.sync.streams import Stream


class Partitioner(Twin[AsyncPartitioner]):
    """One member of a group that divides a set of items.

        with Partitioner(client, "/shards", ["a", "b"]) as partitioner:
            for share in partitioner.shares():
                print(partitioner.grant("a").is_held)  # True
                break

    All members use the same items; if they do not, those of the oldest member count. Others read
    `data` in `members`.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        items: Iterable[str],
        *,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: AsyncPartitioner(client._inner, path, items, data=data, acl=acl),
        )

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self

    @property
    def items(self) -> frozenset[str]:
        """The items of the last share."""
        return self._inner.items

    def grant(self, item: str) -> Grant:
        """Return the grant of an item that is ours, or about to be let go.

        Raises LockStateError if it is neither.
        """
        return Grant._of(self._bridge, self._bridge.run(self._inner.grant, item))

    def shares(self) -> Stream[Share]:
        """Return a stream of our shares; requesting the next one lets go of removed items.

            for share in partitioner.shares():
                print(sorted(share.gained), sorted(share.removed))  # ['a', 'b'] []
                break

        The first share comes once we have items, or there is none for us. A member that does not
        request the next share keeps its items until the scope ends, which ends the stream, too.
        Raises GrantLostError when we are a member no more, and LockStateError if there is another
        such stream, or outside the scope.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.shares))

    def wait_settled(self) -> None:
        """Wait until our share is what the present division says.

        Another task has to read `shares` meanwhile. Other members may not have settled yet. Raises
        GrantLostError when we are a member no more.
        """
        self._bridge.call(self._inner.wait_settled)

    def members(self) -> list[Contender]:
        """Return all members, in the order in which they came."""
        return self._bridge.call(self._inner.members)
