"""A worker: a process that takes a part in an act, and reports what happens to it.

    python -m paddock.cli.demo.worker election candidate alice 127.0.0.1:2181 1.5 0.8

The part is a short function in the file of its act that uses nothing but the public API. Reports go
to stdout, where the notebook is. The process ends when the demo closes its stdin.
"""

import asyncio
import math
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

import paddock
from paddock.cli.demo.notebook import FAILS, write
from paddock.cli.demo.processes import hold
from paddock.errors import PaddockError


@dataclass(frozen=True, slots=True)
class Worker:
    """Who takes a part: its name, its client, and how long its work takes."""

    name: str
    client: paddock.Client
    work_seconds: float

    def tell(self, what: str, **facts: object) -> None:
        """Report something, at once."""
        write(sys.stdout.fileno(), self.name, what, facts)

    async def work(self) -> None:
        """Do what we are here for; some are never done with it."""
        if math.isinf(self.work_seconds):
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(self.work_seconds)


# What one worker process does: a public function in the file of its act, named like it.
Part: TypeAlias = Callable[[Worker], Awaitable[None]]


async def _main(act: str, part: str, name: str, hosts: str, session_timeout: str, work: str) -> int:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"

    def end() -> None:
        # Said before it is done: others go on when we have left our scopes, and not before.
        write(sys.stdout.fileno(), name, "ends", {})
        task.cancel()

    hold(lambda: loop.call_soon_threadsafe(end))
    function = getattr(import_module(f"paddock.cli.demo.acts.{act}"), part)
    try:
        async with paddock.connect(hosts, session_timeout=float(session_timeout)) as client:
            worker = Worker(name, client, float(work))
            worker.tell("connects", pid=os.getpid(), session=f"0x{client.session_id:x}")
            await function(worker)
    except asyncio.CancelledError:
        # The scopes of the part were left in good order: whatever it held, it has given up.
        return 0
    except PaddockError as error:
        write(sys.stdout.fileno(), name, FAILS, {"because": str(error)[:200]})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(*sys.argv[1:])))
