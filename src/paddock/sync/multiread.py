"""The blocking twin of `paddock.client.multiread`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from typing import Self

from paddock.client.multiread import MultiRead as AsyncMultiRead
from paddock.client.multiread import Reading
from paddock.client.results import NodeData
from paddock.sync.bridge import Twin


class MultiRead(Twin[AsyncMultiRead]):
    """Reads that are gathered, to be carried out with one request."""

    def get(self, path: str) -> Reading[NodeData]:
        """Read the data and the stat of a node."""
        return self._inner.get(path)

    def children(self, path: str) -> Reading[list[str]]:
        """Read the names of a node's children."""
        return self._inner.children(path)

    def commit(self) -> None:
        """Carry them out. Repeated after a lost connection, since reading does no harm.

        Raises ConnectionLostError if no server answers in time; then none of them has a result.
        """
        self._bridge.call(self._inner.commit)

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self
