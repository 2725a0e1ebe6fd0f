"""Encoded answers of get and get_children, kept in the nodes until these change.

Each is encoded once for each state of its node, while there is room for it. A node that is about
to change must be forgotten first.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from paddock.state.node import Node

CACHED_BYTES_MAX: Final = 64 << 20


class AnswerCache:
    """The answers that the nodes of one tree keep."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        # Bytes of all answers. Invariant: at most one answer over CACHED_BYTES_MAX.
        self.size: i64 = 0

    def has_room(self) -> bool:
        """Return whether the next answer would be kept."""
        return self.size < CACHED_BYTES_MAX

    def data_and_stat(self, node: Node) -> bytes:
        """Return the answer to get."""
        wire = node.wire
        if wire is None:
            writer = BytesWriter()
            node.write_data_and_stat(writer)
            wire = writer.getvalue()
            if self.size < CACHED_BYTES_MAX:
                node.wire = wire
                self.size += len(wire)
        return wire

    def child_list(self, node: Node) -> bytes:
        """Return the answer to get_children."""
        wire = node.children_wire
        if wire is None:
            writer = BytesWriter()
            node.write_children(writer)
            wire = writer.getvalue()
            if self.size < CACHED_BYTES_MAX:
                node.children_wire = wire
                self.size += len(wire)
        return wire

    def forget_data(self, node: Node) -> None:
        """Drop the answer to get: the node is about to change."""
        wire = node.wire
        if wire is not None:
            self.size -= len(wire)
            node.wire = None

    def forget_children(self, node: Node) -> None:
        """Drop the answer to get_children: the node's children change."""
        wire = node.children_wire
        if wire is not None:
            self.size -= len(wire)
            node.children_wire = None
