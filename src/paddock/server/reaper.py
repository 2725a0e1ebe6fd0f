"""When a container or a TTL node is over.

The state cannot know, since it knows no time; so this looks through them now and then and proposes
the end of each that is due. The proposal names the node by czxid and mzxid: if it was written to
or replaced in the meantime, applying it does nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from paddock.server.pipeline import Origin, Pipeline
from paddock.state.entry import REAP, Entry
from paddock.state.machine import Outcome, reap_body
from paddock.state.tree import TTL_BASE, Node

# Clients' writes wait behind what is reaped at once; the number is upstream's, for a minute.
_REAPED_AT_ONCE_MAX: Final = 10_000


class _Nobody(Origin):
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
        self, pipeline: Pipeline, interval: float, wall_clock_ms: Callable[[], int]
    ) -> None:
        self._pipeline = pipeline
        self._interval = interval
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
        room = max(_REAPED_AT_ONCE_MAX - self._pipeline.outstanding(), 0)
        for path, node in list(islice(self._due(), room)):
            entry = Entry(REAP, reap_body(path, node.czxid, node.mzxid))
            self._pipeline.submit(entry, self._nobody)
        self.start()

    def _due(self) -> Iterator[tuple[bytes, Node]]:
        tree = self._pipeline.machine.tree
        for path in tree.containers:
            node = tree.nodes[path]
            # A container that never had a child stays: its first one may be on its way.
            if not node.children and node.created != 0:
                yield path, node
        now_ms = self._wall_clock_ms()
        for path in tree.ttls:
            node = tree.nodes[path]
            if not node.children and now_ms - node.mtime > node.owner - TTL_BASE:
                yield path, node
