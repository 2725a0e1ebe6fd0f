"""Where a server on a shared log finds its state: its cache, the snapshot in etcd, or the log."""

import asyncio
from pathlib import Path

import pytest

import paddock
from paddock.log.etcd import trimming
from paddock.log.etcd.service import find_service
from paddock.log.etcd.store import Range
from paddock.log.file.segments import segment_files
from paddock.log.interface import OtherHistoryError, TrimmedError
from paddock.server.config.config import ServerConfig
from paddock.server.durability.startup import Engine
from paddock.server.replication.proposals import AwaitedOutcome
from paddock.state.entry import EPOCH, Entry
from paddock.storage.cluster.history import read_history
from paddock.storage.data_directory import DataDirectoryError
from paddock.testing.embedded import EmbeddedServer
from paddock.testing.simulation.store_model import EtcdModel
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, connect, staged


async def write(stage: Stage, name: str, count: int) -> None:
    async with connect(stage, name) as client:
        if await client.exists("/n") is None:
            await client.create("/n", b"")
        for number in range(count):
            await client.set("/n", b"%d" % number * 100)


def batches(etcd: EtcdModel) -> int:
    """Return how many batches are in etcd."""
    wanted = Range(etcd.keys.batches, etcd.keys.batches_end)
    return len(etcd.space.page(wanted, 0, 0, 1 << 30).items)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a snapshot written to etcd after a hundred batches."""
    monkeypatch.setattr(trimming, "BATCHES_MAX", 100)


@pytest.mark.usefixtures("often")
@in_virtual_time
async def test_a_new_server_starts_from_the_snapshot_in_etcd(tmp_path: Path) -> None:
    async with staged("a") as stage:
        for _ in range(5):
            await write(stage, "a", 120)
            await asyncio.sleep(30)
        # Only what lies behind the snapshot before the last one.
        assert 0 < batches(stage.etcd) < 400
        await stage.start("b")
        await stage.settle()
        async with connect(stage, "b") as client:
            assert (await client.get("/n")).stat.version == 600


@pytest.mark.usefixtures("often")
@in_virtual_time
async def test_a_server_that_was_away_for_long_is_told_to_start_again() -> None:
    async with staged("a", "b") as stage:
        await write(stage, "a", 10)
        stage.etcd.link("b").cut()
        for _ in range(5):
            await write(stage, "a", 120)
            await asyncio.sleep(30)
        stage.etcd.link("b").heal()
        await asyncio.sleep(2 * T)
        assert isinstance(stage.lost["b"], TrimmedError)
        assert not stage.is_serving("b")


@in_virtual_time
async def test_a_server_that_was_killed_takes_its_place_again_at_once(tmp_path: Path) -> None:
    async with staged("a") as stage:
        await stage.start("b", tmp_path / "b")
        assert stage.members("b") == [1, 2]
        await stage.kill("b")
        await stage.start("b", tmp_path / "b")
        assert stage.members("b") == [1, 3]


@in_virtual_time
async def test_a_cache_is_used_and_what_came_since_is_read_from_the_log(tmp_path: Path) -> None:
    async with staged("a") as stage:
        server = await stage.start("b", tmp_path / "b")
        await write(stage, "b", 50)
        await server.stop()
        del stage.servers["b"]
        await write(stage, "a", 50)
        again = await stage.start("b", tmp_path / "b")
        assert again.status()["index"] > 100
        cached = stage.core(again).replica.replay.index
        assert 50 < cached < 100
        await stage.settle()


@pytest.mark.parametrize("has_service", [False, True])
@in_virtual_time
async def test_the_cache_of_another_service_is_refused(tmp_path: Path, has_service: bool) -> None:
    async with staged() as stage:
        server = await stage.start("a", tmp_path / "a")
        await write(stage, "a", 5)
        await server.stop()
        stage.servers.clear()
    async with staged(*("b",) if has_service else (), seed=2) as other:
        with pytest.raises(OtherHistoryError, match=r"etcd was wiped.*delete it"):
            await other.start("a", tmp_path / "a")
        if not has_service:
            assert await find_service(other.etcd.store("c"), other.etcd.keys) is None


def test_a_folder_with_the_state_of_one_server_is_refused(tmp_path: Path) -> None:
    async def fill() -> None:
        async with EmbeddedServer(tmp_path / "data") as server:
            async with paddock.connect(server.hosts) as client:
                await client.create("/n")

    asyncio.run(fill())
    config = Stage(seed=1).config(tmp_path / "data")
    with pytest.raises(DataDirectoryError, match="paddock cluster import"):
        Engine(config)
    # It was let go.
    Engine(ServerConfig(data_directory=tmp_path / "data")).close()


def test_a_cache_is_refused_by_a_server_of_its_own(tmp_path: Path) -> None:
    Engine(Stage(seed=1).config(tmp_path / "data")).close()
    with pytest.raises(DataDirectoryError, match="--log"):
        Engine(ServerConfig(data_directory=tmp_path / "data"))


async def restored(stage: Stage, folder: Path) -> None:
    """Let etcd be restored to before what the cache of a server that stopped has."""
    server = await stage.start("a", folder)
    await write(stage, "a", 5)
    backup = stage.etcd.backup()
    await write(stage, "a", 5)
    await server.stop()
    stage.servers.clear()
    stage.etcd.restore(backup)


@in_virtual_time
async def test_a_server_does_not_start_beside_a_cache_that_is_ahead_of_etcd(tmp_path: Path) -> None:
    async with staged() as stage:
        await restored(stage, tmp_path / "a")
        with pytest.raises(OtherHistoryError, match="paddock cluster epoch"):
            await stage.start("a", tmp_path / "a")


async def begin_epoch(stage: Stage) -> None:
    """Do as `paddock cluster epoch` does, by the only member."""
    other = await stage.start("b")
    await asyncio.sleep(2 * T)
    epoch = AwaitedOutcome()
    stage.core(other).proposer.submit(Entry(EPOCH, b""), epoch)
    outcome = await epoch.wait()
    assert outcome is not None
    assert outcome.error == 0


@in_virtual_time
async def test_a_cache_of_an_earlier_epoch_is_dropped(tmp_path: Path) -> None:
    async with staged() as stage:
        await restored(stage, tmp_path / "a")
        await begin_epoch(stage)
        await stage.start("a", tmp_path / "a")
        async with connect(stage, "a") as client:
            assert (await client.get("/n")).stat.version == 5


@pytest.mark.usefixtures("often")
@in_virtual_time
async def test_snapshots_of_an_earlier_epoch_do_not_displace_new_ones(tmp_path: Path) -> None:
    """Two of them, at higher indices than the log has reached since."""
    async with staged() as stage:
        server = await stage.start("a", tmp_path / "a")
        await write(stage, "a", 5)
        backup = stage.etcd.backup()
        await write(stage, "a", 300)
        await server.take_snapshot()
        await write(stage, "a", 5)
        await server.stop()
        stage.servers.clear()
        stage.etcd.restore(backup)
        await begin_epoch(stage)
        await stage.servers.pop("b").stop()
        again = await stage.start("a", tmp_path / "a")
        await write(stage, "a", 120)
        await asyncio.sleep(30)
        shared = stage.core(again).cluster
        assert shared is not None
        assert shared.log().snapshot_index > 100
        cache = tmp_path / "a" / "cluster"
        assert len(list(cache.glob("*.snapshot.aside"))) == 3
        # So are the records of that log.
        assert len(list(read_history(cache / "history.aside"))) > 300
        (begins, _), *_ = segment_files(cache / "history")
        assert begins < 100
