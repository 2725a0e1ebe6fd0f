"""The counts that Apache keeps below the nodes that have a quota, while it loads and replays.

They are not in its log: they are counted when a snapshot has been loaded, and from then on with
every transaction, for the nearest quota above. Their nodes show no other change.
"""

from __future__ import annotations

from paddock.state.limits import QUOTA, STATISTICS, Quotas, governed_by_limits
from paddock.state.node import Node, data_length
from paddock.state.quota import statistics_text


def set_up(nodes: dict[bytes, Node], quotas: Quotas) -> None:
    """Find the quotas of a snapshot that has been loaded, and count what is below each."""
    for path in list(nodes):
        governed = governed_by_limits(path)
        if governed:
            quotas.add(governed)
            count_anew(nodes, governed)


def count_anew(nodes: dict[bytes, Node], governed: bytes) -> None:
    """Count a node and everything below it into the statistics of its quota."""
    statistics = nodes.get(QUOTA + governed + STATISTICS)
    if statistics is None:
        return
    count = size = 0
    waiting = [governed]
    while waiting:
        path = waiting.pop()
        node = nodes.get(path)
        if node is not None:
            count += 1
            size += data_length(node.data)
            waiting.extend(path + b"/" + name for name in node.child_names())
    statistics.data = statistics_text(count, size)


def count(nodes: dict[bytes, Node], quotas: Quotas, path: bytes, more: int, size: int) -> None:
    """Count a change of a node for the nearest quota above it, if it has one."""
    quota = quotas.governor(path) if quotas.size else None
    statistics = None if quota is None else nodes.get(quota.statistics_path)
    if quota is not None and statistics is not None and quota.read_statistics(statistics.data):
        statistics.data = quota.add(more, size)
