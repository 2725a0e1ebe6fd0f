"""Each fault of the proxy, as a client on a real socket meets it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
from collections.abc import Iterator

import pytest
import uvloop

from paddock.protocol import opcodes
from paddock.server.config.config import ServerConfig
from paddock.testing import (
    Cut,
    CutPoint,
    Direction,
    EmbeddedServer,
    FaultProxy,
    SeenReply,
    SeenRequest,
    ServerThread,
    at_every_cut_blocking,
)
from tests.support import requests as rq
from tests.support import wire
from tests.support.kazoo_clients import DEADLINE_S, KazooClients, watch_states
from tests.support.records import Code, Reply

SHORT_S = 0.2
"""Long enough for something that was not held back to come."""


@pytest.fixture
def server() -> Iterator[ServerThread]:
    config = ServerConfig(port=0, tick_time_ms=200, four_letter_words=frozenset({"*"}))
    with ServerThread(config=config) as server:
        yield server


@pytest.fixture
def proxy(server: ServerThread) -> Iterator[FaultProxy]:
    with FaultProxy(server.address) as proxy:
        yield proxy


def exists(server: ServerThread, path: str) -> bool:
    """Look past the proxy."""
    with wire.connect(server.address) as client:
        found = client.call(rq.exists(path)).err == Code.OK
        client.close()
        return found


def seen_words(proxy: FaultProxy) -> list[str]:
    words = []
    for one in proxy.seen:
        if isinstance(one, SeenRequest):
            words.append(f"> {one.name}")
        elif isinstance(one, SeenReply):
            words.append(f"< {one.request.name} {one.error}")
        else:
            words.append(f"! {one.path}")
    return words


def test_what_passes_is_seen_in_order(proxy: FaultProxy) -> None:
    with wire.connect(proxy.address) as client:
        client.calls(rq.exists("/a", watch=True), rq.ping())
        client.call(rq.create("/a"))
        client.close()
    assert seen_words(proxy)[:2] == ["> create_session", "< create_session 0"]
    assert sorted(seen_words(proxy)[2:6]) == [
        f"< exists {int(Code.NO_NODE)}",
        "< ping 0",
        "> exists",
        "> ping",
    ]
    assert seen_words(proxy)[6:] == [
        "> create",
        "! /a",
        "< create 0",
        "> close_session",
        "< close_session 0",
    ]
    assert [one.name for one in proxy.requests] == [
        "create_session",
        "exists",
        "create",
        "close_session",
    ]
    assert [one.request for one in proxy.replies] == list(proxy.requests)
    assert [one.path for one in proxy.events] == ["/a"]


@pytest.mark.parametrize("word", ["ruok", "mntr", "srvr"])
def test_four_letter_words_pass(proxy: FaultProxy, word: str) -> None:
    assert len(wire.four_letter_word(proxy.address, word)) >= 4
    assert proxy.seen == ()


def test_large_and_many_frames_pass_whole(proxy: FaultProxy) -> None:
    data = bytes(range(256)) * 3900
    with wire.connect(proxy.address) as client:
        client.call(rq.create("/a", data))
        replies = client.calls(*[rq.get_data("/a")] * 20)
        assert all(one.data == data for one in replies)
        assert all(one.err == Code.OK for one in client.calls(*[rq.exists("/a")] * 5000))
        client.close()


def test_a_cut_before_a_request_keeps_it_from_the_server(
    server: ServerThread, proxy: FaultProxy
) -> None:
    fault = proxy.when(operation="create", nth=2).cut_before()
    with wire.connect(proxy.address) as client:
        client.send(rq.create("/a"), rq.create("/b"), rq.create("/c"))
        assert client.reply().err == Code.OK
        assert client.wait_closed() == b""
    assert [one.paths for one in fault.hits] == [("/b",)]
    assert [exists(server, path) for path in ("/a", "/b", "/c")] == [True, False, False]


def test_a_cut_after_a_request_loses_only_the_reply(
    server: ServerThread, proxy: FaultProxy
) -> None:
    fault = proxy.when(path="/b").cut_after()
    with wire.connect(proxy.address) as client:
        client.send(rq.create("/a"), rq.create("/b"), rq.create("/c"))
        assert client.reply().err == Code.OK
        assert client.wait_closed() == b""
    assert fault.wait().paths == ("/b",)
    assert not exists(server, "/c")
    assert [one.error for one in proxy.replies if "/b" in one.request.paths] == [Code.OK]
    assert exists(server, "/b")


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 19, 22])
def test_a_reply_is_cut_within(proxy: FaultProxy, length: int) -> None:
    proxy.when(operation=opcodes.CREATE).truncate(length)
    with wire.connect(proxy.address) as client:
        client.send(rq.create("/a"))
        rest = client.wait_closed()
    # The length of the reply, its header, and the path: 26 bytes.
    assert rest == (b"\0\0\0\x16\0\0\0\x01" + rest[8:])[:length]
    assert len(rest) == length


def test_a_dropped_reply_is_missing_among_the_others(proxy: FaultProxy) -> None:
    fault = proxy.when(operation="create", path="/b").drop_reply()
    with wire.connect(proxy.address) as client:
        client.send(rq.create("/a"), rq.create("/b"), rq.create("/c"))
        assert [client.reply().path for _ in range(2)] == ["/a", "/c"]
        client.close()
    assert len(fault.hits) == 1


def test_a_delay_holds_back_and_lets_go(server: ServerThread, proxy: FaultProxy) -> None:
    fault = proxy.when(operation="create").delay(0.05)
    with wire.connect(proxy.address) as client:
        assert [one.path for one in client.calls(rq.create("/a"), rq.create("/b"))] == ["/a", "/b"]
        client.close()
    assert len(fault.hits) == 1


def test_healing_ends_a_delay(proxy: FaultProxy) -> None:
    fault = proxy.when(operation="create").delay_reply(3600)
    with wire.connect(proxy.address) as client:
        client.send(rq.create("/a"))
        fault.wait()
        proxy.heal()
        assert client.reply().path == "/a"
        client.close()


@pytest.mark.parametrize(
    ("directions", "reaches"),
    [
        ((), False),
        ((Direction.TO_SERVER,), False),
        ((Direction.TO_CLIENT,), True),
        ((Direction.TO_CLIENT, Direction.TO_SERVER), False),
    ],
)
def test_a_blackhole_takes_everything_in_its_direction(
    server: ServerThread,
    proxy: FaultProxy,
    directions: tuple[Direction, ...],
    reaches: bool,
) -> None:
    fault = proxy.when(operation="create").blackhole(*directions)
    with wire.connect(proxy.address) as client:
        client.send(rq.create("/a"))
        fault.wait()
        with pytest.raises(TimeoutError):
            client.read(deadline_s=SHORT_S)
        assert exists(server, "/a") == reaches
        proxy.heal()
        reply = client.read()
        assert isinstance(reply, Reply)
        assert (reply.path, exists(server, "/a")) == ("/a", True)
        client.close()


def test_a_blackhole_of_all_accepts_and_says_nothing(
    server: ServerThread, proxy: FaultProxy
) -> None:
    proxy.blackhole()
    with pytest.raises(TimeoutError):
        wire.connect(proxy.address, deadline_s=SHORT_S)
    # Nothing of it has reached the server.
    assert proxy.requests == ()
    assert "connections: 1" in wire.four_letter_word(server.address, "srvr").lower()
    proxy.heal()
    with wire.connect(proxy.address) as client:
        client.close()


def test_a_reset_is_one(server: ServerThread, proxy: FaultProxy) -> None:
    proxy.when(operation="create").cut_after(reset=True)
    with wire.connect(proxy.address) as client:
        client.send(rq.create("/a"))
        with pytest.raises(wire.ConnectionClosedError) as caught:
            client.read()
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    assert exists(server, "/a")


def test_connections_are_reset_on_demand(proxy: FaultProxy) -> None:
    with wire.connect(proxy.address) as client:
        proxy.cut(reset=True)
        with pytest.raises(wire.ConnectionClosedError) as caught:
            client.read()
    assert isinstance(caught.value.__cause__, ConnectionResetError)


def test_refused_until_healed(proxy: FaultProxy) -> None:
    with wire.connect(proxy.address) as client:
        for _ in range(3):
            proxy.refuse()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(proxy.address)
            proxy.heal()
            with wire.reattach(proxy.address, client) as again:
                assert again.session_id == client.session_id
        assert client.wait_closed() == b""


def test_whoever_is_cut_can_be_kept_away(server: ServerThread, proxy: FaultProxy) -> None:
    proxy.when(operation="create").cut_after(stay_away=True)
    with wire.connect(proxy.address) as client:
        client.send(rq.create("/a"))
        client.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(proxy.address)
        assert exists(server, "/a")
        proxy.heal()
        with wire.reattach(proxy.address, client) as again:
            again.close()


def test_the_handshake_can_be_cut(server: ServerThread, proxy: FaultProxy) -> None:
    before = proxy.when(operation="create_session").cut_before()
    with pytest.raises(wire.ConnectionClosedError):
        wire.connect(proxy.address)
    after = proxy.when(operation="create_session").cut_after()
    with pytest.raises(wire.ConnectionClosedError):
        wire.connect(proxy.address)
    assert (len(before.hits), len(after.hits), len(proxy.replies)) == (1, 1, 1)


def test_a_predicate_chooses(proxy: FaultProxy) -> None:
    fault = proxy.when(predicate=lambda one: b"poison" in one.payload).cut_before()
    with wire.connect(proxy.address) as client:
        client.call(rq.create("/a", b"food"))
        client.send(rq.set_data("/a", b"poison"))
        client.wait_closed()
    assert fault.hits[0].name == "set"


def test_a_fault_that_did_not_happen_is_waited_for_only_so_long(proxy: FaultProxy) -> None:
    fault = proxy.when(operation="create").cut_before()
    with pytest.raises(TimeoutError, match="cut before the server has the request"):
        fault.wait(0.01)
    assert fault.hits == ()


def test_a_server_that_is_away_closes_the_connection(server: ServerThread) -> None:
    with FaultProxy(server.address) as proxy:
        server.stop()
        with pytest.raises(wire.ConnectionClosedError):
            wire.connect(proxy.address)
        server.start()
        with wire.connect(proxy.address) as client:
            client.close()


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_proxy_serves_on_the_running_loop(factory: object) -> None:
    def talk(address: tuple[str, int]) -> bool:
        with wire.connect(address) as client:
            client.send(rq.create("/a"))
            return client.wait_closed() == b""

    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            fault = proxy.when(operation="create").cut_after(reset=True)
            talking = asyncio.create_task(asyncio.to_thread(talk, proxy.address))
            assert (await fault.happened()).paths == ("/a",)
            assert await talking
            proxy.refuse()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*proxy.address)
            proxy.heal()
            _, writer = await asyncio.open_connection(*proxy.address)
            writer.close()
            await writer.wait_closed()

    assert callable(factory)
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(scenario())


def test_kazoo_goes_on_after_a_lost_reply(server: ServerThread, proxy: FaultProxy) -> None:
    with KazooClients(proxy.address) as clients:
        client = clients.connect()
        states = watch_states(client)
        fault = proxy.when(operation="set").cut_after()
        client.create("/a")
        # It is tried again, and so is done twice.
        assert client.retry(client.set, "/a", b"x").version == 2
        assert [states.take(), states.take()] == ["SUSPENDED", "CONNECTED"]
        assert len(fault.hits) == 1
        assert [one.name for one in proxy.requests].count("create_session") == 2


def test_kazoo_loses_its_session_in_a_blackhole(server: ServerThread, proxy: FaultProxy) -> None:
    with KazooClients(proxy.address) as clients:
        client = clients.connect(timeout=0.4)
        client.create("/mine", ephemeral=True)
        states = watch_states(client)
        gone = threading.Event()
        other = KazooClients(server.address)
        with other:
            other.connect().exists("/mine", watch=lambda _: gone.set())
            proxy.blackhole()
            assert gone.wait(DEADLINE_S)
        proxy.heal()
        assert states.take_until(lambda state: state == "LOST")
        assert states.take_until(lambda state: state == "CONNECTED")


def test_kazoo_at_every_cut(server: ServerThread) -> None:
    root = iter(range(1000))

    def scenario(proxy: FaultProxy, point: CutPoint | None) -> None:
        path = f"/{next(root)}"
        with KazooClients(proxy.address) as clients:
            client = clients.connect(timeout=5.0)
            client.retry(client.ensure_path, path)
            client.retry(client.create, f"{path}/item-", sequence=True)
            # kazoo does not find out that its create has succeeded: where the reply was lost, it
            # has made two.
            is_lost = (
                point is not None
                and point.cut is Cut.AFTER
                and any("item" in one for one in point.request.paths)
            )
            assert len(client.retry(client.get_children, path)) == 1 + is_lost

    points = at_every_cut_blocking(lambda: contextlib.nullcontext(server), scenario)
    assert {point.request.name for point in points} >= {"create_session", "create", "close_session"}


def test_it_ends_while_clients_connect() -> None:
    """Whoever was accepted just before is let go of, like all others."""
    for _ in range(20):
        over = threading.Event()
        with FaultProxy(("127.0.0.1", 1)) as proxy:
            thread = threading.Thread(target=connect_until, args=(over, proxy.address))
            thread.start()
            over.wait(0.005)
        over.set()
        thread.join()
    # What was not closed would be told of now.
    gc.collect()


def connect_until(over: threading.Event, address: tuple[str, int]) -> None:
    while not over.wait(0.0002):
        with socket.socket() as client, contextlib.suppress(OSError):
            client.connect(address)
