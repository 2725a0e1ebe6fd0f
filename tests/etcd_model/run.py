"""A run of many scripts: in chunks, each on a cluster of its own, two at a time."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Final

from tests.etcd_model.judge import Judge
from tests.etcd_model.play import cluster_for, play_on_etcd, play_on_model
from tests.etcd_model.scenes import PLAIN, SCENES
from tests.etcd_model.share import Share
from tests.support.etcd import EtcdCluster

# What is in memory is faster to write, and no power fails here.
_MEMORY: Final = Path("/dev/shm")
# Scripts for one start of a cluster.
_PLAIN_CHUNK: Final = 250
_CHUNK: Final = 20

Chunk = tuple[str, int, int]


def chunks(scripts: int, faults: int, first: int = 0) -> list[Chunk]:
    """Divide scripts, so many of them with faults, among the scenes."""
    troubled = [scene for scene in SCENES if scene != PLAIN]
    counts = {PLAIN: scripts - faults}
    counts |= {scene: (faults + at) // len(troubled) for at, scene in enumerate(troubled)}
    found: list[Chunk] = []
    for scene, count in counts.items():
        size = _PLAIN_CHUNK if scene == PLAIN else _CHUNK
        found += [
            (scene, first + start, min(size, count - start)) for start in range(0, count, size)
        ]
    return found


def run_chunk(chunk: Chunk) -> Share:
    """Play some scripts on an etcd of their own, and judge them."""
    scene, first, count = chunk
    folder = Path(tempfile.mkdtemp(prefix="paddock-", dir=_MEMORY if _MEMORY.is_dir() else None))
    try:
        with cluster_for(scene, folder / "etcd") as cluster:
            return asyncio.run(_judged(cluster, scene, range(first, first + count)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _judged(cluster: EtcdCluster, scene: str, seeds: range) -> Share:
    share = Share()
    async for history in play_on_etcd(cluster, scene, seeds):
        share.add(Judge(history).run())
    return share


def run_on_model(chunk: Chunk) -> Share:
    """Play some scripts on the simulation's model, and judge them."""
    scene, first, count = chunk
    share = Share()
    for seed in range(first, first + count):
        share.add(Judge(play_on_model(scene, seed)).run())
    return share


def run_all(wanted: list[Chunk], processes: int) -> Iterator[tuple[Chunk, Share]]:
    """Run chunks, and yield each as it ends."""
    with ProcessPoolExecutor(processes) as pool:
        running = {pool.submit(run_chunk, chunk): chunk for chunk in wanted}
        for done in as_completed(running):
            yield running[done], done.result()
