"""What a server knows of its service."""

import asyncio

from paddock.state.entry import RULES
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import T, connect, staged, view_of


@in_virtual_time
async def test_members_are_listed_with_who_is_on_duty_and_who_this_is() -> None:
    async with staged() as stage:
        await stage.start("a", advertise="a:1")
        await stage.start("b", advertise="b:1")
        await stage.settle()
        one, two = view_of(stage, "b").members()
        assert (one.number, one.address, one.is_on_duty, one.is_ours) == (1, "a:1", True, False)
        assert (two.number, two.address, two.is_on_duty, two.is_ours) == (2, "b:1", False, True)
        assert (view_of(stage, "a").is_on_duty(), view_of(stage, "b").is_on_duty()) == (True, False)
        assert (view_of(stage, "b").number(), view_of(stage, "b").rules()) == (2, RULES)


@in_virtual_time
async def test_a_member_that_is_cut_off_is_silent_and_not_synced() -> None:
    async with staged("a", "b") as stage:
        await asyncio.sleep(T)
        assert [one.is_synced for one in view_of(stage, "a").members()] == [True, True]
        stage.etcd.link("b").cut()
        await asyncio.sleep(0.75 * T)
        own, other = view_of(stage, "a").members()
        assert (own.is_synced, other.is_synced) == (True, False)
        assert view_of(stage, "a").lease_seconds_left() > 0
        await asyncio.sleep(T / 4)
        assert view_of(stage, "b").lease_seconds_left() == 0
        stage.etcd.link("b").heal()
        await asyncio.sleep(2 * T)


@in_virtual_time
async def test_duty_is_counted_from_when_it_began_here() -> None:
    async with staged("a", "b") as stage:
        await asyncio.sleep(5)
        assert 4.9 <= view_of(stage, "a").duty_seconds() < 6
        assert view_of(stage, "b").duty_seconds() == 0
        await stage.servers.pop("a").stop()
        await asyncio.sleep(3)
        # It began when the other one left, a moment before it had stopped.
        assert 2.9 <= view_of(stage, "b").duty_seconds() < 4


@in_virtual_time
async def test_the_log_is_measured() -> None:
    async with staged("a") as stage, connect(stage, "a") as client:
        await client.create("/n", bytes(1000))
        await asyncio.sleep(4)
        log = view_of(stage, "a").log()
        assert log.applied == log.last_index == stage.servers["a"].status()["index"]
        assert (log.lag, log.records, log.errors) == (0, log.last_index, 0)
        assert log.bytes > 1000
        assert 0 < log.commit_seconds < 0.1
        assert (log.snapshot_index, log.snapshot_age_seconds) == (0, -1)
        assert log.used_bytes >= 1000
        assert log.quota_bytes == 8 << 30
        assert not log.is_tight
        assert not log.is_full
        stage.etcd.link("a").break_streams()
        await asyncio.sleep(4)
        assert view_of(stage, "a").log().reopenings == 1


@in_virtual_time
async def test_a_snapshot_in_etcd_has_an_age_on_all_servers() -> None:
    async with staged("a", "b") as stage, connect(stage, "a") as client:
        await client.create("/n")
        duty = stage.cluster(stage.servers["a"])._duty
        assert duty is not None
        duty.wants_snapshot = True
        # Etcd is asked for its manifest now and then.
        await asyncio.sleep(60)
        for name in "ab":
            log = view_of(stage, name).log()
            assert log.snapshot_index > 0
            assert log.snapshot_bytes > 0
            assert 40 < log.snapshot_age_seconds <= 60
