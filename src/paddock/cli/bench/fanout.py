"""Watch fan-out: watchers, each with its own session, and one writer.

An operation is one notification; its latency counts from the write. Watches are one-time watches,
set again before the next write.
"""

import asyncio
from collections.abc import Sequence
from time import perf_counter as clock

from paddock.cli.bench.load import run_timed
from paddock.cli.bench.tally import Tally
from paddock.cli.failure import line_about
from paddock.client.client import Client
from paddock.client.states import Event
from paddock.errors import RequestError


class FanOut:
    """Writes to a node again and again, each time when all watch it."""

    def __init__(
        self, tally: Tally, writer: Client, watchers: Sequence[Client], path: str, data: bytes
    ) -> None:
        self._tally = tally
        self._writer = writer
        self._watchers = watchers
        self._path = path
        self._data = data
        self._written_at = 0.0
        self._waiting = 0
        self._all_told = asyncio.Event()

    async def run(self, warm_up_s: float, seconds: float) -> None:
        """Do so for a time, which is that of the warm-up and that in which they are counted."""
        await run_timed(self._tally, [self._go_round()], warm_up_s, seconds)

    async def _go_round(self) -> None:
        while not self._tally.is_over:
            await asyncio.gather(
                *(watcher.exists(self._path, watch=self._on_event) for watcher in self._watchers)
            )
            self._waiting = len(self._watchers)
            self._all_told.clear()
            self._written_at = clock()
            try:
                await self._writer.set(self._path, self._data)
            except RequestError as error:
                # No event follows, and the watches stay.
                self._tally.refuse(line_about(error))
            else:
                await self._all_told.wait()

    def _on_event(self, event: Event) -> None:
        # Session events are handled by the owner of the connections.
        if event.path is None:
            return
        self._tally.note(clock() - self._written_at)
        self._waiting -= 1
        if not self._waiting:
            self._all_told.set()
