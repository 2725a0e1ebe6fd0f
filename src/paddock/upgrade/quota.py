"""What Apache counts below the nodes that have a quota, while it loads and replays.

The counts are not in its log: they are counted when a snapshot has been loaded, and from then on
with every transaction, for the nearest quota above. Their nodes show no other change.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from paddock.state.tree import LIMITS, QUOTA

if TYPE_CHECKING:
    from paddock.upgrade.state import ApacheState

STATISTICS: Final = b"/zookeeper_stats"

_SEPARATOR: Final = re.compile(rb"[,;]+")
_NUMBER: Final = re.compile(rb"-?[0-9]{1,19}")


def set_up(state: ApacheState) -> None:
    """Find the quotas of a snapshot that has been loaded, and count what is below each."""
    for path, node in list(state.nodes.items()):
        if path.startswith(QUOTA + b"/") and path.endswith(LIMITS) and not node.children:
            governed = path[len(QUOTA) : -len(LIMITS)]
            if governed:
                count_anew(state, governed)
                state.quotas.add(governed)


def count_anew(state: ApacheState, governed: bytes) -> None:
    """Count a node and everything below it into the statistics of its quota."""
    statistics = state.nodes.get(QUOTA + governed + STATISTICS)
    if statistics is None:
        return
    nodes = 0
    size = 0
    waiting = [governed]
    while waiting:
        path = waiting.pop()
        node = state.nodes.get(path)
        if node is not None:
            nodes += 1
            size += 0 if node.data is None else len(node.data)
            waiting.extend(path + b"/" + name for name in node.children or ())
    statistics.data = b"count=%d,bytes=%d" % (nodes, size)


def add(state: ApacheState, path: bytes, nodes: int, size: int) -> None:
    """Count a change of a node for the nearest quota above it, if it has one."""
    if not state.quotas:
        return
    while path and path not in state.quotas:
        path = path[: path.rfind(b"/")]
    statistics = state.nodes.get(QUOTA + path + STATISTICS) if path else None
    if statistics is not None and statistics.data is not None:
        changed = _changed(statistics.data, nodes, size)
        if changed is not None:
            statistics.data = changed


def _changed(text: bytes, nodes: int, size: int) -> bytes | None:
    """Give the statistics with something added, in upstream's form; None if they are not such."""
    values = {}
    for pair in _SEPARATOR.split(text) if text else ():
        key, _, value = pair.partition(b"=")
        value = value.partition(b"=")[0] or b"-1"
        if _NUMBER.fullmatch(value) is None:
            return None
        values[key] = int(value)
    count = values.pop(b"count", -1) + nodes
    held = values.pop(b"bytes", -1) + size
    rest = b"".join(b";%s=%d" % (key, values[key]) for key in sorted(values))
    return b"count=%d,bytes=%d" % (count, held) + (b"=" + rest if rest else b"")
