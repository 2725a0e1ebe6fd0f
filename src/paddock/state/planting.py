"""The children of nodes that are planted, as the nodes of a snapshot are, in any order.

A node may come before the one above it. So children are gathered by the path above them, and given
to their parents at the end: a walk over the parents, and not over all nodes once more.
"""

from __future__ import annotations

from mypy_extensions import i64

from paddock.protocol.paths import SLASH
from paddock.state.node import Children, Node
from paddock.state.table import Table


class Planting:
    """The children that were planted and are not linked to their parents yet."""

    def __init__(self) -> None:
        self._by_parent: dict[bytes, Children] = {}
        # The last path above, and what is below it: the next node often has the same parent.
        self._above = b""
        self._below: Children | None = None

    def add(self, path: bytes, size: i64) -> None:
        """Add a node that has data of this size. Its path begins with a slash, and is not `/`."""
        # By index, and nothing is looked up for one more child of the same parent: 0.2 µs less.
        cut: i64 = len(path) - 1
        while path[cut] != SLASH:
            cut -= 1
        children = self._below
        if children is None or cut != len(self._above) or not path.startswith(self._above):
            above = path[:cut]
            children = self._by_parent.get(above)
            if children is None:
                children = Children(None)
                self._by_parent[above] = children
            self._above, self._below = above, children
        children.plant(path, None)
        # First what is directly below.
        children.below += 1
        children.below_bytes += size

    def link(self, nodes: Table[Node]) -> bytes | None:
        """Link all children to their parents; return one without a parent, if there is any."""
        for above, children in self._by_parent.items():
            parent = nodes.get(above)
            # Nothing is below the root by its longer name.
            if parent is None or above == b"/":
                return next(iter(children))
            parent.children = children
        direct: list[tuple[Children, i64, i64]] = []
        for above, children in self._by_parent.items():
            if above:
                children.above = nodes[above[: above.rfind(b"/")]].children
                direct.append((children, children.below, children.below_bytes))
        for children, count, size in direct:
            assert children.above is not None
            children.above.count(count, size)
        return None
