"""What Apache counts below the nodes that have a quota, while it loads and replays.

The counts are not in its log: they are counted when a snapshot has been loaded, and from then on
with every transaction, for the nearest quota above. Their nodes show no other change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddock.state.limits import QUOTA, STATISTICS, governed_by_limits
from paddock.state.quota import statistics_text

if TYPE_CHECKING:
    from paddock.upgrade.state import ApacheState


def set_up(state: ApacheState) -> None:
    """Find the quotas of a snapshot that has been loaded, and count what is below each."""
    for path in list(state.nodes):
        governed = governed_by_limits(path)
        if governed:
            state.quotas.add(governed)
            count_anew(state, governed)


def count_anew(state: ApacheState, governed: bytes) -> None:
    """Count a node and everything below it into the statistics of its quota."""
    statistics = state.nodes.get(QUOTA + governed + STATISTICS)
    if statistics is not None:
        statistics.data = _counted(state, governed)


def _counted(state: ApacheState, governed: bytes) -> bytes:
    nodes = size = 0
    waiting = [governed]
    while waiting:
        path = waiting.pop()
        node = state.nodes.get(path)
        if node is not None:
            nodes += 1
            size += 0 if node.data is None else len(node.data)
            if node.children is not None:
                waiting.extend(path + b"/" + name for name in node.children.names)
    return statistics_text(nodes, size)


def count(state: ApacheState, path: bytes, nodes: int, size: int) -> None:
    """Count a change of a node for the nearest quota above it, if it has one."""
    quota = state.quotas.governor(path) if state.quotas.size else None
    statistics = None if quota is None else state.nodes.get(quota.statistics_path)
    if quota is not None and statistics is not None and quota.read_statistics(statistics.data):
        statistics.data = quota.add(nodes, size)
