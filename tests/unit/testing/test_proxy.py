"""Faults in virtual time: server, proxy and clients in one loop, and nobody waits."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from paddock.server.config.config import ServerConfig
from paddock.testing import (
    Cut,
    CutPoint,
    Direction,
    EmbeddedServer,
    FaultProxy,
    SessionLivesError,
    at_every_cut,
    expire_session,
    run_virtually,
)
from tests.support import requests as rq
from tests.support.records import Code
from tests.unit.testing.client import AsyncClient, connect

Scenario = Callable[[EmbeddedServer, FaultProxy], Coroutine[Any, Any, None]]


def virtually(scenario: Scenario) -> None:
    async def run() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            await scenario(server, proxy)

    run_virtually(run())


async def exists(server: EmbeddedServer, path: str) -> bool:
    """Look past the proxy."""
    client = await connect(server.address)
    found = (await client.call(rq.exists(path))).err == Code.OK
    await client.leave()
    return found


def test_a_delayed_request_takes_so_long() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        fault = proxy.when(operation="create").delay(3)
        client = await connect(proxy.address)
        now = asyncio.get_running_loop().time
        client.send(rq.create("/a"))
        assert (await fault.happened()).paths == ("/a",)
        assert not await exists(server, "/a")
        assert (await client.reply(rq.create("/a").op)).err == Code.OK
        assert now() == pytest.approx(3)
        assert (await client.call(rq.create("/b"))).err == Code.OK
        assert now() == pytest.approx(3)
        await client.leave()

    virtually(scenario)


def test_a_delayed_reply_comes_after_the_change() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        fault = proxy.when(operation="create").delay_reply(3)
        client = await connect(proxy.address)
        now = asyncio.get_running_loop().time
        client.send(rq.create("/a"))
        await fault.happened()
        assert await exists(server, "/a")
        assert now() == 0
        assert (await client.reply(rq.create("/a").op)).err == Code.OK
        assert now() == pytest.approx(3)
        await client.leave()

    virtually(scenario)


def test_what_is_sent_behind_a_delayed_request_waits_too_and_keeps_its_order() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        proxy.when(path="/0").delay(3)
        proxy.when(path="/2").delay(2)
        client = await connect(proxy.address)
        for number in range(4):
            client.send(rq.create(f"/{number}"))
        replies = [await client.reply(rq.create("/").op) for _ in range(4)]
        assert [one.path for one in replies] == ["/0", "/1", "/2", "/3"]
        assert asyncio.get_running_loop().time() == pytest.approx(5)
        await client.leave()

    virtually(scenario)


def test_a_session_in_a_blackhole_expires_and_its_client_is_told_after_healing() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        client = await connect(proxy.address, timeout_ms=10_000)
        assert (await client.call(rq.create("/mine", flags=1))).err == Code.OK
        proxy.blackhole()
        client.send(rq.exists("/mine"))
        await asyncio.sleep(60)
        assert not await exists(server, "/mine")
        proxy.heal()
        assert await client.reader.read() == b""
        await client.leave()
        again = await connect(proxy.address, like=client)
        assert again.handshake.session_id == 0
        await again.leave()

    virtually(scenario)


def test_refusing_for_a_while_ends_by_itself() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        client = await connect(proxy.address)
        proxy.refuse(seconds=3)
        assert await client.reader.read() == b""
        await client.leave()
        await asyncio.sleep(2.9)
        with pytest.raises(ConnectionRefusedError):
            await connect(proxy.address)
        await asyncio.sleep(0.2)
        again = await connect(proxy.address, like=client)
        assert again.handshake.session_id == client.handshake.session_id
        await again.leave()

    virtually(scenario)


def test_each_fault_counts_the_requests_that_another_one_gets() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        client = await connect(proxy.address)
        first = proxy.when(operation="create", nth=2).delay(1)
        second = proxy.when(operation="create", nth=2).delay(1)
        third = proxy.when(operation="create", nth=3, times=None).delay(1)
        for number in range(1, 6):
            await client.call(rq.create(f"/{number}"))
        hit = [[one.paths[0] for one in fault.hits] for fault in (first, second, third)]
        assert hit == [["/2"], ["/3"], ["/4", "/5"]]
        await client.leave()

    virtually(scenario)


def test_a_wrong_choice_is_refused_at_once() -> None:
    proxy = FaultProxy(("127.0.0.1", 1))
    with pytest.raises(ValueError, match="operation: there is no 'creat'"):
        proxy.when(operation="creat")
    with pytest.raises(ValueError, match="nth"):
        proxy.when(nth=0)
    with pytest.raises(ValueError, match="length"):
        proxy.when().truncate(-1)
    proxy._port.close()


async def count_up(proxy: FaultProxy) -> tuple[int, AsyncClient]:
    """Create three nodes, with a new connection after each cut; say how often one was there."""
    client: AsyncClient | None = None
    there = 0
    number = 0
    while number < 3:
        try:
            if client is None:
                client = await connect(proxy.address)
            there += (await client.call(rq.create(f"/{number}"))).err == Code.NODE_EXISTS
            number += 1
        except asyncio.IncompleteReadError:
            if client is not None:
                await client.leave()
            client = None
    assert client is not None
    return there, client


def test_every_cut_of_a_scenario_is_made() -> None:
    met: list[str] = []

    async def scenario(proxy: FaultProxy, point: CutPoint | None) -> None:
        there, client = await count_up(proxy)
        # Only a lost reply leaves something behind that the client does not know of.
        if point is not None:
            met.append(str(point))
            is_lost_reply = point.cut is not Cut.BEFORE and point.request.name == "create"
            assert there == is_lost_reply
        await client.leave()

    points = run_virtually(at_every_cut(EmbeddedServer, scenario, tuple(Cut)))
    assert met == [str(point) for point in points]
    assert met[:3] == [
        "cut before request 1: create_session",
        "cut after request 1: create_session",
        "cut within the reply to request 1: create_session",
    ]
    assert met[-1] == "cut within the reply to request 4: create /2"
    assert len(met) == 12


def test_a_scenario_that_fails_says_where_it_was_cut() -> None:
    async def scenario(proxy: FaultProxy, point: CutPoint | None) -> None:
        client = await connect(proxy.address)
        try:
            await client.call(rq.create("/a"))
        finally:
            await client.leave()

    with pytest.raises(asyncio.IncompleteReadError) as caught:
        run_virtually(at_every_cut(EmbeddedServer, scenario, (Cut.AFTER,)))
    assert caught.value.__notes__ == ["cut after request 1: create_session"]


def test_a_cut_that_is_never_reached_is_a_failure() -> None:
    async def scenario(proxy: FaultProxy, point: CutPoint | None) -> None:
        if point is None:
            client = await connect(proxy.address)
            await client.leave()

    with pytest.raises(AssertionError, match="never came to this: cut before request 1"):
        run_virtually(at_every_cut(EmbeddedServer, scenario))


@pytest.mark.parametrize(
    ("first", "later", "missed"),
    [
        # As if the first run had taken longer, so that something was asked once more.
        (["/a", "/a", "/b"], ["/a", "/b"], None),
        (["/a", "/b", "/once"], ["/a", "/b"], "cut before request 4: exists /once"),
    ],
)
def test_a_request_is_missed_only_if_none_like_it_was_cut(
    first: list[str], later: list[str], missed: str | None
) -> None:
    async def scenario(proxy: FaultProxy, point: CutPoint | None) -> None:
        client = None
        with contextlib.suppress(asyncio.IncompleteReadError):
            client = await connect(proxy.address)
            for path in first if point is None else later:
                await client.call(rq.exists(path))
        if client is not None:
            await client.leave()

    if missed is None:
        assert len(run_virtually(at_every_cut(EmbeddedServer, scenario))) == 8
    else:
        with pytest.raises(AssertionError, match=f"never came to this: {missed}"):
            run_virtually(at_every_cut(EmbeddedServer, scenario))


def test_one_direction_of_a_blackhole_leaves_the_other_open() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        client = await connect(proxy.address)
        proxy.when(path="/there").blackhole(Direction.TO_CLIENT)
        client.send(rq.create("/there"))
        client.send(rq.create("/behind"))
        await asyncio.sleep(0.1)
        assert await exists(server, "/behind")
        # Another connection is not concerned.
        other = await connect(proxy.address)
        proxy.heal()
        replies = [await client.reply(rq.create("/").op) for _ in range(2)]
        assert [one.path for one in replies] == ["/there", "/behind"]
        await client.leave()
        await other.leave()

    virtually(scenario)


def test_a_session_is_ended_in_virtual_time_too() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        client = await connect(proxy.address)
        session = client.handshake
        for _ in range(2):
            await expire_session(server.address, session.session_id, session.password)
        assert await client.reader.read() == b""
        await client.leave()
        again = await connect(proxy.address, like=client)
        assert again.handshake.session_id == 0
        await again.leave()

    virtually(scenario)


def test_an_end_that_the_client_has_undone_is_tried_again() -> None:
    attempts: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The first time the client was faster than the close; the second time it is over.
        attempts.append(1)
        session = 42 if len(attempts) == 1 else 0
        writer.write(struct.pack(">iiiqi", 37, 0, 4000, session, 16) + bytes(17))
        await reader.readexactly(4)
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        await expire_session(server.sockets[0].getsockname(), 42, bytes(16))
        server.close()

    run_virtually(scenario())
    assert len(attempts) == 2


def test_a_session_that_its_client_takes_back_each_time_lives() -> None:
    async def take_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A server on which the client was faster than the close.
        await reader.readexactly(4)
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(take_back, "127.0.0.1", 0)
        with pytest.raises(SessionLivesError, match="0x2a"):
            await expire_session(server.sockets[0].getsockname(), 42, bytes(16))
        server.close()

    run_virtually(scenario())


def test_a_reset_is_one_in_virtual_time_too() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        client = await connect(proxy.address)
        proxy.when(operation="create").cut_before(reset=True)
        with pytest.raises(ConnectionResetError):
            await client.call(rq.create("/a"))
        client.writer.close()

    virtually(scenario)


def test_nobody_means_a_ping_who_does_not_say_so() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        client = await connect(proxy.address)
        any_request = proxy.when().delay(1)
        ping = proxy.when(operation="ping").delay(1)
        for request in (rq.ping(), rq.exists("/")):
            await client.call(request)
        assert [one.name for one in any_request.hits] == ["exists"]
        assert [one.name for one in ping.hits] == ["ping"]
        await client.leave()

    virtually(scenario)


def test_healing_forgets_what_was_to_happen_at_a_reply() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        client = await connect(proxy.address)
        proxy.blackhole(Direction.TO_CLIENT)
        fault = proxy.when(operation="create").cut_after()
        client.send(rq.create("/a"))
        await asyncio.sleep(1)
        proxy.heal()
        assert (await client.reply(rq.create("/a").op)).path == "/a"
        assert fault.hits == ()
        await client.leave()

    virtually(scenario)


def test_healing_forgets_a_cut_that_waits_for_earlier_replies() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        client = await connect(proxy.address)
        proxy.blackhole(Direction.TO_CLIENT)
        fault = proxy.when(path="/b").cut_before()
        client.send(rq.create("/a"))
        client.send(rq.create("/b"))
        await asyncio.sleep(1)
        assert not await exists(server, "/b")
        proxy.heal()
        replies = [await client.reply(rq.create("/a").op) for _ in range(2)]
        assert [one.path for one in replies] == ["/a", "/b"]
        assert fault.hits == ()
        await client.leave()

    virtually(scenario)


def test_a_blackhole_does_not_take_without_end() -> None:
    async def scenario(server: EmbeddedServer, proxy: FaultProxy) -> None:
        client = await connect(proxy.address)
        proxy.blackhole()
        for number in range(20):
            client.send(rq.create(f"/{number}", bytes(500_000)))
        draining = asyncio.ensure_future(client.writer.drain())
        await asyncio.sleep(1)
        assert not draining.done()
        proxy.heal()
        await draining
        replies = [await client.reply(rq.create("/").op) for _ in range(20)]
        assert [one.path for one in replies] == [f"/{number}" for number in range(20)]
        await client.leave()

    virtually(scenario)


def test_a_server_notices_a_client_behind_the_proxy_that_does_not_read() -> None:
    async def run() -> None:
        config = ServerConfig(port=0, max_reply_bytes_per_connection=1 << 20)
        async with EmbeddedServer(config=config) as server, FaultProxy(server.address) as proxy:
            client = await connect(proxy.address)
            await client.call(rq.create("/large", bytes(500_000)))
            transport = client.writer.transport
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            for _ in range(100):
                client.send(rq.get_data("/large"))
            await asyncio.sleep(60)
            transport.resume_reading()
            assert len(await client.reader.read()) < 50 * 500_000
            await client.leave()

    run_virtually(run())
