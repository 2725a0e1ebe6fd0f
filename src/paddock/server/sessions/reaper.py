"""When a container or a TTL node is over.

The state cannot know, since it knows no time; so this looks through them now and then and proposes
the end of each that is due. The proposal names the node by czxid and mzxid: if it was written to
or replaced in the meantime, applying it does nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from paddock.server.config.config import ServerConfig
from paddock.server.replication.pipeline import Pipeline
from paddock.server.replication.submitter import Submitter
from paddock.state.entry import REAP, Entry
from paddock.state.machine import Outcome, reap_body
from paddock.state.node import TTL_BASE, Node

# Nodes that are looked at before others get their turn: less than a millisecond.
LOOKS_IN_A_STEP: Final = 1000


class _Nobody(Submitter):
    """Waits for no answer: what was not reaped now is looked at again."""

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        pass

    def refuse(self, entry: Entry, code: int) -> None:
        pass

    def flush(self) -> None:
        pass


class Reaper:
    """Looks for containers and TTL nodes that are over, at a fixed interval.

    Each interval is one round, in which every node is looked at once, a few at a time so that
    clients get their turns in between. A round ends early when as many ends have been proposed as
    are allowed; the next one goes on behind them, so no node waits for ever for its turn.
    """

    def __init__(
        self, pipeline: Pipeline, config: ServerConfig, time_ms: Callable[[], int]
    ) -> None:
        self._pipeline = pipeline
        self._interval = config.container_check_interval_ms / 1000
        # Clients' writes wait behind what is reaped at once.
        self._at_once = max(1, int(config.max_containers_per_minute * self._interval / 60))
        # How long a container may stay that never had a child; 0 is for ever.
        self._unused_ms = config.max_unused_container_ms
        # The time that the nodes are stamped with.
        self._time_ms = time_ms
        self._nobody = _Nobody()
        # The next round, or the next step of this one.
        self._timer: asyncio.Handle | None = None
        # Whether TTL nodes are looked at, and not containers, and how many are left of them.
        self._is_at_ttls = False
        self._left = 0
        # How many nodes are still to be looked at in this round, and how many may go in it.
        self._unseen = 0
        self._room = 0

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._begin_round)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin_round(self) -> None:
        tree = self._pipeline.machine.tree
        self._unseen = len(tree.containers) + len(tree.ttls)
        # What was proposed before may still wait, for a log that is broken.
        self._room = max(self._at_once - self._pipeline.outstanding(), 0)
        self._step()

    def _step(self) -> None:
        tree = self._pipeline.machine.tree
        now_ms = self._time_ms()
        budget = min(self._unseen, LOOKS_IN_A_STEP)
        self._unseen -= budget
        while budget > 0 and self._room > 0:
            bag = tree.ttls if self._is_at_ttls else tree.containers
            # Some may have gone since the last step; see PathBag.
            self._left = min(self._left, len(bag))
            if self._left == 0:
                self._turn_over()
                if self._left == 0:
                    # Of one kind there are none, so it is the other one's turn again.
                    self._turn_over()
                    if self._left == 0:
                        self._unseen = 0
                        break
                continue
            budget -= 1
            self._left -= 1
            path = bag[self._left]
            node = tree.nodes[path]
            if self._is_over(node, now_ms):
                self._room -= 1
                entry = Entry(REAP, reap_body(path, node.czxid, node.mzxid))
                self._pipeline.submit(entry, self._nobody)
        if self._unseen > 0 and self._room > 0:
            self._timer = asyncio.get_running_loop().call_soon(self._step)
        else:
            self.start()

    def _turn_over(self) -> None:
        """Go on with the nodes of the other kind, at their end."""
        tree = self._pipeline.machine.tree
        self._is_at_ttls = not self._is_at_ttls
        self._left = len(tree.ttls if self._is_at_ttls else tree.containers)

    def _is_over(self, node: Node, now_ms: int) -> bool:
        if node.child_count():
            return False
        if self._is_at_ttls:
            return now_ms - node.mtime > node.owner - TTL_BASE
        return node.created != 0 or self._is_unused(node, now_ms)

    def _is_unused(self, node: Node, now_ms: int) -> bool:
        """Tell whether a container that never had a child has waited too long for its first."""
        return 0 < self._unused_ms < now_ms - node.mtime
