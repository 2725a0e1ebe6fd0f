"""The server that tests break: whom a fault concerns, how long it lasts, and what it says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import paddock
from paddock import SessionState, sync
from paddock.testing import FaultyServer, VirtualServer, VirtualTime, in_virtual_time
from tests.support import requests as rq
from tests.support import wire
from tests.support.recipes import DEADLINE_S
from tests.support.records import Code

Connect = Callable[..., sync.Client]


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer() as server:
        yield server


@pytest.fixture
def connect(server: FaultyServer) -> Iterator[Connect]:
    opened: list[sync.Client] = []

    def connect(session_timeout: float = 10, *, exact: bool = True) -> sync.Client:
        client = sync.connect(server.hosts, session_timeout=session_timeout, exact=exact)
        opened.append(client.__enter__())
        return opened[-1]

    yield connect
    server.heal()
    for client in opened:
        client.close()


def wait_for(client: sync.Client, *wanted: SessionState) -> None:
    with sync.timeout(DEADLINE_S):
        for state in client.states():
            if state in wanted:
                return
    raise AssertionError(f"never {wanted}")


# Whom a partition concerns, and until when.


@pytest.mark.parametrize("silent", [False, True])
def test_a_partition_is_between_one_client_and_the_server(
    server: FaultyServer, connect: Connect, silent: bool
) -> None:
    cut_off, other = connect(session_timeout=2), connect()
    with server.partition(cut_off, silent=silent):
        wait_for(cut_off, SessionState.DISCONNECTED, SessionState.OVERDUE)
        assert other.create("/a") == "/a"
        assert other.state is SessionState.CONNECTED
        # A client without a session is not part of the partition.
        assert connect().exists("/a") is not None


def test_a_client_comes_back_to_its_session_when_the_partition_ends(
    server: FaultyServer, connect: Connect
) -> None:
    client = connect()
    client.create("/worker", ephemeral=True)
    partition = server.partition(client)
    wait_for(client, SessionState.DISCONNECTED)
    partition.heal()
    partition.heal()
    wait_for(client, SessionState.CONNECTED)
    assert client.exists("/worker") is not None


def test_what_was_sent_into_silence_arrives_when_it_ends(
    server: FaultyServer, connect: Connect
) -> None:
    client, other = connect(), connect()
    seen = threading.Event()
    other.exists("/late", watch=lambda _: seen.set())
    with server.partition(client, silent=True):
        asking = threading.Thread(target=client.create, args=("/late",))
        asking.start()
        assert other.exists("/late") is None
    assert seen.wait(DEADLINE_S)
    asking.join(DEADLINE_S)
    assert client.state is SessionState.CONNECTED


def test_who_comes_back_is_cut_off_or_meets_silence(server: FaultyServer) -> None:
    with wire.connect(server.address) as client:
        session, password = client.handshake.session_id, client.handshake.password
        handshake = wire.connect_body(session_id=session, password=password)
        with server.partition(session), wire.Connection(server.address) as returning:
            returning.send_frame(handshake)
            with pytest.raises(wire.ConnectionClosedError):
                returning.read_frame()
        with wire.Connection(server.address) as returning:
            with server.partition(session, silent=True):
                returning.send_frame(handshake)
                with pytest.raises(TimeoutError):
                    returning.read_frame(deadline_s=0.2)
            # What it said is heard now, and it has its session back.
            assert session.to_bytes(8, "big", signed=True) in returning.read_frame()


def test_nothing_else_happens_to_who_does_not_get_through(server: FaultyServer) -> None:
    with wire.connect(server.address) as client:
        session, password = client.handshake.session_id, client.handshake.password
        fault = server.proxy.when(operation="create_session").delay_reply(0)
        server.partition(session)
        with wire.Connection(server.address) as returning:
            returning.send_frame(wire.connect_body(session_id=session, password=password))
            with pytest.raises(wire.ConnectionClosedError):
                returning.read_frame()
    assert fault.hits == ()
    with wire.connect(server.address):
        assert len(fault.hits) == 1


def test_one_of_two_partitions_can_end(server: FaultyServer, connect: Connect) -> None:
    one, two = connect(), connect()
    first, second = server.partition(one), server.partition(two)
    for client in (one, two):
        wait_for(client, SessionState.DISCONNECTED)
    first.heal()
    wait_for(one, SessionState.CONNECTED)
    assert one.get("/").data == b""
    assert not two.state.is_connected
    second.heal()
    wait_for(two, SessionState.CONNECTED)


def test_the_end_of_a_partition_is_not_the_end_of_silence_for_all(
    server: FaultyServer, connect: Connect
) -> None:
    client = connect()
    partition = server.partition(client, silent=True)
    server.proxy.blackhole()
    partition.heal()
    with pytest.raises(TimeoutError), sync.timeout(0.2):
        client.get("/")
    server.heal()
    assert client.get("/").data == b""


def test_a_session_expires_while_its_client_is_cut_off(
    server: FaultyServer, connect: Connect
) -> None:
    client, other = connect(session_timeout=2), connect()
    client.create("/worker", ephemeral=True)
    gone = threading.Event()
    other.exists("/worker", watch=lambda _: gone.set())
    with server.partition(client):
        assert gone.wait(DEADLINE_S)
        wait_for(client, SessionState.OVERDUE)
    wait_for(client, SessionState.EXPIRED)


# Whose session ends.


def test_only_the_session_that_is_named_expires(server: FaultyServer, connect: Connect) -> None:
    client, other = connect(), connect()
    server.expire(client.session_id)
    # It is over already.
    server.expire(client)
    wait_for(client, SessionState.EXPIRED)
    assert other.state is SessionState.CONNECTED


@pytest.mark.parametrize("act", [FaultyServer.partition, FaultyServer.expire])
def test_who_is_nobodys_client_is_refused(
    server: FaultyServer, act: Callable[[FaultyServer, object], object]
) -> None:
    with pytest.raises(TypeError, match="'me' is no client"):
        act(server, "me")
    with pytest.raises(TypeError, match="True is no client"):
        act(server, True)
    with pytest.raises(ValueError, match="session 0x4d is none of this server's"):
        act(server, 77)

    async def not_started() -> None:
        with pytest.raises(ValueError, match="has no session: is it started"):
            act(server, paddock.connect(server.hosts))

    asyncio.run(not_started())


def test_a_client_of_another_server_is_refused(server: FaultyServer) -> None:
    with FaultyServer() as another, sync.connect(another.hosts) as client:
        with pytest.raises(ValueError, match="connect clients to its `hosts`"):
            server.partition(client)


# Which reply is lost.


@pytest.mark.parametrize("operation", ["create", "create2", "transaction", "children", "sync"])
def test_a_reply_is_chosen_by_what_clients_call_it(server: FaultyServer, operation: str) -> None:
    meant = {
        "create": [rq.create("/a"), rq.create2("/a"), rq.create_container("/a")],
        "create2": [rq.create2("/a")],
        "transaction": [rq.multi(rq.create("/a"))],
        "children": [rq.get_children("/"), rq.get_children2("/")],
        "sync": [rq.sync("/")],
    }
    for request in meant[operation]:
        with wire.connect(server.address) as client, server.drop_reply(operation) as fault:
            client.send(rq.exists("/"), request)
            assert client.reply().err == Code.OK
            with pytest.raises(wire.ConnectionClosedError):
                client.reply()
        assert [one.operation for one in fault.hits] == [request.op]
        with wire.connect(server.address) as client:
            client.call(rq.delete("/a"))


def test_a_reply_is_chosen_by_path_client_and_number(
    server: FaultyServer, connect: Connect
) -> None:
    first, second = connect(), connect(exact=False)
    with server.drop_reply("set", "/", client=second, nth=2) as fault:
        for data in (b"1", b"2", b"3"):
            first.set("/", data)
        second.set("/", b"4")
        with pytest.raises(paddock.ConnectionLostError):
            second.set("/", b"5")
        second.set("/", b"6")
    assert [one.session_id for one in fault.hits] == [second.session_id]
    assert first.get("/").stat.version == 6


def test_an_operation_that_there_is_not_is_refused(server: FaultyServer) -> None:
    with pytest.raises(ValueError, match="there is no 'creat'; there are"):
        server.drop_reply("creat")


def test_a_reply_is_lost_without_a_scope_as_well(server: FaultyServer, connect: Connect) -> None:
    client = connect(exact=False)
    server.drop_reply("create")
    with pytest.raises(paddock.ConnectionLostError):
        client.create("/a")
    assert client.exists("/a") is not None


def test_a_reply_that_nobody_asked_for_fails_the_test_and_waits_no_longer(
    server: FaultyServer, connect: Connect
) -> None:
    client = connect()
    with pytest.raises(AssertionError, match="nobody asked for create /a"):
        with server.drop_reply("create", "/a"):
            client.create("/b")
    assert client.create("/a") == "/a"


def test_a_failure_within_is_not_covered_by_that(server: FaultyServer) -> None:
    with pytest.raises(ArithmeticError), server.drop_reply("create"):
        raise ArithmeticError


def test_heal_takes_back_what_has_not_happened(server: FaultyServer, connect: Connect) -> None:
    client = connect()

    def forgive() -> None:
        with server.drop_reply("create"):
            server.heal()
            client.create("/a")

    with pytest.raises(AssertionError, match="nobody asked"):
        forgive()


# Its life.


def test_what_is_in_its_folder_is_there_after_a_restart(tmp_path: Path) -> None:
    with FaultyServer(tmp_path) as server, sync.connect(server.hosts) as client:
        client.create("/a", b"1")
        server.stop()
        wait_for(client, SessionState.DISCONNECTED)
        server.start()
        client.wait_connected()
        assert client.get("/a").data == b"1"


def test_it_ends_with_its_scope_also_when_it_was_stopped() -> None:
    with FaultyServer() as server:
        server.stop()
    with pytest.raises(ConnectionRefusedError):
        wire.connect(server.address)


def test_it_can_be_used_where_an_event_loop_runs() -> None:
    async def main() -> None:
        with FaultyServer() as server:
            async with paddock.connect(server.hosts) as client:
                server.expire(client)
                assert [one async for one in client.states()][-1] is SessionState.EXPIRED

    asyncio.run(main())


def test_what_fails_in_its_thread_is_not_lost() -> None:
    def fail() -> None:
        raise ArithmeticError("as the test wants it")

    with pytest.raises(RuntimeError, match="as the test wants it"), FaultyServer() as server:
        server._background.loop.call_soon_threadsafe(fail)


def test_it_remembers_as_much_as_it_should() -> None:
    with FaultyServer(seen_max=3) as server, sync.connect(server.hosts) as client:
        for number in range(9):
            client.create(f"/{number}")
        assert len(server.proxy.seen) == 3
        # What it needs to know does not depend on that.
        server.expire(client)


def test_what_came_by_is_told_without_pings_and_from_any_request_on(
    server: FaultyServer,
) -> None:
    with wire.connect(server.address) as client:
        client.call(rq.exists("/a", watch=True))
        client.call(rq.ping())
        client.call(rq.create("/a"))
        client.close()
    lines = server.recent().splitlines()
    assert lines[0] == "connection 1: request 1: create_session"
    assert lines[1].startswith("connection 1: reply to 1: session 0x")
    assert lines[2:6] == [
        "connection 1: request 2: exists /a",
        "connection 1: reply to 2: exists /a: no such node",
        "connection 1: request 3: create /a",
        "connection 1: event: created /a",
    ]
    assert server.recent(after=3).splitlines()[0] == "connection 1: request 4: close_session"


# In virtual time.


@in_virtual_time
async def test_hours_pass_in_no_time(paddock_virtual_server: VirtualServer) -> None:
    server = paddock_virtual_server
    async with paddock.connect(server.hosts, session_timeout=10) as client:
        await client.create("/worker", ephemeral=True)
        await asyncio.sleep(3600)
        states = [client.state]
        with server.partition(client):
            await asyncio.sleep(3600)
            states.append(client.state)
        assert states == [SessionState.CONNECTED, SessionState.OVERDUE]
        assert [one async for one in client.states()][-1] is SessionState.EXPIRED
    async with paddock.connect(server.hosts, exact=False) as client:
        assert await client.exists("/worker") is None
        with server.drop_reply("create"), pytest.raises(paddock.ConnectionLostError):
            await client.create("/worker")
        await server.expire(client)
        assert [one async for one in client.states()][-1] is SessionState.EXPIRED


def test_what_was_seen_can_be_told_while_time_stands_still(
    paddock_virtual_time: VirtualTime, paddock_virtual_server: VirtualServer
) -> None:
    async def ask() -> None:
        async with paddock.connect(paddock_virtual_server.hosts) as client:
            await client.create("/a")

    paddock_virtual_time.run(ask())
    assert [one.name for one in paddock_virtual_server.proxy.requests] == [
        "create_session",
        "create",
        "close_session",
    ]


def test_virtual_time_is_for_coroutines() -> None:
    def test() -> None: ...

    with pytest.raises(TypeError, match="is not an `async def`"):
        in_virtual_time(test)  # type: ignore[arg-type]
