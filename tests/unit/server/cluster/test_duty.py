"""What one server does for all: snapshots in etcd, also while there is little room for them."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import ManifestReplacedError, read_manifest
from paddock.server.cluster import duty
from paddock.server.cluster.etcd_watch import PAUSE
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, connect, staged

MIB = 1 << 20


def snapshot_index(stage: Stage) -> int:
    view = stage.core(stage.servers["a"]).cluster
    assert view is not None
    return view.log().snapshot_index


@in_virtual_time
async def test_while_etcd_has_little_room_snapshots_free_what_was_deleted() -> None:
    async with staged("a") as stage, connect(stage, "a") as client:
        stage.etcd.space.quota_bytes = 9 * MIB
        for number in range(80):
            await client.create(f"/n{number}", bytes(100_000))
        for number in range(80):
            await client.delete(f"/n{number}")
        await asyncio.sleep(60)
        assert snapshot_index(stage) > 160
        assert stage.etcd.space.used_bytes < MIB
        await client.create("/again", bytes(100_000))


@in_virtual_time
async def test_a_snapshot_that_would_fill_etcd_is_not_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, "paddock.server.cluster.duty")
    async with staged("a") as stage, connect(stage, "a") as client:
        stage.etcd.space.quota_bytes = 10 * MIB
        for number in range(70):
            await client.create(f"/n{number}", bytes(100_000))
        await asyncio.sleep(PAUSE + 0.5)
        ours = stage.cluster(stage.servers["a"])._duty
        assert ours is not None
        ours.wants_snapshot = True
        await asyncio.sleep(60)
        assert snapshot_index(stage) == 0
        assert not stage.etcd.space.is_full
        assert stage.is_serving("a")
    told = [one.getMessage() for one in caplog.records]
    assert "a snapshot needs about" in told[0]


@in_virtual_time
async def test_the_snapshot_in_etcd_is_read_again_after_another_server_has_replaced_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with staged("a") as stage:
        ours = stage.cluster(stage.servers["a"])._duty
        assert ours is not None
        raised = asyncio.Event()

        async def trim(*arguments: Any, **options: Any) -> int:
            raised.set()
            raise ManifestReplacedError("by another server")

        monkeypatch.setattr(duty, "trim", trim)
        ours.wants_snapshot = True
        await raised.wait()
        await asyncio.sleep(0)
        assert ours.manifest is None
        monkeypatch.undo()
        await asyncio.sleep(10)
        stored = await read_manifest(stage.etcd.store("other"), Keys("shop"))
        assert stored is not None
        assert ours.manifest == stored


@in_virtual_time
async def test_servers_of_one_log_take_their_own_snapshots_at_different_places(
    tmp_path: Path,
) -> None:
    async with staged() as stage:
        for name in ("a", "b", "c"):
            await stage.start(name, tmp_path / name, snapshot_every=1_000)
        async with connect(stage) as client:
            for _ in range(1_000):
                await client.set("/", b"")
        await stage.settle()
        newest = [
            max((tmp_path / name / "cluster").glob("*.snapshot")).name for name in stage.servers
        ]
        assert len(set(newest)) == 3
