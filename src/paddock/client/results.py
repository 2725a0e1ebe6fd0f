"""Results of calls that have several parts."""

from __future__ import annotations

from typing import Final, NamedTuple

from paddock.protocol.records import Stat


class _NoData(bytes):
    """Empty data, told from others by its identity."""


# The data of a node without any (null).
NO_DATA: Final[bytes] = _NoData()


class NodeData(NamedTuple):
    """What is in a node."""

    data: bytes
    stat: Stat

    @property
    def is_null(self) -> bool:
        """Return whether the node has no data at all, which the service tells from empty data."""
        return self.data is NO_DATA


class Children(NamedTuple):
    """The names of a node's children, and its stat."""

    names: list[str]
    stat: Stat


class Created(NamedTuple):
    """Where a node was created, and its stat."""

    path: str
    stat: Stat
