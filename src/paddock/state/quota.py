"""Quotas: what is counted below a node that has one.

A quota on `/app` is the node `/zookeeper/quota/app/zookeeper_limits`; what is below `/app`, itself
included, is counted in `zookeeper_stats` beside it. Formats and rules are upstream's: the counts
change without a version, a zxid or an event, and only while there are limits. Of several quotas
above a node the nearest counts. Limits are not enforced.
"""

from __future__ import annotations

import re
from typing import Final

from paddock.state.tree import QUOTA, Tree

STATISTICS: Final = b"/zookeeper_stats"

_COUNTS: Final = re.compile(rb"count=(-?\d{1,19}),bytes=(-?\d{1,19})(.*)", re.DOTALL)


def created(tree: Tree, path: bytes, data: bytes | None) -> None:
    """Count a node that was created; or begin to count, if that is what it stands for."""
    if path.startswith(QUOTA) and path.endswith(STATISTICS):
        _count_anew(tree, path)
    if tree.quotas:
        _add(tree, path, 1, 0 if data is None else len(data))


def deleted(tree: Tree, path: bytes, data: bytes | None) -> None:
    """Count a node that was deleted."""
    if tree.quotas:
        _add(tree, path, -1, 0 if data is None else -len(data))


def resized(tree: Tree, path: bytes, old: bytes | None, new: bytes | None) -> None:
    """Count a node whose data was replaced."""
    _add(tree, path, 0, (0 if new is None else len(new)) - (0 if old is None else len(old)))


def _add(tree: Tree, path: bytes, nodes: int, size: int) -> None:
    governor = _governor(tree, path)
    if governor is None:
        return
    statistics = QUOTA + governor + STATISTICS
    node = tree.nodes.get(statistics)
    # Somebody may have removed the statistics or written something else there.
    counts = None if node is None or node.data is None else _COUNTS.fullmatch(node.data)
    if node is None or counts is None:
        return
    text = b"count=%d,bytes=%d" % (int(counts[1]) + nodes, int(counts[2]) + size)
    tree.set_silently(statistics, node, text + counts[3])


def _count_anew(tree: Tree, statistics: bytes) -> None:
    governed = statistics[len(QUOTA) : -len(STATISTICS)]
    nodes = 0
    size = 0
    waiting = [governed] if governed in tree.nodes else []
    while waiting:
        path = waiting.pop()
        node = tree.nodes[path]
        nodes += 1
        size += 0 if node.data is None else len(node.data)
        if node.children is not None:
            waiting.extend(path + b"/" + name for name in node.children)
    tree.set_silently(statistics, tree.nodes[statistics], b"count=%d,bytes=%d" % (nodes, size))


def _governor(tree: Tree, path: bytes) -> bytes | None:
    """Give the nearest node with a quota, from a node upwards; the root cannot have one."""
    while path:
        if path in tree.quotas:
            return path
        path = path[: path.rfind(b"/")]
    return None
