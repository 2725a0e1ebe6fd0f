"""Several servers on one log, in virtual time: what their clients see."""

import asyncio
import contextlib

import pytest

import paddock
from paddock.server.replication.proposals import Submitter
from paddock.state.entry import ATTACH, Entry
from paddock.state.machine import attach_body
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import T, connect, staged


@in_virtual_time
async def test_what_is_written_through_one_server_is_read_through_all() -> None:
    async with staged("a", "b", "c") as stage:
        async with connect(stage, "a") as writer, connect(stage, "b") as reader:
            await writer.create("/node", b"1")
            await reader.sync("/node")
            assert (await reader.get("/node")).data == b"1"
            assert (await writer.set("/node", b"2")).version == 1
            await reader.sync("/node")
            assert (await reader.get("/node")).data == b"2"
        await stage.settle()


@in_virtual_time
async def test_a_watch_fires_for_a_change_through_another_server() -> None:
    async with staged("a", "b") as stage:
        async with connect(stage, "a") as writer, connect(stage, "b") as reader:
            await writer.create("/node", b"1")
            await reader.sync("/node")
            seen: list[object] = []
            await reader.get("/node", watch=seen.append)
            await writer.set("/node", b"2")
            await reader.sync("/node")
            assert len(seen) == 1


@in_virtual_time
async def test_increments_through_all_servers_at_once_are_each_counted_once() -> None:
    async with staged("a", "b", "c", faults=StoreFaults(swapped=0.3, reply_lost=0.05)) as stage:
        async with connect(stage, "a") as first:
            await first.create("/n", b"0")

        async def increment(name: str) -> None:
            async with connect(stage, name) as client:
                done = 0
                while done < 20:
                    await client.sync("/n")
                    data, stat = await client.get("/n")
                    with contextlib.suppress(paddock.BadVersionError):
                        await client.set("/n", b"%d" % (int(data) + 1), version=stat.version)
                        done += 1

        await asyncio.gather(*[increment(name) for name in "abc"])
        async with connect(stage, "b") as last:
            await last.sync("/n")
            assert (await last.get("/n")).data == b"60"
        await stage.settle()


@in_virtual_time
async def test_a_session_outlives_the_server_that_it_was_attached_to() -> None:
    async with staged("a", "b", "c") as stage, connect(stage) as client:
        session = client.session_id
        await client.create("/held", ephemeral=True)
        for name in list(stage.servers):
            if stage.core(stage.servers[name]).tracker.get(session) is not None:
                await stage.kill(name)
        await asyncio.sleep(3 * T)
        assert client.session_id == session
        assert await client.exists("/held") is not None
        assert len(stage.servers) == 2
        assert [len(stage.members(name)) for name in stage.servers] == [2, 2]


@in_virtual_time
async def test_sessions_of_a_dead_server_end_when_their_clients_are_dead_too() -> None:
    async with staged("a", "b") as stage:
        client = connect(stage, "b", timeout=5)
        await client.__aenter__()
        await client.create("/held", ephemeral=True)
        await stage.kill("b")
        async with connect(stage, "a") as other:
            await asyncio.sleep(T)
            assert await other.exists("/held") is not None
            await asyncio.sleep(T + 5 + 5)
            assert await other.exists("/held") is None
        with contextlib.suppress(paddock.PaddockError):
            await client.__aexit__(None, None, None)


@in_virtual_time
async def test_a_server_that_stops_hands_its_sessions_on() -> None:
    async with staged("a", "b", "c") as stage:
        clients = [connect(stage, timeout=5) for _ in range(20)]
        for client in clients:
            await client.__aenter__()
            await client.create(f"/of-{client.session_id}", ephemeral=True)
        for name in "abc":
            await stage.servers.pop(name).stop()
            await stage.start(name + "2")
            await asyncio.sleep(1)
        # Their hosts are gone by now; what counts is that no session was ended meanwhile.
        sessions = stage.core(stage.servers["c2"]).machine.sessions.by_id
        assert {client.session_id for client in clients} <= set(sessions)
        for client in clients:
            with contextlib.suppress(paddock.PaddockError):
                await client.__aexit__(None, None, None)


@in_virtual_time
async def test_an_election_of_etcd_disconnects_nobody() -> None:
    async with staged("a", "b") as stage, connect(stage, "a") as client:
        await client.create("/n", b"0")
        before = list(stage.core(stage.servers["a"]).connections)
        stage.etcd.elect(2.1)
        await client.set("/n", b"1")
        assert list(stage.core(stage.servers["a"]).connections) == before
        assert stage.members("a") == [1, 2]


@in_virtual_time
async def test_a_server_has_its_whole_lease_from_its_join_on() -> None:
    async with staged("a") as stage:
        # The first one has been there for longer than a lease.
        await asyncio.sleep(3 * T)
        await stage.start("b")
        stage.etcd.link("b").cut()
        await asyncio.sleep(0.75 * T)
        assert stage.is_serving("b")
        assert stage.members("a") == [1, 2]
        await asyncio.sleep(0.5 * T)
        assert stage.members("a") == [1]
        stage.etcd.link("b").heal()


@in_virtual_time
async def test_a_server_that_is_cut_off_is_silent_before_it_is_deposed() -> None:
    async with staged("a", "b") as stage, connect(stage, "a", timeout=30) as client:
        await client.create("/n", b"0")
        stage.etcd.link("a").cut()
        await asyncio.sleep(0.75 * T)
        assert (await client.get("/n")).data == b"0"
        assert stage.is_serving("a")
        await asyncio.sleep(0.1 * T)
        assert not stage.is_serving("a")
        assert stage.members("b") == [1, 2]
        await asyncio.sleep(0.5 * T)
        assert stage.members("b") == [2]
        stage.etcd.link("a").heal()
        await asyncio.sleep(2 * T)
        assert stage.is_serving("a")
        assert stage.members("b") == [2, 3]
        assert (await client.get("/n")).data == b"0"
        await stage.settle()


@in_virtual_time
async def test_without_a_quorum_nobody_serves_and_with_one_everybody_does_again() -> None:
    async with staged("a", "b", "c") as stage, connect(stage, timeout=60) as client:
        await client.create("/n", b"0")
        session = client.session_id
        stage.etcd.lose_quorum()
        await asyncio.sleep(2 * T)
        assert not any(stage.is_serving(name) for name in stage.servers)
        stage.etcd.regain_quorum()
        await asyncio.sleep(2 * T)
        assert all(stage.is_serving(name) for name in stage.servers)
        assert (await client.set("/n", b"1")).version == 1
        assert client.session_id == session
        await stage.settle()


@in_virtual_time
async def test_a_cut_off_server_serves_read_only_clients_if_it_may() -> None:
    async with staged("a", "b", read_only_mode_enabled=True) as stage:
        async with connect(stage, "b") as writer:
            await writer.create("/n", b"0")
        await stage.settle()
        stage.etcd.link("a").cut()
        await asyncio.sleep(T)
        async with paddock.connect(stage.hosts("a"), read_only=True) as reader:
            assert (await reader.get("/n")).data == b"0"
            with pytest.raises(paddock.PaddockError):
                await reader.set("/n", b"1")


@in_virtual_time
async def test_a_session_that_a_cut_off_server_does_not_know_is_not_told_that_it_expired() -> None:
    async with staged("a", "b", read_only_mode_enabled=True) as stage:
        stage.etcd.link("a").cut()
        await asyncio.sleep(T)
        async with paddock.connect(stage.hosts(), session_timeout=60, read_only=True) as client:
            # By then the client has found the server that can write.
            await asyncio.sleep(300)
            await client.create("/held", ephemeral=True)
            session = client.session_id
            await stage.kill("b")
            await asyncio.sleep(T)
            stage.etcd.link("a").heal()
            await asyncio.sleep(3 * T)
            assert client.session_id == session
            assert await client.exists("/held") is not None


@in_virtual_time
async def test_a_server_alone_is_deposed_by_its_successor() -> None:
    async with staged("a") as stage:
        async with connect(stage, "a") as client:
            await client.create("/n", b"0")
        await stage.kill("a")
        await stage.start("b")
        assert stage.members("b") == [1, 2]
        await asyncio.sleep(1.5 * T)
        assert stage.members("b") == [2]
        async with connect(stage, "b") as client:
            assert (await client.get("/n")).data == b"0"


@in_virtual_time
async def test_clocks_ten_percent_apart_are_no_matter() -> None:
    async with staged("a", "b") as stage:
        stage.rates.update({"a": 0.9, "b": 1.1})
        async with connect(stage, "a", timeout=30) as client:
            await client.create("/n", b"0")
            stage.etcd.link("a").cut()
            # In the end "a" is silent before "b" has deposed it.
            for _ in range(1_000):
                await asyncio.sleep(0.01)
                if stage.members("b") == [2]:
                    assert not stage.is_serving("a")
                    break
            else:
                pytest.fail("nobody was deposed")


@in_virtual_time
async def test_clocks_thirty_percent_apart_break_the_argument() -> None:
    """No promise is made for such clocks; this shows that the one for ten percent is not idle."""
    async with staged("a", "b") as stage:
        stage.rates.update({"a": 0.7, "b": 1.0})
        async with connect(stage, "a", timeout=30) as client:
            await client.create("/n", b"0")
            stage.etcd.link("a").cut()
            for _ in range(1_000):
                await asyncio.sleep(0.01)
                if stage.members("b") == [2]:
                    break
            else:
                pytest.fail("nobody was deposed")
            # It speaks for sessions that are another's, and answers from a state of long ago.
            assert stage.is_serving("a")
            async with connect(stage, "b") as writer:
                await writer.set("/n", b"1")
            assert (await client.get("/n")).data == b"0"


@in_virtual_time
async def test_a_client_of_another_generation_is_told_nothing() -> None:
    async with staged("a", "b") as stage, connect(stage, "a", "b") as client:
        await client.create("/n", b"0")
        session = client.session_id
        here = "a" if stage.core(stage.servers["a"]).tracker.get(session) else "b"
        there = "b" if here == "a" else "a"
        # The client's server loses its lease; the client goes to the other one.
        stage.etcd.link(here).cut()
        await asyncio.sleep(2 * T)
        assert client.session_id == session
        assert stage.core(stage.servers[there]).tracker.get(session) is not None
        assert stage.core(stage.servers[here]).tracker.get(session) is None


@in_virtual_time
async def test_a_session_is_not_ended_while_its_former_server_may_speak_for_it() -> None:
    """It was attached by a connection that its client had given up, which came late."""
    async with staged("a", "b") as stage, connect(stage, "a", timeout=2) as client:
        session = stage.core(stage.servers["a"]).machine.sessions.by_id[client.session_id]
        here = stage.core(stage.servers["a"]).tracker
        loop = asyncio.get_running_loop()
        liveness = here.get(session.id)
        assert liveness is not None
        assert here.deadline(liveness) <= loop.time() + 2
        # It does not hear that the session has moved.
        stage.etcd.link("a").cut()
        late = Entry(ATTACH, attach_body(2000, session.password, 0), session.id)
        there = stage.core(stage.servers["b"])
        there.proposer.submit(late, Submitter())
        told = loop.time()
        while await client.exists("/"):
            told = loop.time()
            assert session.id in there.machine.sessions.by_id
            await asyncio.sleep(0.1)
            if stage.cluster(stage.servers["a"]).lease.is_over():
                break
        moved = there.tracker.get(session.id)
        assert moved is not None
        assert there.tracker.deadline(moved) > told + 2


@in_virtual_time
async def test_another_history_behind_the_same_name_ends_the_service() -> None:
    async with staged("a") as stage:
        backup = stage.etcd.backup()
        async with connect(stage, "a") as client:
            await client.create("/n", b"0")
            stage.etcd.restore(backup)
            writing = asyncio.create_task(_write_for_ever(client))
            await asyncio.wait([writing], timeout=2 * T)
            writing.cancel()
            await asyncio.sleep(T)
            assert "paddock cluster epoch" in str(stage.lost["a"])
            assert not stage.is_serving("a")


async def _write_for_ever(client: paddock.Client) -> None:
    while True:
        await client.set("/n", b"1")
        await asyncio.sleep(0.1)
