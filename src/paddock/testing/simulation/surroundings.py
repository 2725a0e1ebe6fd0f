"""What a world has around it while it runs: a loop, a folder, and limits that are soon reached."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from unittest.mock import patch

from paddock.log.file import file_log
from paddock.server.cluster import duty, former_boot
from paddock.server.durability import startup
from paddock.testing.simulation.disk_log import open_log
from paddock.testing.simulation.threads import SimulatedQueue, SimulatedThread
from paddock.testing.simulation.world_loop import WorldLoop, new_world

# After how many batches a snapshot is written to etcd.
_BATCHES_MAX: Final = 40


@contextlib.contextmanager
def surroundings() -> Iterator[tuple[WorldLoop, Path]]:
    """Yield the loop of a new world, and a folder for its servers. Paddock logs nothing there."""
    said = logging.getLogger("paddock")
    level = said.level
    said.setLevel(logging.CRITICAL + 1)
    loop = new_world()
    # What is collected when depends on what else the process has done.
    gc.collect()
    gc.disable()
    try:
        asyncio.set_event_loop(loop)
        with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder, _small_limits():
            yield loop, Path(folder)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        gc.enable()
        said.setLevel(level)


def _memory_folder() -> str | None:
    """Return a folder in memory, where there is one: caches of servers are small, and many."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


@contextlib.contextmanager
def _small_limits() -> Iterator[None]:
    """Have snapshots for etcd taken after a few batches, and all machines have an identity.

    A log on a disk has small files, and its thread is one of a simulated process.
    """
    with (
        patch.object(startup, "FileLog", open_log),
        patch.object(file_log, "Thread", SimulatedThread),
        patch.object(file_log, "SimpleQueue", SimulatedQueue),
        patch.object(duty, "due", lambda size, batches, last: batches >= _BATCHES_MAX),
        patch.object(former_boot, "_machine_id", lambda: b"simulated"),
    ):
        yield
