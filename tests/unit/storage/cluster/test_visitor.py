"""A visitor of a service, beside servers in virtual time."""

import asyncio

import pytest

from paddock.log.etcd.keys import Keys
from paddock.log.interface import LogError
from paddock.server.cluster.shared_settings import lease_seconds
from paddock.state.entry import FORGET, RULES
from paddock.state.roster import Member
from paddock.state.roster_bodies import forget_body
from paddock.storage.cluster import operations, visitor
from paddock.storage.cluster.operations import begin_epoch, finalize, forget
from paddock.storage.cluster.shared_state import load_service
from paddock.storage.cluster.visitor import (
    Caller,
    DeposedError,
    NotAllowedError,
    SkippedError,
    Visitor,
)
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import T, staged, view_of

KEYS = Keys("shop")
CALLER = Caller(b"visitor.", "1 (a test)")


def lease(member: Member) -> float:
    return T


@in_virtual_time
async def test_a_visitor_changes_what_all_servers_know_and_leaves_no_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with staged("a") as stage:
        await stage.start("b", advertise="b:1")
        await stage.servers.pop("b").stop()
        store = stage.etcd.store("visitor")
        await forget(store, KEYS, CALLER, "b:1")
        await asyncio.sleep(1)
        roster = stage.core(stage.servers["a"]).machine.roster
        assert roster is not None
        assert roster.addresses == []
        assert stage.members("a") == [1]
    # It is no server, and has no clock that matters.
    assert "the clock of" not in caplog.text


@in_virtual_time
async def test_a_visitor_that_is_refused_leaves_as_well() -> None:
    async with staged("a", advertise="a:1") as stage:
        store = stage.etcd.store("visitor")
        with pytest.raises(NotAllowedError, match="a:1: a member has this address"):
            await forget(store, KEYS, CALLER, "a:1")
        await asyncio.sleep(1)
        assert stage.members("a") == [1]


@in_virtual_time
async def test_a_visitor_that_was_silent_for_too_long_is_told_so() -> None:
    async with staged("a") as stage:
        store = stage.etcd.store("visitor")
        state = await load_service(store, KEYS)
        async with Visitor(store, KEYS, state, CALLER) as guest:
            visit = guest.membership()
            await visit.__aenter__()
            await asyncio.sleep(3 * T)
            with pytest.raises(DeposedError):
                await guest.propose(FORGET, forget_body("x"))
            with pytest.raises(DeposedError):
                await visit.__aexit__(None, None, None)
        assert stage.members("a") == [1]


@pytest.mark.parametrize(
    ("which", "forgotten"), [(1, False), (2, False), (3, True)], ids=["JOIN", "FORGET", "LEAVE"]
)
@in_virtual_time
async def test_a_visitor_whose_batch_is_skipped_is_told_so(which: int, forgotten: bool) -> None:
    async with staged() as stage:
        await stage.start("a", advertise="a:1")
        await stage.servers.pop("a").stop()
        store = stage.etcd.store("visitor")
        index = (await load_service(store, KEYS)).head.index + which
        await store.swap(KEYS.skip(index), b"skip", 0)
        if forgotten:
            await forget(store, KEYS, CALLER, "a:1")
        else:
            with pytest.raises(SkippedError, match=f"batch {index}, which is of this command"):
                await forget(store, KEYS, CALLER, "a:1")
        roster = (await load_service(store, KEYS)).machine.roster
        assert roster is not None
        assert roster.addresses == ([] if forgotten else ["a:1"])
        # Only who could not leave is still there, until it is deposed.
        assert len(roster.members) == forgotten


@in_virtual_time
async def test_the_rules_that_all_members_know_are_the_ones_of_the_service() -> None:
    async with staged("a") as stage:
        assert await finalize(stage.etcd.store("visitor"), KEYS, CALLER) == (RULES, RULES)


@in_virtual_time
async def test_rules_that_a_member_does_not_know_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with staged("a") as stage:
        for module in (operations, visitor):
            monkeypatch.setattr(module, "RULES", RULES + 1)
        with pytest.raises(LogError, match=f"member 1 .* knows the rules up to {RULES} only"):
            await finalize(stage.etcd.store("visitor"), KEYS, CALLER)
        assert view_of(stage, "a").rules() == RULES


@in_virtual_time
async def test_an_epoch_begins_when_the_members_are_silent_and_not_before() -> None:
    async with staged("a", "b") as stage:
        store = stage.etcd.store("visitor")
        with pytest.raises(LogError, match=r"member [12] \(.*\) is alive: stop all servers first"):
            await begin_epoch(store, KEYS, CALLER, lease)
        zxid = stage.core(stage.servers["a"]).machine.zxid
        await stage.kill("a")
        await stage.kill("b")
        other = Caller(b"visitor2", "1 (a test)")
        begun = await begin_epoch(store, KEYS, other, lease)
        assert begun == (zxid >> 32) + 1 << 32
        await stage.start("c")
        machine = stage.core(stage.servers["c"]).machine
        assert machine.zxid >= begun
        assert len(stage.members("c")) == 1


@in_virtual_time
async def test_each_member_is_waited_for_as_long_as_it_says() -> None:
    async with staged("a", "b", sync_limit=20) as stage:
        await stage.kill("a")
        await stage.kill("b")
        store = stage.etcd.store("visitor")
        waited = asyncio.get_running_loop().time()
        await begin_epoch(store, KEYS, CALLER, lambda one: lease_seconds(one.settings, T))
        waited = asyncio.get_running_loop().time() - waited
        assert 10 <= waited < 11
