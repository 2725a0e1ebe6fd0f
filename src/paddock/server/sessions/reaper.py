"""Deletes empty containers and expired TTL nodes.

The state has no clock, so this scans them at an interval and proposes the deletion of each that is
due. The proposal names the node by czxid and mzxid: if it was written or replaced in the meantime,
applying it does nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from paddock.server.config.config import ServerConfig
from paddock.server.replication.proposals import Submitter
from paddock.server.replication.proposer import Proposer
from paddock.state.entry import REAP, Entry
from paddock.state.machine import reap_body
from paddock.state.node import TTL_BASE, Node
from paddock.state.tree import Tree

# Nodes that are scanned in one step: less than a millisecond.
LOOKS_IN_A_STEP: Final = 1000


class Reaper:
    """Scans containers and TTL nodes at a fixed interval.

    Each interval is one round, which scans every node once, a few at a time so that clients are
    served in between. A round ends early at the limit of proposals; the next one continues behind
    it, so every node is reached in the end.
    """

    def __init__(
        self, proposer: Proposer, tree: Tree, config: ServerConfig, time_ms: Callable[[], int]
    ) -> None:
        self._proposer = proposer
        self._tree = tree
        self._interval = config.container_check_interval_ms / 1000
        # The limit of one round: clients' writes wait behind it.
        self._at_once = max(1, int(config.max_containers_per_minute * self._interval / 60))
        # How long a container without any child so far may stay; 0 is for ever.
        self._unused_ms = config.max_unused_container_ms
        # The clock of mtime.
        self._time_ms = time_ms
        # Whether it is this server that reaps, where several share a log.
        self.is_on_duty: Callable[[], bool] | None = None
        # Ignores the outcome: a node that was not deleted is scanned again.
        self._ignored = Submitter()
        # The next round, or the next step of this one.
        self._timer: asyncio.Handle | None = None
        # Whether TTL nodes are scanned, and not containers, and how many are left of them.
        self._is_at_ttls = False
        self._left = 0
        # How many nodes this round still has to scan, and how many it may delete.
        self._unseen = 0
        self._room = 0

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._begin_round)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _begin_round(self) -> None:
        tree = self._tree
        is_on_duty = self.is_on_duty is None or self.is_on_duty()
        self._unseen = len(tree.containers) + len(tree.ttls) if is_on_duty else 0
        # Earlier proposals may still wait, for a log that is broken.
        self._room = max(self._at_once - self._proposer.outstanding(), 0)
        self._step()

    def _step(self) -> None:
        tree = self._tree
        now_ms = self._time_ms()
        budget = min(self._unseen, LOOKS_IN_A_STEP)
        self._unseen -= budget
        while budget > 0 and self._room > 0:
            bag = tree.ttls if self._is_at_ttls else tree.containers
            # Some may be gone since the last step; see PathBag.
            self._left = min(self._left, len(bag))
            if self._left == 0:
                if not len(tree.containers) + len(tree.ttls):
                    self._unseen = 0
                    break
                # The nodes of the other kind, from their end.
                self._is_at_ttls = not self._is_at_ttls
                self._left = len(tree.ttls if self._is_at_ttls else tree.containers)
                continue
            budget -= 1
            self._left -= 1
            path = bag[self._left]
            node = tree.nodes[path]
            if self._is_due(node, now_ms):
                self._room -= 1
                body = reap_body(path, node.czxid, node.mzxid)
                self._proposer.submit(Entry(REAP, body), self._ignored)
        if self._unseen > 0 and self._room > 0:
            self._timer = asyncio.get_running_loop().call_soon(self._step)
        else:
            self.start()

    def _is_due(self, node: Node, now_ms: int) -> bool:
        if node.child_count():
            return False
        if self._is_at_ttls:
            return now_ms - node.mtime > node.owner - TTL_BASE
        # A container that never had a child may wait for its first one.
        return node.created != 0 or 0 < self._unused_ms < now_ms - node.mtime
