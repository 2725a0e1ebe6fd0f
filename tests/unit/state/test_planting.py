"""Nodes that are planted in any order become a tree, with the same children and counts."""

from __future__ import annotations

from itertools import permutations

import pytest

from paddock.protocol.acl import OPEN
from paddock.state.access import NodeACL
from paddock.state.node import Node
from paddock.state.planting import Planting
from paddock.state.table import Table

SIZES = {b"/a": 1, b"/a/b": 2, b"/a/b/c": 3, b"/a/bc": 4, b"/ab": 5}


def linked(paths: tuple[bytes, ...]) -> tuple[Table[Node], bytes | None]:
    """Plant nodes below a root; return all nodes, and one without a parent."""
    acl = NodeACL(OPEN, b"")
    nodes, planting = Table[Node](), Planting()
    nodes.plant(b"/", Node(b"", acl, 0, 0, 0))
    nodes.plant(b"", nodes[b"/"])
    for path in paths:
        nodes.plant(path, Node(bytes(SIZES.get(path, 0)), acl, 0, 0, 0))
        planting.add(path, SIZES.get(path, 0))
    return nodes, planting.link(nodes)


@pytest.mark.parametrize("paths", list(permutations(SIZES)))
def test_the_order_does_not_matter(paths: tuple[bytes, ...]) -> None:
    nodes, orphan = linked(paths)
    assert orphan is None
    found = {path: sorted(node.child_names()) for path, node in nodes.items()}
    assert found == {
        b"": [b"a", b"ab"],
        b"/": [b"a", b"ab"],
        b"/a": [b"b", b"bc"],
        b"/a/b": [b"c"],
        b"/a/b/c": [],
        b"/a/bc": [],
        b"/ab": [],
    }
    counts = {}
    for path, node in nodes.items():
        if node.children is not None:
            counts[path] = (node.children.below, node.children.below_bytes)
    assert counts == {b"": (5, 15), b"/": (5, 15), b"/a": (3, 9), b"/a/b": (1, 3)}
    inner, outer = nodes[b"/a/b"].children, nodes[b"/a"].children
    assert inner is not None
    assert inner.above is outer
    assert outer is not None
    assert outer.above is nodes[b"/"].children


@pytest.mark.parametrize("path", [b"/x/y", b"/a/b/c/d/e", b"//a", b"/a//b"])
def test_one_without_a_parent_is_named(path: bytes) -> None:
    assert linked((*SIZES, path))[1] == path
