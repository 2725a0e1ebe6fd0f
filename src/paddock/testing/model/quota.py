"""Quotas of the reference model: limits and statistics, both of them data of nodes."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from paddock import errors
from paddock.testing.model.parts import ModelNode, No

QUOTA: Final = b"/zookeeper/quota"
LIMITS: Final = b"/zookeeper_limits"
STATISTICS: Final = b"/zookeeper_stats"

# Longer data is not understood, and the text of two counts must fit beside what else is there.
TEXT_BYTES_MAX: Final = 1000
COUNTS_BYTES_MAX: Final = 53

Nodes: TypeAlias = dict[bytes, ModelNode]


def is_statistics(path: bytes) -> bool:
    """Return whether the statistics of a quota stand there."""
    return path.startswith(QUOTA + b"/") and path.endswith(STATISTICS)


def count_anew(nodes: Nodes, path: bytes) -> None:
    """Begin the statistics of a quota with what is at and below its node now."""
    governed = path[len(QUOTA) : -len(STATISTICS)]
    mine = [
        node
        for other, node in nodes.items()
        if other == governed or other.startswith(governed + b"/")
    ]
    size = sum(len(node.data or b"") for node in mine)
    nodes[path].data = b"count=%d,bytes=%d" % (len(mine), size)


def keep_limits(nodes: Nodes, path: bytes, *, more: int, growth: int) -> None:
    """Refuse what would go over a hard limit, if limits and statistics can be understood."""
    governed = _governed_by(nodes, path)
    limits = numbers_of(nodes.get(QUOTA + governed + LIMITS))
    counts = counts_of(nodes.get(QUOTA + governed + STATISTICS))
    if not governed or limits is None or counts is None:
        return
    for change, counter, limit_name in (
        (more, "count", "countHardLimit"),
        (growth, "bytes", "byteHardLimit"),
    ):
        limit = limits.get(limit_name, -1)
        if change and limit >= 0 and counts.get(counter, -1) + change > limit:
            raise No(errors.QUOTA_EXCEEDED)


def count(nodes: Nodes, path: bytes, *, more: int, growth: int) -> None:
    """Keep the statistics of the nearest quota, if what is written there can be understood."""
    governed = _governed_by(nodes, path)
    node = nodes.get(QUOTA + governed + STATISTICS) if governed else None
    counts = counts_of(node)
    if node is None or counts is None:
        return
    number, total = counts.pop("count", -1) + more, counts.pop("bytes", -1) + growth
    node.data = f"count={number},bytes={total}{_rest(counts)}".encode()


def counts_of(node: ModelNode | None) -> dict[str, int] | None:
    """Read statistics; None if they cannot be understood, or could not be once they are counted."""
    counts = numbers_of(node)
    if counts is None:
        return None
    rest = _rest({name: counts[name] for name in counts.keys() - {"count", "bytes"}})
    return counts if len(rest.encode()) + COUNTS_BYTES_MAX <= TEXT_BYTES_MAX else None


def _rest(numbers: dict[str, int]) -> str:
    pairs = ";".join(f"{name}={numbers[name]}" for name in sorted(numbers))
    return f"=;{pairs}" if pairs else ""


def numbers_of(node: ModelNode | None) -> dict[str, int] | None:
    """Read `name=number` pairs between commas and semicolons; None if it is anything else."""
    if node is None or node.data is None or len(node.data) > TEXT_BYTES_MAX:
        return None
    text = re.sub("[,;]+$", "", node.data.decode(errors="replace"))
    numbers: dict[str, int] = {}
    for pair in re.split("[,;]+", text) if text else []:
        # What stands behind a second `=` does not matter; `name==` is -1.
        match = re.fullmatch(r"([^=]*)=([+-]?[0-9]+|)(=.*)?", pair, re.DOTALL)
        if match is None or not pair.rstrip("=").partition("=")[2]:
            return None
        number = int(match[2] or "-1")
        if not -(1 << 63) <= number < 1 << 63:
            return None
        numbers[match[1]] = number
    return numbers


def _governed_by(nodes: Nodes, path: bytes) -> bytes:
    """Return the nearest node with limits, from a node upwards; nothing if there is none."""
    while path and QUOTA + path + LIMITS not in nodes:
        path = path.rpartition(b"/")[0]
    return path
