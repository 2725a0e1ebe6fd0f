"""Tasks with an owner, which cancels and awaits the rest of them at its own end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Tasks:
    """Running tasks; each is forgotten when it is done."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __contains__(self, task: object) -> bool:
        return task in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start and own a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._own(task)
        return task

    def hand_over(self, task: asyncio.Task[Any], heir: Tasks) -> None:
        """Move a task to another owner, which ends later."""
        self._tasks.discard(task)
        heir._own(task)

    async def end(self, grace: float = 0.0) -> None:
        """Wait `grace` seconds for the tasks, then cancel the rest and await it."""
        if self._tasks and grace:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _own(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
