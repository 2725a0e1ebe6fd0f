"""The blocking twin of `paddock.recipes.groups.partitioner`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.groups.partitioner import Partitioner as AsyncPartitioner
from paddock.recipes.groups.partitioner import Share
from paddock.recipes.locks.line import Contender
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.recipes.grant import Grant
from paddock.sync.streams import Stream


class Partitioner(Twin[AsyncPartitioner]):
    """One member of those who divide a set of items.

        with Partitioner(client, "/shards", ["a", "b"]) as partitioner:
            for share in partitioner.shares():
                print(partitioner.grant("a").is_held)  # True
                break

    All members give the same items; if they do not, those of the one who has been there longest
    count. `data` is what others read of us in `members`.
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
        bridge = bridge_of("client", client)
        super().__init__(
            bridge,
            bridge.run(AsyncPartitioner, client._inner, path, items, data=data, acl=acl),
            client,
        )

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self

    @property
    def items(self) -> frozenset[str]:
        """What is ours, as the last share has told."""
        return self._inner.items

    def grant(self, item: str) -> Grant:
        """Give the grant of an item that is ours, or about to be let go.

        Raises LockStateError if it is neither.
        """
        return Grant._of(self._bridge, self._bridge.run(self._inner.grant, item))

    def shares(self) -> Stream[Share]:
        """Give what is ours, whenever it changes; asking for the next one lets go what has gone.

            for share in partitioner.shares():
                print(sorted(share.gained), sorted(share.removed))  # ['a', 'b'] []
                break

        The first share comes once we have any, or it is known that there is none for us. Whoever
        stops asking keeps what they have until the scope ends, and then shares end as well. Raises
        GrantLostError when we are a member no more, and LockStateError if somebody else asks
        already, or before the scope.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.shares))

    def wait_settled(self) -> None:
        """Wait until we have what belongs to us, all of it and no more, by the present members.

        It takes somebody who asks for shares meanwhile. Others may still wait for theirs. Raises
        GrantLostError when we are a member no more.
        """
        self._bridge.call(self._inner.wait_settled)

    def members(self) -> list[Contender]:
        """Give all members, in the order in which they came."""
        return self._bridge.call(self._inner.members)
