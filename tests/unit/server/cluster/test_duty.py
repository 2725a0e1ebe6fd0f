"""Snapshots in etcd while there is little room for them."""

import asyncio
import logging

import pytest

from paddock.server.cluster.etcd_watch import PAUSE
from paddock.testing.simulation.store_faults import StoreFaults
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
        duty = stage.cluster(stage.servers["a"])._duty
        assert duty is not None
        duty.wants_snapshot = True
        await asyncio.sleep(60)
        assert snapshot_index(stage) == 0
        assert not stage.etcd.space.is_full
        assert stage.is_serving("a")
    told = [one.getMessage() for one in caplog.records]
    assert "a snapshot needs about" in told[0]


@in_virtual_time
async def test_etcd_stays_small_however_fast_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gentle upload would be overtaken by the log: 10 MB/s, and a round trip of 40 ms."""
    monkeypatch.setattr("paddock.log.etcd.trimming.LOG_BYTES_MIN", MIB)
    faults = StoreFaults(latency_s=(0.02, 0.02), commit_s=(0.001, 0.001))
    async with staged("a", faults=faults) as stage, connect(stage, "a") as client:
        for number in range(40):
            await client.create(f"/n{number}", bytes(100_000))
        most = written = 0
        while written < 150 * MIB:
            await asyncio.gather(*[client.set(f"/n{n}", bytes(100_000)) for n in range(20)])
            written += 20 * 100_000
            most = max(most, stage.etcd.space.used_bytes)
        assert most < 100 * MIB
