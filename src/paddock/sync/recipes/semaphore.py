"""The blocking twin of `paddock.recipes.locks.semaphore`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.locks.line import Contender
from paddock.recipes.locks.semaphore import Semaphore as AsyncSemaphore
from paddock.sync.client import Client
from paddock.sync.recipes.holder import Holder


class Semaphore(Holder):
    """One contender for a number of leases; it holds one at a time.

        semaphore = Semaphore(client, "/semaphores/printers", leases=3, data=b"worker 7")
        with semaphore as grant:
            print(len(semaphore.holders()))  # 1

    `try_acquire` returns None also while another contender is first in the line. Others read `data`
    in `holders`.
    """

    _inner: AsyncSemaphore

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        leases: int,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: AsyncSemaphore(client._inner, path, leases=leases, data=data, acl=acl),
        )

    def holders(self) -> list[Contender]:
        """Return all who hold a lease, in the order in which they got it."""
        return self._bridge.call(self._inner.holders)
