"""What one server does for all: snapshots in etcd."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import ManifestReplacedError, read_manifest
from paddock.server.cluster import duty
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import connect, staged


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
