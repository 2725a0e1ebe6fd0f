"""Quotas: counting nodes and bytes below a node, and refusing writes over a limit.

A quota on `/app` is the node `/zookeeper/quota/app/zookeeper_limits`; what is below `/app`, itself
included, is counted in `zookeeper_stats` beside it. Formats and rules are upstream's: the counts
change without a version, a zxid or an event, and only while there are limits. Of several quotas
above a node the nearest counts, and no other.

A soft limit gives a notice. A hard one refuses writes over it, if the entry says that limits are
enforced; deletes, and data that does not grow, are never refused. Unlike upstream, each step of a
transaction is checked after the ones before it.

The state does not log: an outcome carries a notice, and the server logs it. Its sentence is
formatted on demand, since most notices are never logged.
"""

from __future__ import annotations

from paddock.state.entry import LOOSE_QUOTAS
from paddock.state.limits import NO_LIMIT, STATISTICS, Quota, governed_by, statistics_text
from paddock.state.tree import Tree


class Notice:
    """A notice for the operator."""

    def sentence(self) -> str:
        raise NotImplementedError


class Fault(Notice):
    """An internal error."""

    def __init__(self, text: str) -> None:
        self._text = text

    def sentence(self) -> str:
        return self._text


class QuotaNotice(Notice):
    """A notice about the quota of a node."""

    def __init__(self, governed: bytes, kind: str) -> None:
        # The node that has the quota, and what about it. There may be many notices of one kind.
        self.governed = governed
        self.kind = kind


class OverLimit(QuotaNotice):
    """A write exceeds a limit, or was refused because of it."""

    def __init__(
        self, governed: bytes, amount: int, unit: str, limit: int, is_hard: bool, is_refused: bool
    ) -> None:
        super().__init__(governed, f"{unit}, {'hard' if is_hard else 'soft'}")
        self._amount = amount
        self._unit = unit
        self._limit = limit
        self.is_hard = is_hard
        self.is_refused = is_refused

    def sentence(self) -> str:
        path = self.governed.decode("utf-8", "replace")
        kind = "hard" if self.is_hard else "soft"
        if self.is_refused:
            end = ": refused"
        else:
            end = ", which is not enforced" if self.is_hard else ""
        return (
            f"quota of {path} exceeded: {self._amount} {self._unit}, "
            f"the {kind} limit is {self._limit}{end}"
        )


class UnusableQuota(QuotaNotice):
    """A quota without effect, since one of its nodes is missing or malformed."""

    def __init__(self, quota: Quota, path: bytes) -> None:
        super().__init__(quota.governed, "unusable")
        self._path = path

    def sentence(self) -> str:
        path = self._path.decode("utf-8", "replace")
        governed = self.governed.decode("utf-8", "replace")
        return f"quota of {governed} limits nothing: {path} is missing or cannot be read"


def examine(
    tree: Tree, quota: Quota, nodes: int, size: int, is_enforced: bool
) -> QuotaNotice | None:
    """Check a quota against more nodes and bytes.

    A refused OverLimit refuses the write; any other notice is only reported.
    """
    limits = tree.nodes.get(quota.limits_path)
    if limits is None or not quota.read_limits(limits.data):
        return UnusableQuota(quota, quota.limits_path)
    count_soft, count_hard = quota.count_soft, quota.count_hard
    bytes_soft, bytes_hard = quota.bytes_soft, quota.bytes_hard
    counts_nodes = nodes != 0 and (count_soft != NO_LIMIT or count_hard != NO_LIMIT)
    counts_bytes = size != 0 and (bytes_soft != NO_LIMIT or bytes_hard != NO_LIMIT)
    if not counts_nodes and not counts_bytes:
        return None
    statistics = tree.nodes.get(quota.statistics_path)
    if statistics is None or not quota.read_statistics(statistics.data):
        return UnusableQuota(quota, quota.statistics_path)
    first: QuotaNotice | None = None
    for counts, unit, total, soft, hard in (
        (counts_nodes, "nodes", quota.nodes + nodes, count_soft, count_hard),
        (counts_bytes, "bytes", quota.size + size, bytes_soft, bytes_hard),
    ):
        notice: QuotaNotice | None = None
        if counts and hard != NO_LIMIT and total > hard:
            notice = OverLimit(quota.governed, total, unit, hard, True, is_enforced)
            if is_enforced:
                return notice
        elif counts and soft != NO_LIMIT and total > soft:
            notice = OverLimit(quota.governed, total, unit, soft, False, False)
        if first is None:
            first = notice
    return first


def created(tree: Tree, path: bytes, data: bytes | None, rules: int) -> None:
    """Count a node that was created; start counting, if it is a statistics node."""
    # Most are neither: a call for each of them is saved.
    governed = governed_by(STATISTICS, path) if path.endswith(STATISTICS) else None
    if governed is not None:
        tree.set_silently(path, tree.nodes[path], statistics_text(*tree.subtree(governed)))
    if tree.quotas.size:
        _count(tree, path, 1, 0 if data is None else len(data), rules)


def deleted(tree: Tree, path: bytes, data: bytes | None, rules: int) -> None:
    """Count a node that was deleted."""
    if tree.quotas.size:
        _count(tree, path, -1, 0 if data is None else -len(data), rules)


def count(tree: Tree, quota: Quota, nodes: int, size: int) -> None:
    """Add to the counts of a quota, unless its statistics are missing or malformed."""
    node = tree.nodes.get(quota.statistics_path)
    if node is None or not quota.read_statistics(node.data):
        return
    if nodes or size or not quota.is_written_here:
        tree.set_silently(quota.statistics_path, node, quota.add(nodes, size))


def _count(tree: Tree, path: bytes, nodes: int, size: int, rules: int) -> None:
    quota = tree.quotas.governor(path, rules <= LOOSE_QUOTAS)
    if quota is not None:
        count(tree, quota, nodes, size)
