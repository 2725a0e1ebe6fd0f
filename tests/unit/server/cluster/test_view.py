"""What a server knows of its service, and what it has decided for an operator."""

import asyncio

import pytest

from paddock.log.interface import LogError
from paddock.server.cluster import membership
from paddock.server.cluster import view as view_module
from paddock.server.replication.cluster_view import ClusterView
from paddock.state.entry import RULES
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, connect, staged


def view_of(stage: Stage, name: str) -> ClusterView:
    view = stage.core(stage.servers[name]).cluster
    assert view is not None
    return view


@in_virtual_time
async def test_members_are_listed_with_who_is_on_duty_and_who_this_is() -> None:
    async with staged() as stage:
        await stage.start("a", advertise="a:1")
        await stage.start("b", advertise="b:1")
        await stage.settle()
        one, two = view_of(stage, "b").members()
        assert (one.number, one.address, one.is_on_duty, one.is_ours) == (1, "a:1", True, False)
        assert (two.number, two.address, two.is_on_duty, two.is_ours) == (2, "b:1", False, True)
        assert "tickTime=500" in one.settings
        assert (view_of(stage, "a").is_on_duty(), view_of(stage, "b").is_on_duty()) == (True, False)
        assert (view_of(stage, "b").number(), view_of(stage, "b").rules()) == (2, RULES)
        assert view_of(stage, "a").addresses() == ["a:1", "b:1"]


@in_virtual_time
async def test_a_member_that_is_cut_off_is_silent_and_not_synced() -> None:
    async with staged("a", "b") as stage:
        await asyncio.sleep(T)
        assert [one.is_synced for one in view_of(stage, "a").members()] == [True, True]
        stage.etcd.link("b").cut()
        await asyncio.sleep(0.75 * T)
        own, other = view_of(stage, "a").members()
        assert (own.is_synced, other.is_synced) == (True, False)
        assert own.silent_seconds < T / 2 <= other.silent_seconds
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
async def test_rules_are_raised_when_every_member_knows_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with staged("a") as stage:
        for module in (membership, view_module):
            monkeypatch.setattr(module, "RULES", RULES + 1)
        await stage.start("b")
        view = view_of(stage, "b")
        with pytest.raises(LogError, match=f"member 1 .* knows the rules up to {RULES} only"):
            await view.finalize()
        await stage.servers.pop("a").stop()
        assert await view.finalize() == (RULES + 1, True)
        assert await view.finalize() == (RULES + 1, False)
        assert view.rules() == RULES + 1


@in_virtual_time
async def test_an_address_is_forgotten_and_a_refusal_says_why() -> None:
    async with staged() as stage:
        await stage.start("a", advertise="a:1")
        await stage.start("b", advertise="b:1")
        await stage.settle()
        view = view_of(stage, "a")
        with pytest.raises(LogError, match="a member has this address: stop it first"):
            await view.forget("b:1")
        with pytest.raises(LogError, match="no member ever had this address"):
            await view.forget("c:1")
        await stage.servers.pop("b").stop()
        await view.forget("b:1")
        assert view.addresses() == ["a:1"]


@in_virtual_time
async def test_without_an_outcome_the_operator_is_told_what_to_do() -> None:
    async with staged("a", sync_limit=100) as stage:
        stage.etcd.lose_quorum()
        with pytest.raises(LogError, match=r"not known whether .* ask again"):
            await view_of(stage, "a").forget("b:1")
        stage.etcd.regain_quorum()
        await asyncio.sleep(5)


@in_virtual_time
async def test_a_server_that_is_out_of_service_proposes_nothing() -> None:
    async with staged("a") as stage:
        stage.etcd.link("a").cut()
        await asyncio.sleep(2 * T)
        with pytest.raises(LogError, match="out of service"):
            await view_of(stage, "a").forget("b:1")
        stage.etcd.link("a").heal()
        await asyncio.sleep(2 * T)


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
        status = stage.servers["b"].cluster_status()["snapshot"]
        assert isinstance(status, dict)
        assert 40 < status["age"] <= 60
