"""The clients of `paddock demo cluster`, which note what they see while processes are killed.

One holds a lock and counts, one write after the other. The other one watches the count through
another server.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Final

import paddock
from paddock.cli.demo.processes import beside
from paddock.client.states import Event, SessionState
from paddock.errors import ConnectionLostError
from paddock.recipes import Grant, Lock

COUNT: Final = "/count"
# The session timeout, in seconds: longer than an election of etcd, and than a server's lease.
SESSION_SECONDS: Final = 8.0
# Between two writes, so that the servers have a processor, too.
_PAUSE: Final = 0.02
_LOCK: Final = "/lock"


class Counter:
    """Counts in a node while it holds a lock; each write raises the version by one as well."""

    def __init__(self, client: paddock.Client, grant: Grant) -> None:
        self.client = client
        self.grant = grant
        self.count = 0
        # When each count was known to be there, and when the connection went and came back.
        self.times: list[float] = []
        self.states: list[tuple[float, SessionState]] = []
        self._counted = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        client.add_listener(self._note_state)

    async def run(self) -> None:
        """Count, for as long as the task lives.

        If a reply is lost, the node says whether the write was done.
        """
        while True:
            try:
                data, stat = await self.client.get(COUNT)
                if int(data) > self.count:
                    self._note(int(data))
                await self.client.set(COUNT, b"%d" % (self.count + 1), version=stat.version)
                self._note(self.count + 1)
            except ConnectionLostError:
                # The client connects again by itself.
                pass
            await asyncio.sleep(_PAUSE)

    async def goes_on(self, count: int) -> None:
        """Wait until it has counted so far."""
        while self.count < count:
            self._counted.clear()
            await self._counted.wait()

    def longest_pause(self, since: float) -> float:
        """Return the longest time between two counts, from the last one before `since` on."""
        before = max((at for at in self.times if at <= since), default=since)
        times = [before, *(at for at in self.times if at > since)]
        return max((b - a for a, b in itertools.pairwise(times)), default=0.0)

    def seconds_without_server(self, since: float) -> float | None:
        """Return how long it had no connection; None if it always had one."""
        lost = [at for at, state in self.states if at >= since and not state.is_connected]
        found = [at for at, state in self.states if at >= since and state.is_connected]
        return found[-1] - lost[0] if lost and found else None

    def _note(self, count: int) -> None:
        self.count = count
        self.times.append(self._loop.time())
        self._counted.set()

    def _note_state(self, state: SessionState) -> None:
        self.states.append((self._loop.time(), state))


class Watcher:
    """Watches the count."""

    def __init__(self, client: paddock.Client) -> None:
        self.client = client
        self.seen: list[int] = []
        # How often it had no connection.
        self.disconnections = 0
        self._has_news = asyncio.Event()
        self._saw = asyncio.Event()
        client.add_listener(self._note_state)

    async def run(self) -> None:
        """Read and watch, for as long as the task lives."""
        while True:
            self._has_news.clear()
            try:
                data, _ = await self.client.get(COUNT, watch=self._on_event)
            except ConnectionLostError:
                # The client connects again by itself.
                continue
            if not self.seen or int(data) != self.seen[-1]:
                self.seen.append(int(data))
                self._saw.set()
            await self._has_news.wait()

    async def sees(self, count: int) -> None:
        """Wait until it has seen a count."""
        while not self.seen or self.seen[-1] < count:
            self._saw.clear()
            await self._saw.wait()

    def _on_event(self, event: Event) -> None:
        # Also that the connection is lost: then the watch is set again by the client.
        self._has_news.set()

    def _note_state(self, state: SessionState) -> None:
        self.disconnections += not state.is_connected


@contextlib.asynccontextmanager
async def counting(hosts: str) -> AsyncIterator[Counter]:
    """Take the lock, and count in the scope."""
    async with (
        paddock.connect(hosts, session_timeout=SESSION_SECONDS) as client,
        Lock(client, _LOCK, data=b"the one who counts") as grant,
    ):
        await client.create(COUNT, b"0")
        counter = Counter(client, grant)
        async with beside(counter.run()):
            yield counter


@contextlib.asynccontextmanager
async def watching(hosts: str) -> AsyncIterator[Watcher]:
    """Watch in the scope."""
    async with paddock.connect(hosts, session_timeout=SESSION_SECONDS) as client:
        watcher = Watcher(client)
        async with beside(watcher.run()):
            yield watcher
