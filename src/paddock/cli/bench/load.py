"""A load: a constant number of requests in flight, each followed by the next; or watch fan-out.

The latency of a request is what a program sees: from the call until it continues. In fan-out an
operation is one notification, and its latency counts from the write.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter as clock
from typing import Any, Final, TypeAlias

from paddock.cli.bench.site import Site
from paddock.cli.bench.tally import Tally
from paddock.cli.output import line_about
from paddock.client.client import Client
from paddock.client.states import Event
from paddock.errors import RequestError
from paddock.recipes.locks.lock import Lock

Ask: TypeAlias = Callable[[], Awaitable[object]]

_WRITE_EVERY: Final = 10


def asking(operation: str, client: Client, site: Site, data: bytes, number: int) -> Ask:
    """Return the call of one client; clients of a cell have different numbers."""
    names = (f"{number}-{count}" for count in itertools.count())
    match operation:
        case "get":
            return partial(client.get, site.node)
        case "exists":
            return partial(client.exists, site.node)
        case "children":
            return partial(client.children, site.parent)
        case "set":
            return partial(client.set, site.node, data)
        case "create":
            return lambda: client.create(f"{site.created}/{next(names)}", data)
        case "ephemeral":
            return lambda: _come_and_go(client, f"{site.created}/{next(names)}", data)
        case "mix":
            turns = itertools.cycle([False] * (_WRITE_EVERY - 1) + [True])
            return lambda: client.set(site.node, data) if next(turns) else client.get(site.node)
        case "lock":
            return partial(_hold, Lock(client, site.lock))
    raise AssertionError(f"no such operation: {operation}")


async def _come_and_go(client: Client, path: str, data: bytes) -> None:
    await client.create(path, data, ephemeral=True)
    await client.delete(path)


async def _hold(lock: Lock) -> None:
    async with lock:
        pass


async def run_timed(
    tally: Tally, works: Iterable[Coroutine[Any, Any, None]], warm_up_s: float, seconds: float
) -> None:
    """Run work that ends when the tally is over: a warm-up, then the time that counts."""
    async with asyncio.TaskGroup() as tasks:
        workers = [tasks.create_task(work) for work in works]
        if warm_up_s:
            await asyncio.wait(workers, timeout=warm_up_s)
        tally.begin()
        # They end earlier if a limit is reached.
        await asyncio.wait(workers, timeout=seconds)
        tally.end()


class Load:
    """Asks until it is over, or until so many operations are done."""

    def __init__(self, tally: Tally, limit: int | None = None) -> None:
        self._tally = tally
        self._limit = limit
        self._begun = 0

    async def run(self, asks: Sequence[Ask], window: int, warm_up_s: float, seconds: float) -> None:
        """Run each call, `window` at once, and count for so many seconds."""
        works = (self._work(ask) for ask in asks for _ in range(window))
        await run_timed(self._tally, works, warm_up_s, seconds)

    async def _work(self, ask: Ask) -> None:
        tally = self._tally
        while not tally.is_over and self._begun != self._limit:
            self._begun += 1
            asked_at = clock()
            try:
                await ask()
            except RequestError as error:
                tally.refuse(line_about(error))
            else:
                tally.note(clock() - asked_at)


@dataclass(slots=True)
class FanOut:
    """Writes to a node again and again, each time when all watch it."""

    _tally: Tally
    _writer: Client
    _watchers: Sequence[Client]
    _path: str
    _data: bytes
    _written_at: float = 0.0
    _waiting: int = 0
    _all_told: asyncio.Event = field(default_factory=asyncio.Event)

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
