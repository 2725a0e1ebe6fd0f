"""What calls give where it is more than one thing."""

from __future__ import annotations

from typing import NamedTuple

from paddock.protocol.records import Stat


class NodeData(NamedTuple):
    """What is in a node."""

    data: bytes
    stat: Stat


class Children(NamedTuple):
    """The names of a node's children, and its stat."""

    names: list[str]
    stat: Stat


class Created(NamedTuple):
    """Where a node was created, and its stat."""

    path: str
    stat: Stat
