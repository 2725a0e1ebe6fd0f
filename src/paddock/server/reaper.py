"""When a container or a TTL node is over.

The state cannot know, since it knows no time; so this looks through them now and then and proposes
the end of each that is due. The proposal names the node by czxid and mzxid: if it was written to
or replaced in the meantime, applying it does nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice

from paddock.server.config import ServerConfig
from paddock.server.pipeline import Pipeline
from paddock.server.submitter import Submitter
from paddock.state.entry import REAP, Entry
from paddock.state.machine import Outcome, reap_body
from paddock.state.tree import TTL_BASE, Node


class _Nobody(Submitter):
    """Waits for no answer: what was not reaped now is looked at again."""

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        pass

    def refuse(self, entry: Entry, code: int) -> None:
        pass

    def flush(self) -> None:
        pass


class Reaper:
    """Looks for containers and TTL nodes that are over, at a fixed interval."""

    def __init__(
        self, pipeline: Pipeline, config: ServerConfig, wall_clock_ms: Callable[[], int]
    ) -> None:
        self._pipeline = pipeline
        self._interval = config.container_check_interval_ms / 1000
        # Clients' writes wait behind what is reaped at once.
        self._at_once = max(1, int(config.max_containers_per_minute * self._interval / 60))
        # How long a container may stay that never had a child; 0 is for ever.
        self._unused_ms = config.max_unused_container_ms
        self._wall_clock_ms = wall_clock_ms
        self._nobody = _Nobody()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        # What was proposed before may still wait, for a log that is broken.
        room = max(self._at_once - self._pipeline.outstanding(), 0)
        for path, node in list(islice(self._due(), room)):
            entry = Entry(REAP, reap_body(path, node.czxid, node.mzxid))
            self._pipeline.submit(entry, self._nobody)
        self.start()

    def _due(self) -> Iterator[tuple[bytes, Node]]:
        tree = self._pipeline.machine.tree
        now_ms = self._wall_clock_ms()
        for path in tree.containers:
            node = tree.nodes[path]
            if not node.child_count() and (node.created != 0 or self._is_unused(node, now_ms)):
                yield path, node
        for path in tree.ttls:
            node = tree.nodes[path]
            if not node.child_count() and now_ms - node.mtime > node.owner - TTL_BASE:
                yield path, node

    def _is_unused(self, node: Node, now_ms: int) -> bool:
        """Tell whether a container that never had a child has waited too long for its first."""
        return 0 < self._unused_ms < now_ms - node.mtime
