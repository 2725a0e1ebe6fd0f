"""The history that a server of several keeps in its own data folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from paddock.log.etcd import trimming
from paddock.log.interface import Record
from paddock.state.machine import StateMachine
from paddock.state.snapshot import restore
from paddock.storage.cluster.history import read_history
from paddock.storage.cluster.shared_replay import SharedReplay
from paddock.storage.scan import Gap, Item
from paddock.storage.snapshots import read_snapshot, snapshot_files
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, connect, staged


async def write(stage: Stage, name: str, count: int) -> None:
    async with connect(stage, name) as client:
        if await client.exists("/n") is None:
            await client.create("/n", b"")
        for number in range(count):
            await client.set("/n", b"%d" % number * 100)


def snapshots(data: Path) -> list[tuple[int, Path]]:
    return snapshot_files(data / "cluster")


def history(data: Path) -> list[Item]:
    return list(read_history(data / "cluster" / "history"))


def recorded(data: Path) -> list[Record]:
    return [one for one in history(data) if isinstance(one, Record)]


def rebuilt(data: Path, base: int, index: int) -> StateMachine:
    """Build the state after a record from a snapshot and the records behind it."""
    path = dict(snapshots(data))[base]
    replay = SharedReplay(restore(read_snapshot(path, base)))
    for record in recorded(data):
        if base < record.index <= index:
            replay.apply(record)
    assert replay.roster.index == index
    return replay.machine


@in_virtual_time
async def test_each_state_is_rebuilt_from_any_snapshot_before_it(tmp_path: Path) -> None:
    async with staged("other") as stage:
        for _ in range(4):
            await stage.start("a", tmp_path)
            await write(stage, "a", 20)
            await write(stage, "other", 20)
            await stage.settle()
            index = stage.servers["a"].status()["index"]
            digest = stage.core(stage.servers["a"]).machine.shared_digest()
            await stage.servers.pop("a").stop()
            newest = max(base for base, _ in snapshots(tmp_path) if base <= index)
            assert rebuilt(tmp_path, newest, index).shared_digest() == digest
        assert not [one for one in history(tmp_path) if isinstance(one, Gap)]
        # One at its first start, since the state did not come from the folder, and one at each end.
        bases = [base for base, _ in snapshots(tmp_path)]
        assert len(bases) == 5
        for base in bases:
            for index, path in snapshots(tmp_path):
                if base < index:
                    then = restore(read_snapshot(path, index))
                    assert rebuilt(tmp_path, base, index).shared_digest() == then.shared_digest()


@in_virtual_time
async def test_a_kill_and_a_start_leave_no_gap(tmp_path: Path) -> None:
    async with staged("other") as stage:
        await stage.start("a", tmp_path)
        await write(stage, "a", 20)
        await stage.kill("a")
        await write(stage, "other", 20)
        await stage.start("a", tmp_path)
        await stage.settle()
        last = stage.servers["a"].status()["index"]
        await asyncio.sleep(1)
        records = recorded(tmp_path)
        indices = [one.index for one in records]
        assert indices == list(range(indices[0], indices[-1] + 1))
        assert indices[-1] >= last


@in_virtual_time
async def test_records_that_the_log_does_not_have_any_more_are_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trimming, "BATCHES_MAX", 100)
    async with staged("other") as stage:
        await stage.start("a", tmp_path)
        await write(stage, "a", 10)
        await stage.servers.pop("a").stop()
        for _ in range(5):
            await write(stage, "other", 120)
            await asyncio.sleep(30)
        await stage.start("a", tmp_path)
        await write(stage, "a", 10)
        await stage.settle()
        await asyncio.sleep(1)
        index = stage.servers["a"].status()["index"]
        digest = stage.core(stage.servers["a"]).machine.shared_digest()
        await stage.servers.pop("a").stop()
        [gap] = [one for one in history(tmp_path) if isinstance(one, Gap)]
        assert gap.is_left_out
        assert gap.last is not None
        assert gap.last - gap.first > 100
        # Behind the gap there was a snapshot at once.
        base = min(base for base, _ in snapshots(tmp_path) if base >= gap.last)
        assert base < index
        assert rebuilt(tmp_path, base, index).shared_digest() == digest


@in_virtual_time
async def test_without_history_there_are_two_snapshots_and_nothing_else(tmp_path: Path) -> None:
    async with staged() as stage:
        for _ in range(4):
            await stage.start("a", tmp_path, history_seconds=0)
            await write(stage, "a", 5)
            await stage.servers.pop("a").stop()
    assert len(snapshots(tmp_path)) == 2
    assert not (tmp_path / "cluster" / "history").exists()


@in_virtual_time
async def test_what_is_too_much_goes_with_its_snapshots(tmp_path: Path) -> None:
    async with staged() as stage:
        for _ in range(4):
            await stage.start("a", tmp_path, history_bytes=1000)
            await write(stage, "a", 20)
            await stage.servers.pop("a").stop()
    assert len(snapshots(tmp_path)) == 2
    oldest = snapshots(tmp_path)[0][0]
    segments = sorted((tmp_path / "cluster" / "history").glob("*.log"))
    assert all(int(path.stem) > oldest for path in segments[1:])
    assert len(segments) < 4
