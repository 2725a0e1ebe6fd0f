"""A load: a constant number of requests in flight, each followed by the next.

The latency of a request is what a program sees: from the call until it continues.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from time import perf_counter as clock
from typing import Any

from paddock.cli.bench.operations import Ask
from paddock.cli.bench.tally import Tally
from paddock.cli.failure import line_about
from paddock.errors import RequestError


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
