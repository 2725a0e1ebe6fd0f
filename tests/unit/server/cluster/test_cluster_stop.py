"""A server that stops while its log does not work."""

import asyncio
from pathlib import Path

from paddock.log.interface import Record
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, staged


@in_virtual_time
async def test_a_stop_ends_though_a_batch_is_held_whose_predecessor_never_comes(
    tmp_path: Path,
) -> None:
    stage = Stage()
    server = await stage.start("a", tmp_path)
    await stage.start("b")
    await stage.settle()
    core = stage.core(server)
    roster = core.machine.roster
    assert roster is not None
    other = list(roster.members.values())[1]
    stage.etcd.link("a").cut()
    records = stage.cluster(server)._records
    assert records is not None
    place = records.position()
    records.committed(Record(place.index + 1, b"", other.boot, other.next + 1, place.revision + 1))
    assert roster.held_count == 1
    async with asyncio.timeout(60):
        await stage.servers.pop("a").stop()
    await stage.stop()


@in_virtual_time
async def test_a_leave_that_comes_out_of_the_log_too_late_does_no_harm() -> None:
    async with staged("a", "b") as stage:
        stage.etcd.elect(T)
        assert not await stage.cluster(stage.servers["a"]).membership.leave()
        await asyncio.sleep(2 * T)
        assert stage.lost == {}
        assert stage.members("a") == stage.members("b")
        assert 1 not in stage.members("a")


@in_virtual_time
async def test_a_boot_that_has_not_surely_left_is_replaced_by_its_successor(tmp_path: Path) -> None:
    stage = Stage()
    await stage.start("a", tmp_path)
    await stage.start("b")
    # It is withdrawn before etcd hears of it.
    stage.etcd.link("a").cut()
    await stage.servers.pop("a").stop()
    stage.etcd.link("a").heal()
    assert stage.members("b") == [1, 2]
    await stage.start("a", tmp_path)
    assert stage.members("a") == [2, 3]
    await stage.stop()


@in_virtual_time
async def test_a_boot_that_has_left_is_forgotten(tmp_path: Path) -> None:
    stage = Stage()
    await stage.start("a", tmp_path)
    assert list(tmp_path.rglob("boot"))
    await stage.servers.pop("a").stop()
    assert not list(tmp_path.rglob("boot"))
