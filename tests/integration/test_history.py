"""History: what servers keep beyond what a start needs, and for how long."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import paddock
from paddock.server.config.config import ServerConfig
from paddock.storage.load import load
from paddock.storage.snapshots import snapshot_files
from paddock.testing import EmbeddedServer

RUNS = 6


async def runs(data: Path, config: ServerConfig, numbers: range) -> None:
    """Run a server so many times; each writes its number, and leaves a snapshot."""
    for number in numbers:
        async with (
            EmbeddedServer(data, config) as server,
            paddock.connect(server.hosts) as client,
        ):
            if number == 0:
                await client.create("/number", b"0")
            else:
                await client.set("/number", str(number).encode())


def snapshots(data: Path) -> list[tuple[int, Path]]:
    return snapshot_files(data / "snapshots")


def test_a_server_keeps_a_day_and_every_state_of_it_can_be_rebuilt(tmp_path: Path) -> None:
    asyncio.run(runs(tmp_path, ServerConfig(port=0), range(RUNS)))
    assert len(snapshots(tmp_path)) == RUNS
    for number, (index, path) in enumerate(snapshots(tmp_path)):
        assert load(tmp_path, index).machine.tree.nodes[b"/number"].data == str(number).encode()
        # From the snapshot before it as well, or from the beginning.
        path.rename(path.with_suffix(".hidden"))
        assert load(tmp_path, index).machine.tree.nodes[b"/number"].data == str(number).encode()
        path.with_suffix(".hidden").rename(path)


def test_what_is_older_than_history_goes_with_the_next_snapshot(tmp_path: Path) -> None:
    config = ServerConfig(port=0, history_seconds=3600)
    asyncio.run(runs(tmp_path, config, range(RUNS)))
    before = snapshots(tmp_path)
    for _, path in before[:2]:
        os.utime(path, (0, 0))
    asyncio.run(runs(tmp_path, config, range(RUNS, RUNS + 1)))
    # The second one was the newest an hour ago.
    assert [index for index, _ in snapshots(tmp_path)][: RUNS - 1] == [
        index for index, _ in before[1:]
    ]


def test_history_is_no_larger_than_it_may_be(tmp_path: Path) -> None:
    asyncio.run(runs(tmp_path, ServerConfig(port=0), range(RUNS)))
    size = snapshots(tmp_path)[0][1].stat().st_size
    # Room for one snapshot beside the three of a start; the log is one file, which a start needs.
    asyncio.run(
        runs(tmp_path, ServerConfig(port=0, history_bytes=size + size // 2), range(RUNS, RUNS + 1))
    )
    assert len(snapshots(tmp_path)) == 4


def test_without_history_a_purge_leaves_what_a_start_needs(tmp_path: Path) -> None:
    asyncio.run(runs(tmp_path, ServerConfig(port=0, history_seconds=0), range(RUNS)))
    assert len(snapshots(tmp_path)) == 3


def test_where_nothing_is_purged_everything_stays(tmp_path: Path) -> None:
    config = ServerConfig(port=0, history_seconds=1, history_bytes=1, purge_interval_hours=0)
    asyncio.run(runs(tmp_path, config, range(RUNS)))
    assert len(snapshots(tmp_path)) == RUNS
