"""The blocking twin of `paddock.client.transaction`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from paddock.client.requests.encoder import ANY_VERSION
from paddock.client.transaction import Transaction as AsyncTransaction
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.sync.bridge import Twin


class Transaction(Twin[AsyncTransaction]):
    """Operations that are gathered, to be carried out together."""

    @property
    def results(self) -> list[Any]:
        """What came of each operation, once it is committed: the path of a create, the stat of a
        set, None for the rest."""
        return self._inner.results

    def create(
        self,
        path: str,
        data: bytes | None = b"",
        *,
        acl: Sequence[ACL] = OPEN_TO_ALL,
        ephemeral: bool = False,
        sequential: bool = False,
        container: bool = False,
        ttl: float | None = None,
    ) -> Self:
        """Create a node, as `Client.create` does; its result is the path."""
        self._inner.create(
            path,
            data,
            acl=acl,
            ephemeral=ephemeral,
            sequential=sequential,
            container=container,
            ttl=ttl,
        )
        return self

    def set(self, path: str, data: bytes | None, *, version: int = ANY_VERSION) -> Self:
        """Replace the data of a node, if it has this version; its result is the stat."""
        self._inner.set(path, data, version=version)
        return self

    def delete(self, path: str, *, version: int = ANY_VERSION) -> Self:
        """Delete a node that has no children, if it has this version."""
        self._inner.delete(path, version=version)
        return self

    def check(self, path: str, *, version: int = ANY_VERSION) -> Self:
        """Have all of it fail unless the node is there and has this version."""
        self._inner.check(path, version=version)
        return self

    def commit(self) -> list[Any]:
        """Carry it out, once; return the result of each operation.

        Raises TransactionFailedError if it was refused.
        """
        return self._bridge.call(self._inner.commit)

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self
