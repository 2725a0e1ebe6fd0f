"""What becomes of a member that loses its log or its lease at a bad moment."""

import asyncio
import itertools
from collections.abc import Callable

import pytest

from paddock.log.etcd.store import StoreForbiddenError
from paddock.log.interface import ForbiddenError, LogCorruptError
from paddock.protocol import opcodes
from paddock.server.connections.core import Core
from paddock.server.replication.proposals import AwaitedOutcome
from paddock.state.entry import Entry
from paddock.state.machine import Outcome, session_body
from paddock.storage.replay import OtherStateError
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, connect, staged


def forbid_appends(stage: Stage, name: str) -> None:
    """Have etcd refuse for good what a server appends that is started from now on."""
    store = stage.etcd.store(name)

    async def append(boot: bytes, number: int, payload: bytes) -> bool:
        raise StoreForbiddenError("permission denied")

    store.append = append  # type: ignore[method-assign]
    stage.etcd.store = lambda name: store  # type: ignore[method-assign]


def lose_in_batch(core: Core, lose: Callable[[str], None], count: int) -> None:
    """Have a server lose its lease in the middle of its next batch of more entries than this."""
    readings = itertools.count()
    core.replica.clock = lambda: float(next(readings))

    def on_entry(entry: Entry, outcome: Outcome) -> None:
        if len(core.replica._applying.entries) > count:  # type: ignore[union-attr]
            core.replica.on_entry = None
            asyncio.get_running_loop().call_soon(lose, "the test wants it")

    core.replica.on_entry = on_entry


@in_virtual_time
async def test_a_start_ends_if_its_log_fails_before_it_is_a_member() -> None:
    async with staged("a") as stage:
        forbid_appends(stage, "b")
        with pytest.raises(ForbiddenError, match="permission denied"):
            async with asyncio.timeout(10 * T):
                await stage.start("b")
        assert stage.members("a") == [1]


@in_virtual_time
async def test_a_log_that_fails_while_a_server_joins_again_ends_it() -> None:
    async with staged("a", "b") as stage:
        stage.etcd.link("b").cut()
        await asyncio.sleep(T)
        assert stage.cluster(stage.servers["b"]).membership.is_joining
        stage.cluster(stage.servers["b"])._start.log._fail(ForbiddenError("no"))  # type: ignore[union-attr]
        await asyncio.sleep(T)
        assert str(stage.lost["b"]) == "no"
        assert not stage.cluster(stage.servers["b"]).membership.is_joining
        stage.etcd.link("b").heal()


@in_virtual_time
async def test_a_server_joins_again_that_lost_its_lease_in_the_middle_of_a_batch() -> None:
    async with staged("a") as stage, connect(stage, "a", timeout=60) as client:
        core = stage.core(stage.servers["a"])
        membership = stage.cluster(stage.servers["a"]).membership
        lose_in_batch(core, membership.lose, 2)
        nodes = [client.create(f"/n{i}", bytes(5_000)) for i in range(10)]
        await asyncio.gather(*nodes, return_exceptions=True)
        await asyncio.sleep(2 * T)
        assert stage.is_serving("a")
        assert stage.members("a") == [2]


@in_virtual_time
async def test_sessions_that_open_after_the_lease_is_lost_are_not_tracked() -> None:
    async with staged("a", "b") as stage:
        core = stage.core(stage.servers["a"])

        def lose(reason: str) -> None:
            stage.cluster(stage.servers["a"]).membership.lose(reason)
            stage.etcd.link("a").cut()

        lose_in_batch(core, lose, 9)
        clients = [connect(stage, "a", timeout=60) for _ in range(40)]
        opening = [asyncio.create_task(client.__aenter__()) for client in clients]
        await asyncio.sleep(T / 2)
        # Another server owns them before this one is back, and only that one may expire them.
        assert core.replica.on_entry is None
        assert core.tracker.all() == []
        await asyncio.sleep(2 * T)
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        stage.etcd.link("a").heal()


async def stage_with_unreadable_batch() -> Stage:
    """Have a server meet a batch that no version can read."""
    stage = Stage()
    await stage.start("a")
    await stage.start("b")
    await stage.settle()
    roster = stage.core(stage.servers["a"]).machine.roster
    assert roster is not None
    other = list(roster.members.values())[1]
    await stage.kill("b")
    stage.etcd.append(other.boot, other.next, bytes(16) + b"\xff" * 4)
    await asyncio.sleep(0.1)
    assert stage.core(stage.servers["a"]).replica.is_dead()
    return stage


@in_virtual_time
async def test_a_server_whose_state_was_given_up_does_not_join_again() -> None:
    stage = await stage_with_unreadable_batch()
    await asyncio.sleep(0.1)
    before = stage.etcd.space.revision
    await asyncio.sleep(5 * T)
    assert stage.etcd.space.revision == before
    await stage.stop()


@in_virtual_time
async def test_a_start_ends_if_the_log_has_what_it_cannot_read() -> None:
    stage = await stage_with_unreadable_batch()
    with pytest.raises(LogCorruptError, match="paddock cluster skip"):
        async with asyncio.timeout(10 * T):
            await stage.start("c")
    await stage.stop()


@in_virtual_time
async def test_a_server_that_fails_in_an_unforeseen_way_at_a_record_ends() -> None:
    async with staged("a", "b") as stage:

        def heard(boot: bytes, index: int) -> None:
            raise ValueError("a defect")

        core = stage.core(stage.servers["a"])
        stage.cluster(stage.servers["a"]).membership.heard = heard  # type: ignore[method-assign]
        await asyncio.sleep(T)
        # Otherwise it would apply nothing any more, and say nothing.
        assert core.replica.is_dead()


@pytest.mark.source
@in_virtual_time
async def test_a_server_that_fails_in_an_unforeseen_way_at_an_entry_ends() -> None:
    async with staged("a", "b") as stage, connect(stage, "b") as client:

        def entry_applied() -> None:
            raise ValueError("a defect")

        core = stage.core(stage.servers["a"])
        assert core.replica.sharing is not None
        core.replica.sharing.entry_applied = entry_applied  # type: ignore[method-assign]
        await client.create("/n")
        await asyncio.sleep(T)
        assert core.replica.is_dead()


@in_virtual_time
async def test_a_boot_that_ends_before_it_has_a_lease_tracks_no_session_any_more() -> None:
    async with staged("a", "b") as stage:
        membership = stage.cluster(stage.servers["b"]).membership
        core = stage.core(stage.servers["b"])
        opened = AwaitedOutcome()
        entry = Entry(opcodes.CREATE_SESSION, session_body(60_000, b"p" * 16))
        core.proposer.submit(entry, opened)
        assert await opened.wait() is not None
        membership.lose("the test")
        # It is cut off when its JOIN is in the log, and deposed before it has come out of it there.
        for _ in range(1_000):
            await asyncio.sleep(0.0002)
            if stage.members("a") == [1, 3]:
                break
        assert (membership.number, stage.members("a")) == (0, [1, 3])
        stage.etcd.link("b").cut()
        await asyncio.sleep(3 * T)
        assert stage.members("a") == [1]
        stage.etcd.link("b").heal()
        await asyncio.sleep(2.5 * T)
        assert (membership.number, stage.members("a")) == (4, [1, 4])
        assert [one.owner for one in core.machine.sessions.by_id.values()] == [1]
        assert core.tracker.all() == []


@in_virtual_time
async def test_a_server_outvoted_while_it_joins_takes_its_own_batch_for_foreign() -> None:
    async with staged("a", "b") as stage:
        cluster, core = stage.cluster(stage.servers["b"]), stage.core(stage.servers["b"])
        # As when it waits for its lease to hold.
        cluster.membership.is_joining = True
        core.proposer.renew()
        assert core.proposer.in_flight
        before = core.replica.applied
        cluster._give_up_state(OtherStateError("outvoted"))
        await asyncio.sleep(1)
        assert core.replica.applied > before
        assert core.replica.failure is None
        cluster.membership.is_joining = False


@pytest.mark.parametrize("is_joining", [False, True])
@in_virtual_time
async def test_a_state_that_was_outvoted_is_not_served_to_read_only_clients(
    is_joining: bool,
) -> None:
    async with staged("a", "b", read_only_mode_enabled=True) as stage:
        cluster, core = stage.cluster(stage.servers["b"]), stage.core(stage.servers["b"])
        if is_joining:
            stage.etcd.link("b").cut()
            await asyncio.sleep(T)
            assert cluster.membership.is_joining
            assert core.is_read_only
        cluster._give_up_state(OtherStateError("outvoted"))
        # It is so at once, and not only when somebody looks.
        await asyncio.sleep(0)
        assert not core.is_serving()
        await asyncio.sleep(1)
        assert isinstance(stage.lost["b"], OtherStateError)
        assert not core.is_serving()
        stage.etcd.link("b").heal()
